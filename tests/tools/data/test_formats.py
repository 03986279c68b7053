"""Every manifest format reads to the same clips; what cannot be read is set aside with its line."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.data.checks import check_clips, check_paths
from tools.data.manifest import read_manifest, sniff
from tools.data.write import write_lhotse, write_nemo, write_rows
from tools.errors import CheckError, UsageError
from tools.rows import Clip


@pytest.fixture
def wavs(tmp_path, tone):
    """Three files of half a second, a second and 1.5 s under wav/."""
    return [tone(tmp_path / "wav" / f"u{i}.wav", i, 0.5 * (i + 1)) for i in range(3)]


def digests(clips):
    return [clip_digest(read_clip(clip)) for clip in clips]


def test_nemo_lines_with_all_fields(tmp_path, wavs):
    row = {"audio_filepath": "wav/u0.wav", "duration": "0,25", "offset": 0.1, "text": "hi", "source_lang": "de-DE"}
    row |= {"speaker": " Ann  B ", "context": "Write.", "channel": 0, "taskname": "asr", "id": 7}
    lines = [json.dumps(row), "", '{"audio_filepath": "x", "duration": NaN}', "[1]", '{"text": "no audio"}', "{broken"]
    lines += [json.dumps({"audio_filepath": "s3://b/k.wav"}), json.dumps({"audio_filepath": "x", "text": 5})]
    lines += [json.dumps({"audio_filepath": "x", "_skipme": 1}), '{"audio_filepath": "x", "text": "\\ud800"}']
    (tmp_path / "m.json").write_text("\n".join(lines))
    read = read_manifest(tmp_path / "m.json")
    (clip,) = read.rows
    assert (clip.id, clip.offset_s, clip.duration_s, clip.lang) == ("7", 0.1, 0.25, "de")
    assert (clip.speaker, clip.prompt, clip.extras, clip.row) == ("Ann B", "Write.", {"taskname": "asr"}, 1)
    reasons = {q.row: q.reason for q in read.quarantined}
    assert sorted(reasons) == [3, 4, 5, 6, 7, 8, 9, 10]
    for row_number, part in {3: "NaN", 4: "not a JSON object", 5: "no audio path", 6: "not JSON", 7: "remote"}.items():
        assert part in reasons[row_number]
    assert "number, not a string" in reasons[8] and "skipped" in reasons[9] and "surrogate" in reasons[10]


def test_nemo_array_keeps_lines_and_survives_a_broken_row(tmp_path, wavs):
    rows = ['{"audio_filepath": "wav/u0.wav", "text": "a"}', '{"audio_filepath": oops}', '{"audio": "wav/u1.wav"}']
    (tmp_path / "m.json").write_text("[\n  " + ",\n  ".join(rows) + "\n]\n")
    read = read_manifest(tmp_path / "m.json")
    assert read.format == "json_document"
    assert [c.row for c in read.rows] == [2, 4] and [q.row for q in read.quarantined] == [3]
    (tmp_path / "cut.json").write_text('[{"audio": "wav/u0.wav"}, {"audio": "wav/u1.wav"')
    read = read_manifest(tmp_path / "cut.json")
    assert len(read.rows) == 1 and len(read.quarantined) == 1


@pytest.mark.speech
def test_speechbrain_document_by_id(shared_speech):
    read = read_manifest(shared_speech / "read/harvard/ASR_dev.json")
    assert [c.id for c in read.rows] == ["spk1_snt5", "spk2_snt5"] and not read.quarantined
    assert read.rows[1].text == "KEN PAIRS LACK FULL FLAVOR" and read.rows[0].audio.is_file()


def test_tables(tmp_path, wavs):
    tables = {
        "a.csv": 'path,transcript,start,end,speaker\nwav/u1.wav,"one, ""two""\nthree",00:00:00.250,"0,75",s1\n',
        "b.tsv": 'file\tsentence\twho\nwav/u1.wav\tsay "x\tme\nwav/u0.wav\tmissing\n',
        "c.csv": "\ufeffaudio;text;duration_ms\r\nwav/u1.wav;hallo;500\r\n",
        "d.csv": "wav/u1.wav|hello there\nwav/u2.wav|bye\n",
    }
    for name, text in tables.items():
        (tmp_path / name).write_bytes(text.encode())
    (clip,) = read_manifest(tmp_path / "a.csv").rows
    assert (clip.text, clip.offset_s, clip.duration_s, clip.row) == ('one, "two"\nthree', 0.25, 0.5, 2)
    tsv = read_manifest(tmp_path / "b.tsv")
    assert tsv.rows[0].text == 'say "x' and [q.row for q in tsv.quarantined] == [3]
    (clip,) = read_manifest(tmp_path / "c.csv").rows
    assert (clip.text, clip.duration_s) == ("hallo", 0.5)
    assert [c.text for c in read_manifest(tmp_path / "d.csv").rows] == ["hello there", "bye"]
    (tmp_path / "e.csv").write_text("just\nsome words\n")
    with pytest.raises(UsageError, match="no manifest"):
        read_manifest(tmp_path / "e.csv")


def test_common_voice_quotes_are_text(tmp_path, tone):
    tone(tmp_path / "clips" / "c1.mp3.wav")
    head = "client_id\tpath\tsentence\tup_votes\tdown_votes\tage\tgender\taccents\tvariant\tlocale\tsegment\n"
    (tmp_path / "train.tsv").write_text(head + 'abc\tc1.mp3.wav\t"Nein", sagte er\t2\t0\t\t\t\t\tde\t\n')
    (clip,) = read_manifest(tmp_path / "train.tsv").rows
    assert clip.text == '"Nein", sagte er' and clip.speaker == "abc" and clip.lang == "de"
    assert clip.audio == tmp_path / "clips" / "c1.mp3.wav"


def test_kaldi_never_runs_a_command(tmp_path, wavs):
    kaldi = tmp_path / "kaldi"
    kaldi.mkdir()
    proof = tmp_path / "was_run"
    (kaldi / "wav.scp").write_text(f"r1 ../wav/u2.wav\nr2 touch {proof}; cat ../wav/u1.wav |\nr3 feats.ark:123\n")
    (kaldi / "segments").write_text("a1 r1 0.0 0.5\na2 r1 0.5 -1\na3 r2 0 1\na4 r9 0 1\na5 r3 0 1\n")
    (kaldi / "text").write_text("a1 hello you\na2 there\na3 x\nzz nothing\n")
    (kaldi / "utt2spk").write_text("a1 s1\na2 s2\n")
    (kaldi / "reco2file_and_channel").write_text("r1 r1 A\n")
    read = read_manifest(kaldi)
    assert [(c.id, c.offset_s, c.duration_s, c.text, c.speaker, c.channel) for c in read.rows] == [
        ("a1", 0.0, 0.5, "hello you", "s1", 0),
        ("a2", 0.5, None, "there", "s2", 0),
    ]
    assert {q.id: q.kind for q in read.quarantined} == {"a3": "command", "a4": "row", "a5": "archive", "zz": "row"}
    assert not check_paths([kaldi]).ok and not proof.exists()


def test_stm_ctm_and_cues(tmp_path, wavs):
    stm = (
        ";; comment\nu2 1 spk1 0.00 0.70 <o,f0,male> hello <b> you\nu2 1 spk2 0.70 1.5 IGNORE_TIME_SEGMENT_IN_SCORING\n"
    )
    (tmp_path / "wav" / "t.stm").write_text(stm)
    read = read_manifest(tmp_path / "wav" / "t.stm")
    first = read.rows[0]
    assert (first.audio, first.channel, first.offset_s, first.duration_s) == (tmp_path / "wav/u2.wav", 0, 0.0, 0.7)
    assert first.text == "hello <b> you" and first.row == 2 and len(read.rows) == 2
    unscored = check_paths([tmp_path / "wav" / "t.stm"]).quarantined
    assert [q.kind for q in unscored] == ["unscored"]
    (tmp_path / "wav" / "u2.ctm").write_text("u2 1 0.0 0.2 hello\nu2 1 0.25 0.2 you\nu2 1 1.2 0.2 again 0.9\n")
    assert [c.text for c in read_manifest(tmp_path / "wav" / "u2.ctm").rows] == ["hello you", "again"]
    srt = "1\n00:00:00,100 --> 00:00:00,600\n<i>Hello</i>\nyou\n\n2\n00:00:00,700 --> 00:00:01,200\n{\\an8}Bye\n"
    (tmp_path / "wav" / "u2.srt").write_text(srt)
    cues = read_manifest(tmp_path / "wav" / "u2.srt").rows
    assert [(c.text, c.offset_s, c.duration_s) for c in cues] == [("Hello you", 0.1, 0.5), ("Bye", 0.7, 0.5)]
    vtt = "WEBVTT\n\nNOTE x\n\n00:00.000 --> 00:01.000 align:start\n<v Ann>Hi <b>you</b></v>\n"
    (tmp_path / "wav" / "u2.vtt").write_text(vtt)
    (cue,) = read_manifest(tmp_path / "wav" / "u2.vtt").rows
    assert (cue.text, cue.speaker, cue.duration_s, cue.audio.name) == ("Hi you", "Ann", 1.0, "u2.wav")


LONG = r'''File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 1.5
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "ann"
        xmin = 0
        xmax = 1.5
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = ""
        intervals [2]:
            xmin = 0.5
            xmax = 1.25
            text = "say ""this"""
    item [2]:
        class = "TextTier"
        name = "marks"
        xmin = 0
        xmax = 1.5
        points: size = 1
        points [1]:
            number = 0.3
            mark = "m"
'''
SHORT = (
    '"ooTextFile"\n"TextGrid"\n0\n1.5\n<exists>\n1\n"IntervalTier"\n"words"\n0\n1.5\n3\n0\n0.4\n"so"\n0.4\n0.6\n""\n'
)
SHORT += '0.6\n1.2\n"what"\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_textgrid_long_and_short(tmp_path, wavs, encoding):
    (tmp_path / "wav" / "u2.TextGrid").write_text(LONG, encoding=encoding)
    (clip,) = read_manifest(tmp_path / "wav" / "u2.TextGrid").rows
    assert (clip.text, clip.speaker, clip.offset_s, clip.duration_s) == ('say "this"', "ann", 0.5, 0.75)
    (tmp_path / "wav" / "u1.TextGrid").write_text("File type = " + SHORT, encoding=encoding)
    (clip,) = read_manifest(tmp_path / "wav" / "u1.TextGrid").rows
    assert (clip.text, clip.offset_s, clip.duration_s) == ("so what", 0.0, 1.2)


@pytest.mark.speech
def test_lhotse_cuts_of_the_wrong_reference(shared_speech):
    read = read_manifest(shared_speech / "read/libri/cuts.json")
    (clip,) = read.rows
    assert read.format == "lhotse_cuts_array"
    assert (clip.text, clip.speaker, clip.duration_s, clip.recording) == (
        "EXAMPLE OF TEXT",
        "libri-spk1",
        10.0,
        "recording-1",
    )
    assert clip.audio == shared_speech / "read/libri/libri-1088-134315-0000.wav"
    (slow,) = [f for f in check_paths([shared_speech / "read/libri/cuts.json"]).findings if f.check == "slow"]
    assert "15 characters in 10.00 s" in slow.text


def test_lhotse_supervisions_and_refusals(tmp_path, wavs):
    recording = {"id": "r", "sampling_rate": 16000, "num_samples": 24000, "duration": 1.5, "channel_ids": [0]}
    recording["sources"] = [{"type": "file", "channels": [0], "source": "wav/u2.wav"}]
    said = {"id": "s1", "recording_id": "r", "start": 0.1, "duration": 0.4, "text": "one", "channel": 0}
    cut = {"id": "c1", "start": 0.2, "duration": 1.2, "channel": 0, "type": "MonoCut", "recording": recording}
    both = {**cut, "supervisions": [said, {**said, "id": "s2", "start": 0.6, "text": "two"}]}
    command = {**recording, "sources": [{"type": "command", "channels": [0], "source": "cat x"}]}
    rows = [
        both,
        {**cut, "id": "c2", "recording": command, "supervisions": []},
        {"id": "c3", "start": 0, "duration": "x"},
    ]
    rows[2]["supervisions"] = []
    with gzip.open(tmp_path / "cuts.jsonl.gz", "wt") as out:
        out.write("".join(json.dumps(row) + "\n" for row in rows))
    read = read_manifest(tmp_path / "cuts.jsonl.gz")
    assert [(c.id, c.text, round(c.offset_s, 6), c.duration_s) for c in read.rows] == [
        ("c1-s1", "one", 0.3, 0.4),
        ("c1-s2", "two", 0.8, 0.4),
    ]
    assert "never run" in read.quarantined[0].reason and len(read.quarantined) == 2


def test_lhotse_written_and_read_again(tmp_path, wavs):
    from lhotse import load_manifest_lazy

    clips = [Clip(f"c{i}", wav, f"text {i}", duration_s=0.5, lang="en", speaker="s") for i, wav in enumerate(wavs)]
    write_lhotse(tmp_path / "cuts.jsonl", clips)
    cuts = list(load_manifest_lazy(tmp_path / "cuts.jsonl"))
    assert [cut.supervisions[0].text for cut in cuts] == ["text 0", "text 1", "text 2"]
    read = read_manifest(tmp_path / "cuts.jsonl").rows
    assert [(c.id, c.text, c.speaker) for c in read] == [(c.id, c.text, c.speaker) for c in clips]
    assert digests(read) == digests(clips)
    with pytest.raises(CheckError, match="duration"):
        write_lhotse(tmp_path / "x.jsonl", [Clip("c", wavs[0])])


def test_shar_written_by_lhotse(tmp_path, wavs):
    from lhotse import CutSet, MonoCut, Recording, SupervisionSegment
    from lhotse.shar import SharWriter

    (tmp_path / "shar").mkdir()
    cuts = []
    for i, wav in enumerate(wavs):
        recording = Recording.from_file(wav)
        said = SupervisionSegment(f"s{i}", recording.id, 0, recording.duration, text=f"text {i}", speaker="s")
        cuts.append(MonoCut(f"c{i}", 0, recording.duration, 0, [said], recording=recording))
    with SharWriter(str(tmp_path / "shar"), fields={"recording": "wav"}, shard_size=2) as writer:
        for cut in CutSet.from_cuts(cuts):
            writer.write(cut)
    read = read_manifest(tmp_path / "shar")
    assert read.format == "lhotse_shar" and not read.quarantined
    assert [(c.id, c.text) for c in read.rows] == [("c0", "text 0"), ("c1", "text 1"), ("c2", "text 2")]
    assert digests(read.rows) == digests([Clip("x", wav) for wav in wavs])


def test_nemo_tarred_shards(tmp_path, wavs):
    for shard, names in enumerate((["u0.wav"], ["u1.wav", "u2.wav", "lonely.wav"])):
        with tarfile.open(tmp_path / f"audio_{shard}.tar", "w") as tar:
            for name in names:
                tar.add(wavs[0] if name == "lonely.wav" else tmp_path / "wav" / name, arcname=name)
    rows = [[("u0.wav", 0.0)], [("u1.wav", 0.0), ("u2-sub1.wav", 0.5), ("gone.wav", 0.0)]]
    for shard, part in enumerate(rows):
        lines = [{"audio_filepath": n, "offset": o, "duration": 0.5, "text": n, "shard_id": shard} for n, o in part]
        (tmp_path / f"manifest_{shard}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("manifest__OP_0..1_CL_.json", "manifest_{0..1}.json"):
        read = read_manifest(tmp_path / name)
        assert read.format == "nemo_tarred"
        assert [c.id for c in read.rows] == ["u0.wav#0.0", "u1.wav#0.0", "u2-sub1.wav#0.5"]
        assert sorted(q.id for q in read.quarantined) == ["gone.wav", "lonely.wav"]
    expected = [Clip("x", wav, offset_s=o, duration_s=0.5) for wav, o in zip(wavs, (0, 0, 0.5))]
    assert digests(read.rows) == digests(expected)
    assert len(check_clips(read.rows).kept) == 3
    with pytest.raises(UsageError, match="manifest_2"):
        read_manifest(tmp_path / "manifest__OP_1..2_CL_.json")


def test_hugging_face_parquet_arrow_and_audiofolder(tmp_path, wavs):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    audio = pa.array([{"bytes": w.read_bytes(), "path": w.name} for w in wavs], kind)
    features = {"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}}
    schema = pa.schema([("audio", kind), ("sentence", pa.string()), ("label", pa.int64())])
    schema = schema.with_metadata({"huggingface": json.dumps(features)})
    held = pa.Table.from_arrays([audio, pa.array(["a", "b", "c"]), pa.array([0, 1, 1])], schema=schema)
    (tmp_path / "hub" / "data").mkdir(parents=True)
    pq.write_table(held, tmp_path / "hub" / "data" / "test-00000-of-00001.parquet", row_group_size=2)
    read = read_manifest(tmp_path / "hub")
    assert [(c.id, c.text, c.label, c.split) for c in read.rows] == [
        ("u0.wav#1", "a", "no", "test"),
        ("u1.wav#2", "b", "yes", "test"),
        ("u2.wav#3", "c", "yes", "test"),
    ]
    assert digests(read.rows) == digests([Clip("x", wav) for wav in wavs])
    (tmp_path / "saved").mkdir()
    with (
        pa.OSFile(str(tmp_path / "saved" / "data-00000-of-00001.arrow"), "wb") as file,
        pa.ipc.new_stream(file, schema) as out,
    ):
        out.write_table(held, max_chunksize=2)
    assert digests(read_manifest(tmp_path / "saved").rows) == digests(read.rows)
    (tmp_path / "metadata.csv").write_text("file_name,transcription\nwav/u0.wav,x\n")
    (tmp_path / "hub" / "data" / "test-00000-of-00001.parquet").unlink()
    (tmp_path / "saved" / "data-00000-of-00001.arrow").unlink()
    (clip,) = read_manifest(tmp_path).rows
    assert clip.text == "x" and clip.audio == wavs[0]


def test_audio_in_folders_by_label(tmp_path, tone):
    for label in ("yes", "no"):
        tone(tmp_path / "train" / label / "1.wav", len(label))
    assert [(c.label, c.split) for c in read_manifest(tmp_path).rows] == [("no", "train"), ("yes", "train")]


def test_conversations(tmp_path, wavs):
    turns = [
        {"from": "User", "type": "text", "value": "Write it."},
        {"from": "User", "type": "audio", "value": "wav/u0.wav"},
    ]
    turns.append({"from": "Assistant", "type": "text", "value": "hello"})
    shared = {"sound": "wav/u1.wav", "conversations": [{"from": "human", "value": "<sound>\nWrite."}]}
    shared["conversations"].append({"from": "gpt", "value": "bye"})
    rows = [{"id": "a", "conversations": turns}, {"id": "b", **shared}, {"id": "c", **shared, "sound": ["x", "y"]}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = read_manifest(tmp_path / "m.jsonl")
    assert [(c.id, c.prompt, c.text) for c in read.rows] == [("a", "Write it.", "hello"), ("b", "Write.", "bye")]
    assert "2 audio path(s) and 1 placeholder(s)" in read.quarantined[0].reason


def test_formats_are_told_by_content(tmp_path, wavs):
    (tmp_path / "rows.txt").write_text('{"audio": "wav/u0.wav", "text": "x"}\n')
    assert sniff(tmp_path / "rows.txt") == "json_lines"
    (tmp_path / "a.csv").write_bytes('{"audio": "wav/u0.wav", "text": "é"}\n'.encode("utf-16"))
    assert read_manifest(tmp_path / "a.csv").rows[0].text == "é"
    (tmp_path / "broken_first.jsonl").write_text('{"audio": oops\n{"audio": "wav/u0.wav", "text": "x"}\n')
    assert len(read_manifest(tmp_path / "broken_first.jsonl").rows) == 1
    with pytest.raises(UsageError, match="folder of no known kind"):
        sniff(tmp_path / "wav")


def test_nemo_written_and_read_again(tmp_path, wavs):
    clip = Clip("c", wavs[2], "tëxt", offset_s=0.5, duration_s=0.75, channel=0, lang="en", speaker="s", recording="r")
    write_nemo(tmp_path / "out.jsonl", [clip])
    (again,) = read_manifest(tmp_path / "out.jsonl").rows
    assert again.to_json() | {"manifest": "", "row": 0} == clip.to_json()
    assert json.loads((tmp_path / "out.jsonl").read_text())["audio_filepath"] == "wav/u2.wav"
    write_rows(tmp_path / "rows.jsonl", check_clips([clip]).kept)
    row = json.loads((tmp_path / "rows.jsonl").read_text())
    assert Clip.from_json(row).audio_sha256 == digests([clip])[0]


def test_audio_inside_a_tar_that_is_damaged(tmp_path, wavs):
    (tmp_path / "x.tar").write_bytes(b"not a tar")
    report = check_clips(
        [Clip("a", Path(f"{tmp_path}/x.tar::a.wav"), "t"), Clip("b", Path(f"{tmp_path}/no.tar::a"), "t")]
    )
    assert [q.kind for q in report.quarantined] == ["missing", "missing"]
    with tarfile.open(tmp_path / "y.tar", "w") as tar:
        info = tarfile.TarInfo("a.wav")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"RIFF"))
    assert check_clips([Clip("a", Path(f"{tmp_path}/y.tar::a.wav"), "t")]).quarantined[0].kind == "unreadable"


def test_stereo_kept_by_channel(tmp_path):
    wave = np.random.default_rng(0).normal(0, 0.1, (8000, 2))
    soundfile.write(tmp_path / "s.wav", wave, 16000, subtype="PCM_16")
    (tmp_path / "m.jsonl").write_text(
        "".join(json.dumps({"audio": "s.wav", "text": "x", "channel": c}) + "\n" for c in (0, 1, None))
    )
    report = check_paths([tmp_path / "m.jsonl"])
    assert [c.id for c in report.kept] == ["s.wav#0.0#0", "s.wav#0.0#1"]
    assert [q.kind for q in report.quarantined] == ["channel"]


ROWS = [{"id": f"r{i}", "audio_filepath": f"wav/u{i}.wav", "text": f"some words {i}"} for i in range(3)]
LINES = [json.dumps(row) for row in ROWS]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(LINES),
        "\r\n".join(LINES) + "\r\n",
        "\r".join(LINES),  # old Mac
        ",\n".join(LINES),
        "".join(LINES),
        "\n".join(json.dumps(row, indent=2) for row in ROWS),  # as jq prints
        json.dumps({"data": ROWS}),
        json.dumps({"version": 1, "info": {"by": "me"}, "utterances": ROWS}, indent=1),
        json.dumps({row["id"]: row for row in ROWS}),
        "path,text,id\r" + "\r".join(f"wav/u{i}.wav,some words {i},r{i}" for i in range(3)),
        "sep=;\nAudio Path;Transcript;Utterance ID\n"
        + "\n".join(f"wav/u{i}.wav;some words {i};r{i}" for i in range(3)),
    ],
    ids=["lines", "crlf", "cr", "commas", "one line", "jq", "wrapped", "wrapped indented", "by id", "cr table", "sep"],
)
def test_one_manifest_however_it_is_laid_out(tmp_path, wavs, text):
    (tmp_path / "m.json").write_bytes(text.encode())
    read = read_manifest(tmp_path / "m.json")
    assert [(c.id, c.text, c.audio) for c in read.rows] == [
        (row["id"], row["text"], tmp_path / row["audio_filepath"]) for row in ROWS
    ]
    assert not read.quarantined


def test_arrays_by_split_make_the_splits(tmp_path, wavs):
    (tmp_path / "m.json").write_text(json.dumps({"train": ROWS[:2], "test": ROWS[2:]}))
    assert [c.split for c in read_manifest(tmp_path / "m.json").rows] == ["train", "train", "test"]


def test_a_key_that_occurs_twice_is_not_read_half(tmp_path, wavs):
    twice = '{"id": "a", "audio_filepath": "wav/u0.wav", "text": "yes", "text": "no"}'
    (tmp_path / "m.jsonl").write_text(LINES[1] + "\n" + twice + "\n")
    read = read_manifest(tmp_path / "m.jsonl")
    (bad,) = read.quarantined
    assert (bad.row, bad.id, bad.reason) == (2, "a", "the key 'text' occurs twice in the row") and len(read.rows) == 1
    (tmp_path / "m.csv").write_text("path,text,text\nwav/u0.wav,first,second\n")
    (clip,) = read_manifest(tmp_path / "m.csv").rows
    assert clip.text == "first" and clip.extras == {"text (3)": "second"}


def test_broken_first_lines_do_not_lose_the_others(tmp_path, wavs):
    for head in (["# a comment"], ['{"cut": ', '{"off', '{"again'], ["{} trailing"]):
        (tmp_path / "m.jsonl").write_text("\n".join(head + LINES) + "\n")
        read = read_manifest(tmp_path / "m.jsonl")
        assert [c.id for c in read.rows] == ["r0", "r1", "r2"], head
        assert read.quarantined, head


def test_utf16_without_its_mark_is_told(tmp_path, wavs):
    (tmp_path / "m.jsonl").write_bytes("\n".join(LINES).encode("utf-16-le"))
    read = read_manifest(tmp_path / "m.jsonl")
    assert not read.rows and {q.kind for q in read.quarantined} == {"encoding"}
    assert "UTF-16 without its mark" in read.quarantined[0].reason
