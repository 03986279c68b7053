"""The data checks on the field cases F01, F03, F04, F05, F07, F09-F11, F14, F34, F35."""

import json
import shutil
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from tools.data.checks import check_clips, check_manifests, check_paths, leaks
from tools.errors import CheckError, UsageError
from tools.rows import Clip


def found(report, check):
    return [finding for finding in report.findings if finding.check == check]


@pytest.mark.speech
def test_f01_same_audio_under_another_name(tmp_path, shared_speech, manifest):
    for folder, name in (("train", "a.wav"), ("test", "zz.wav")):
        (tmp_path / folder).mkdir()
        shutil.copy(shared_speech / "read/cards/001.wav", tmp_path / folder / name)
    train = manifest(tmp_path / "train.jsonl", [{"id": "tr1", "audio": "train/a.wav", "text": "hello"}])
    test = manifest(tmp_path / "test.jsonl", [{"id": "te1", "audio": "test/zz.wav", "text": "hello there"}])
    report = check_manifests({"train": train, "test": test})
    (leak,) = found(report, "audio_shared")
    assert leak.severity == "block" and not report.ok
    digest = report.kept[0].audio_sha256
    for part in ("tr1", "te1", "train/a.wav", "test/zz.wav", digest[:16], "'hello'", "'hello there'"):
        assert part in leak.text
    assert [row.id for row in leak.rows] == ["tr1", "te1"]
    assert set(leaks(report).drop) == {(str(train), 1)}


def test_f01_a_duplicate_inside_a_split_warns(tmp_path, tone, manifest):
    tone(tmp_path / "a.wav", 1)
    shutil.copy(tmp_path / "a.wav", tmp_path / "b.wav")
    rows = [{"id": n, "audio": f"{n}.wav", "text": "x y", "lang": "en", "speaker": "s"} for n in "ab"]
    report = check_paths([manifest(tmp_path / "train.jsonl", rows)])
    (twice,) = found(report, "audio_duplicate")
    assert twice.severity == "warn" and "2 rows" in twice.text and report.ok


@pytest.mark.speech
def test_f03_intervals_are_half_open(tmp_path, shared_speech, manifest):
    audio = str(shared_speech / "same_audio/michaelandsickmichael.wav")
    row = {"audio": audio, "duration": 5.0, "text": "x", "channel": 0}
    train = manifest(tmp_path / "train.jsonl", [{**row, "id": "tr", "offset": 10.0}])
    test = [{**row, "id": "te", "offset": 14.9}, {**row, "id": "control", "offset": 15.0}]
    report = check_manifests({"train": train, "test": manifest(tmp_path / "test.jsonl", test)})
    (overlap,) = found(report, "interval_overlap")
    assert "overlap by 0.100 s" in overlap.text and [r.id for r in overlap.rows] == ["tr", "te"]


def test_f03_two_channels_do_not_overlap(tmp_path):
    wave = np.random.default_rng(0).normal(0, 0.1, (48000, 2))
    soundfile.write(tmp_path / "r.wav", wave, 16000, subtype="PCM_16")
    a = Clip("a", tmp_path / "r.wav", "x", offset_s=0.5, duration_s=1.0, channel=0, split="train")
    b = replace(a, id="b", offset_s=1.4, split="test", row=2)
    (overlap,) = found(check_clips([b, a]), "interval_overlap")
    assert overlap.text.startswith("a (train) and b (test) overlap by 0.100 s")
    assert overlap.splits == ("train", "test")
    assert not found(check_clips([a, replace(b, channel=1)]), "interval_overlap")
    assert not found(check_clips([a, replace(b, offset_s=1.5)]), "interval_overlap")


@pytest.mark.speech
def test_f04_one_speaker_on_both_sides(tmp_path, shared_speech, manifest):
    rows = [json.loads(line) for line in (shared_speech / "digits/manifest.jsonl").read_text().splitlines()]
    for row in rows:
        row["audio_filepath"] = str(shared_speech / "digits" / row["audio_filepath"])
    by_split = {"test": [r for r in rows if r["take"] < 5], "train": [r for r in rows if r["take"] >= 5]}
    paths = {split: manifest(tmp_path / f"{split}.jsonl", part) for split, part in by_split.items()}
    report = check_manifests(paths)
    (shared,) = found(report, "speaker_shared")
    assert shared.severity == "block" and "4 of 4 speaker(s)" in shared.text and "test (200 rows)" in shared.text
    without = {s: [{k: v for k, v in r.items() if k != "speaker"} for r in part] for s, part in by_split.items()}
    paths = {split: manifest(tmp_path / f"{split}.jsonl", part) for split, part in without.items()}
    report = check_manifests(paths)
    (missing,) = found(report, "speaker_missing")
    assert missing.severity == "warn" and "2000 rows of 2000 without speaker" in missing.text
    assert "cannot be certified" in missing.text and not found(report, "speaker_shared")
    for row in by_split["test"][:3]:
        row["speaker"] = ""
    report = check_paths([manifest(tmp_path / "test.jsonl", by_split["test"])])
    assert "3 rows of 200" in found(report, "speaker_missing")[0].text


def test_f05_shared_sentences_are_their_own_number(tmp_path, tone, manifest):
    rows = {"train": [], "test": []}
    for i in range(20):
        for split in rows:
            text = f"Sentence {i}!" if split == "train" else (f"sentence {i}" if i < 10 else f"other {i}")
            audio = str(tone(tmp_path / split / f"{i}.wav", i + 100 * (split == "test"), 0.2))
            rows[split].append({"id": f"{split}{i}", "audio": audio, "text": text, "speaker": f"{split}{i}"})
    report = check_manifests({s: manifest(tmp_path / f"{s}.jsonl", r) for s, r in rows.items()})
    (shared,) = found(report, "sentence_shared")
    assert shared.severity == "warn" and "10 of 20 sentences of test (10 of 20 rows, 50.00%)" in shared.text
    assert report.ok


def test_f07_paths_resolve_against_the_manifest(tmp_path, tone, manifest, monkeypatch):
    nfc, nfd = "é.wav", unicodedata.normalize("NFD", "é.wav")
    for i, path in enumerate(["x/m/a.wav", "x/b.wav", f"x/m/{nfd}", "x/m/my file, (1).wav"]):
        tone(tmp_path / path, i)
    audio = ["a.wav", "../b.wav", "/content/c.wav", nfc, "my file, (1).wav"]
    path = manifest(tmp_path / "x/m/m.jsonl", [{"id": str(i), "audio": a, "text": "t"} for i, a in enumerate(audio)])
    monkeypatch.chdir(tmp_path)
    report = check_paths([path])
    assert [clip.id for clip in report.kept] == ["0", "1", "4"]
    assert [(q.row, q.id) for q in report.quarantined] == [(3, "2"), (4, "3")]
    assert "/content/c.wav" in report.quarantined[0].reason
    assert f"Unicode form NFD: {tmp_path}/x/m/{nfd}" in report.quarantined[1].reason
    (lost,) = found(report, "quarantine")
    assert lost.severity == "block" and "2 of 5 rows set aside" in lost.text and "not done" in lost.text


def test_f07_the_name_that_was_meant_is_told(tmp_path, tone, manifest):
    """NFC, NFD or another case, in any part of the path."""
    for i, path in enumerate([unicodedata.normalize("NFD", "Zoë/a.wav"), "clips/B.WAV"]):
        tone(tmp_path / path, i)
    audio = ["Zoë/a.wav", "Clips/b.wav", "clips/c.wav"]
    path = manifest(tmp_path / "m.jsonl", [{"id": str(i), "audio": a, "text": "t"} for i, a in enumerate(audio)])
    form, case, none = (q.reason for q in check_paths([path]).quarantined)
    assert "Unicode form NFD" in form and case.endswith(f"written otherwise: {tmp_path}/clips/B.WAV")
    assert none == f"missing: audio file not found: {tmp_path}/clips/c.wav"


@pytest.mark.speech
def test_f09_f11_bad_files_do_not_sink_the_others(tmp_path, shared_speech, tone, manifest):
    awkward = shared_speech / "awkward"
    soundfile.write(tmp_path / "silent.wav", np.zeros(16000), 16000)
    wild = np.array([np.nan, np.inf, 1e29] * 1000, dtype=np.float32)
    soundfile.write(tmp_path / "wild.wav", wild, 16000, subtype="FLOAT")
    bad = [awkward / "empty.mp3", awkward / "null.wav", tmp_path / "silent.wav", tmp_path / "wild.wav"]
    bad.append(awkward / "onehz.wav")
    good = [tone(tmp_path / f"g{i}.wav", i, 0.2) for i in range(100)]
    audio = [*good[:16], *bad, *good[16:]]
    rows = [
        {"id": f"r{i}", "audio": str(a), "text": "hello", "speaker": "s", "lang": "en"} for i, a in enumerate(audio)
    ]
    path = manifest(tmp_path / "train.jsonl", rows)
    report = check_manifests({"train": path})
    assert (report.rows_in, len(report.kept)) == (105, 100)
    assert [q.row for q in report.quarantined] == [17, 18, 19, 20, 21]
    assert [q.kind for q in report.quarantined] == ["empty", "empty", "silent", "nan", "rate"]
    assert report.ok and found(report, "quarantine")[0].severity == "warn"
    assert not check_manifests({"dev": path}).ok  # dev may lose none
    six = ["bad.wav", "awful.wav", "evil.wav", "null.wav"]
    rows = [{"id": n, "audio": str(awkward / n), "text": "a"} for n in six]
    for name in ("cold_corpus_24bit.wav", "cold_corpus_32bit_float.wav"):
        rows.append({"id": name, "audio": str(shared_speech / "same_audio" / name), "text": "a"})
    report = check_paths([manifest(tmp_path / "six.jsonl", rows)])
    assert [q.kind for q in report.quarantined] == ["unreadable", "rate", "unreadable", "empty"]
    assert [round(clip.duration_s, 2) for clip in report.kept] == [25.72, 25.72]


@pytest.mark.speech
def test_f17_noise_with_an_empty_reference_is_kept(shared_speech):
    report = check_paths([shared_speech / "read/languages/transcripts.jsonl"])
    assert report.ok and not report.quarantined
    assert {clip.audio.name: clip.text for clip in report.kept}["noise_only.wav"] == ""
    (empty,) = found(report, "empty_reference")
    assert empty.severity == "info" and len(empty.rows) == 1


def test_f11_silence_with_an_empty_reference_is_kept(tmp_path, manifest):
    soundfile.write(tmp_path / "silent.wav", np.zeros(16000), 16000)
    path = manifest(tmp_path / "m.jsonl", [{"id": "a", "audio": "silent.wav", "text": ""}])
    assert [clip.text for clip in check_paths([path]).kept] == [""]


def test_f14_bytes(tmp_path, tone):
    for name in "abc":
        tone(tmp_path / f"{name}.wav", ord(name), 0.2)
    rows = [
        b'\xef\xbb\xbf{"id":"a","audio":"a.wav","text":"good\xc2\xa0morning"}\r\n',
        b'{"id":"b","audio":"b.wav","text":"a\xe2\x80\xa8b"}\r\n',
        b'{"id":"c","audio":"c.wav","text":"it\x92s"}\r\n',
    ]
    (tmp_path / "m.jsonl").write_bytes(b"".join(rows))
    report = check_paths([tmp_path / "m.jsonl"])
    assert [(clip.row, clip.text) for clip in report.kept] == [(1, "good\u00a0morning"), (2, "a\u2028b")]
    byte = len(rows[0]) + len(rows[1]) + rows[2].index(b"\x92")
    (encoding,) = found(report, "encoding")
    assert encoding.severity == "block" and f"byte {byte} (line 3)" in encoding.text


def test_f34_language_names(tmp_path, tone, manifest):
    rows = []
    for i in range(20):
        tone(tmp_path / f"{i}.wav", i, 0.2)
        lang = [None, "de", "DE", "german", "<|de|>", "de-AT", "deu"][i % 7 if i else 0]
        rows.append({"id": f"r{i}", "audio": f"{i}.wav", "text": "guten Tag", "lang": lang or ("de" if i else None)})
    path = manifest(tmp_path / "m.jsonl", rows)
    report = check_paths([path])
    assert {clip.lang for clip in report.kept} == {"de", None}
    (missing,) = found(report, "language_missing")
    assert [row.id for row in missing.rows] == ["r0"]
    declared = check_paths([path], languages=["German"])
    assert {clip.lang for clip in declared.kept} == {"de"}
    rows[3]["lang"], rows[4]["text"] = "klingonese", "добрый день"
    report = check_paths([manifest(tmp_path / "m.jsonl", rows)])
    assert found(report, "language")[0].severity == "block" and "'klingonese'" in found(report, "language")[0].text
    assert [row.id for row in found(report, "script")[0].rows] == ["r4"]


def test_f35_longer_than_the_window(tmp_path, tone, manifest):
    lengths = {"a": 45.0, "b": 30.0, "c": 30.01, "d": 1.0}
    for i, (name, seconds) in enumerate(lengths.items()):
        tone(tmp_path / f"{name}.wav", i, seconds, 8000)
    rows = [{"id": n, "audio": f"{n}.wav", "text": "w " * 90, "speaker": n} for n in lengths]
    paths = {s: manifest(tmp_path / f"{s}.jsonl", r) for s, r in (("train", rows[:2]), ("dev", rows[2:]))}
    report = check_manifests(paths)
    assert [clip.id for clip in report.kept] == ["b", "d"]
    (over,) = found(report, "over_window")
    assert over.text.startswith("2 clip(s) over 30.0 s (longest 45.00 s)") and report.ok


def test_bad_input_gets_one_sentence(tmp_path, tone, manifest):
    with pytest.raises(UsageError, match="manifest not found"):
        check_manifests({"train": tmp_path / "none.jsonl"})
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(CheckError, match="the dev split is empty"):
        check_manifests({"dev": tmp_path / "empty.jsonl"})
    tone(tmp_path / "a.wav")
    path = manifest(tmp_path / "m.jsonl", [{"id": "a", "audio": "a.wav"}])
    with pytest.raises(CheckError, match="all 1 rows lack their reference"):
        check_manifests({"train": path})
    report = check_paths([path])
    assert not report.ok and report.to_json()["quarantined"][0]["id"] == "a"


def test_the_json_form(tmp_path, tone, manifest):
    tone(tmp_path / "a.wav")
    rows = [{"audio": "a.wav", "text": "x", "offset": 0.25}, {"audio": "gone.wav", "text": "x"}]
    out = check_paths([manifest(tmp_path / "m.jsonl", rows)]).to_json()
    assert out["rows_in"] == 2 and out["kept"] == 1
    assert out["quarantined"][0] | {"reason": ""} == {
        "manifest": str(tmp_path / "m.jsonl"),
        "row": 2,
        "id": "gone.wav#0.0",
        "reason": "",
    }
    assert all(set(f) == {"check", "severity", "text", "rows"} for f in out["findings"])
    assert json.dumps(out)


def test_dev_and_test_leaking_into_each_other_is_told(tmp_path, tone, manifest):
    tone(tmp_path / "a.wav")
    row = {"audio": str(tmp_path / "a.wav"), "text": "x"}
    paths = {s: manifest(tmp_path / f"{s}.jsonl", [{**row, "id": s}]) for s in ("train", "dev", "test")}
    result = leaks(check_manifests(paths))
    assert [f.check for f in result.dev_test] == ["audio_shared"] and len(result.drop) == 1


def test_f14_labels_are_one_class_after_trimming(tmp_path, tone, manifest):
    rows = []
    for i, label in enumerate(["yes", "yes ", "Yes", "yes\r", "no"]):
        tone(tmp_path / f"{i}.wav", i, 0.3)
        rows.append({"id": f"r{i}", "audio": f"{i}.wav", "label": label, "speaker": f"s{i}", "lang": "en"})
    path = manifest(tmp_path / "m.jsonl", rows)
    report = check_paths([path], task="label")
    assert [clip.label for clip in report.kept] == ["yes", "yes", "Yes", "yes", "no"]
    (blanks,) = found(report, "label_blanks")
    assert "'yes '" in blanks.text and "'yes\\r'" in blanks.text
    (case,) = found(report, "label_case")
    assert case.severity == "warn" and "'Yes', 'yes'" in case.text
    folded = check_paths([path], task="label", fold_labels=True)
    assert {clip.label for clip in folded.kept} == {"yes", "no"} and not found(folded, "label_case")


def test_texts_that_are_not_what_is_said(tmp_path, tone, manifest):
    texts = {
        "control": "write <|im_start|> this",
        "unscored": "IGNORE_TIME_SEGMENT_IN_SCORING",
        "marker": "well [noise] yes <unk>",
        "mojibake": "cafÃ© au lait",
        "entity": "you &amp; me",
        "german": "the house is not that of the man and it was",
        "fine": "das ist nicht die Frau und der Mann",
        "blank": "  ",
    }
    rows = []
    for i, (name, text) in enumerate(texts.items()):
        tone(tmp_path / f"{name}.wav", i, 4.0)
        rows.append({"id": name, "audio": f"{name}.wav", "text": text, "lang": "de", "speaker": name})
    report = check_paths([manifest(tmp_path / "m.jsonl", rows)], max_quarantine=1.0)
    assert [(q.id, q.kind) for q in report.quarantined] == [("control", "special_token"), ("unscored", "unscored")]
    assert "'<|im_start|>'" in report.quarantined[0].reason
    named = {f.check: [row.id for row in f.rows] for f in report.findings}
    assert named["markers"] == ["marker"] and named["text"] == ["mojibake", "entity"]
    assert named["other_language"] == ["german"] and named["empty_reference"] == ["blank"]


@pytest.mark.speech
def test_levels_and_lengths(tmp_path, shared_speech, manifest):
    rng = np.random.default_rng(0)
    waves = {
        "loud": np.clip(3 * rng.normal(0, 0.5, 32000), -1, 1),
        "quiet": rng.normal(0, 0.0003, 32000),
        "short": rng.normal(0, 0.1, 1000),
        "long_text": rng.normal(0, 0.1, 8000),
        "longer": rng.normal(0, 0.1, 32000),
        "dc": np.full(16000, 0.25),
    }
    rows = []
    for name, wave in waves.items():
        soundfile.write(tmp_path / f"{name}.wav", wave, 16000, subtype="PCM_16")
        rows.append(
            {"id": name, "audio": f"{name}.wav", "text": "a" if name != "long_text" else "word " * 20, "lang": "en"}
        )
    rows[4]["duration"], rows[0]["sampling_rate"] = 1.0, 8000
    rows.append({"id": "cut_off", "audio": str(shared_speech / "awkward/trunc.wav"), "text": "x", "lang": "en"})
    report = check_paths([manifest(tmp_path / "m.jsonl", rows)], max_quarantine=1.0)
    assert {q.id: q.kind for q in report.quarantined} == {"dc": "silent", "cut_off": "truncated"}
    assert "promises 2.000 s and holds 0.999 s" in report.quarantined[1].reason
    named = {f.check: [row.id for row in f.rows] for f in report.findings}
    expected = {
        "clipped": "loud",
        "quiet": "quiet",
        "short": "short",
        "fast": "long_text",
        "length": "longer",
        "rate": "loud",
    }
    assert {check: named[check] for check in expected} == {check: [name] for check, name in expected.items()}


def test_ids(tmp_path, tone, manifest):
    for i in range(4):
        tone(tmp_path / f"{i}.wav", i, 0.3)
    ids = ["utt 1", "utt 1", "UTT1", "other"]
    rows = [{"id": key, "audio": f"{i}.wav", "text": "x", "lang": "en", "speaker": "s"} for i, key in enumerate(ids)]
    train = manifest(tmp_path / "train.jsonl", rows)
    report = check_manifests({"train": train, "test": manifest(tmp_path / "test.jsonl", [{**rows[3], "speaker": "t"}])})
    (twice,) = report.quarantined
    assert (twice.row, twice.kind) == (2, "duplicate_id") and "row 1 of" in twice.reason
    assert [row.id for row in found(report, "id_alike")[0].rows] == ["utt 1", "UTT1"]
    assert found(report, "id_shared")[0].severity == "warn" and found(report, "audio_shared")[0].severity == "block"


def test_sorted_rows_and_labels_that_training_never_shows(tmp_path, tone, manifest):
    rows = []
    for i in range(40):
        tone(tmp_path / f"{i}.wav", i, 0.2)
        row = {"id": f"r{i}", "audio": f"{i}.wav", "label": "no" if i < 20 else "yes", "speaker": f"s{i}", "lang": "en"}
        rows.append(row)
    train = manifest(tmp_path / "train.jsonl", rows[:38])
    test = manifest(tmp_path / "test.jsonl", [rows[38], {**rows[39], "label": "maybe", "lang": "de"}])
    report = check_manifests({"train": train, "test": test}, task="label")
    assert "sorted by label" in found(report, "sorted")[0].text
    assert found(report, "label_absent")[0].severity == "block" and "maybe" in found(report, "label_absent")[0].text
    assert found(report, "language_absent")[0].severity == "block"


def test_a_split_column_makes_the_splits(tmp_path, tone, manifest):
    for i in range(4):
        tone(tmp_path / f"{i}.wav", i, 0.3)
    rows = [
        {"id": f"r{i}", "audio": f"{i}.wav", "text": "x", "speaker": "s", "split": "test" if i > 2 else "train"}
        for i in range(4)
    ]
    report = check_paths([manifest(tmp_path / "all.jsonl", rows)])
    assert found(report, "speaker_shared")[0].splits == ("train", "test")


def test_recordings_shared_block_and_files_shared_warn(tmp_path, tone, manifest):
    tone(tmp_path / "long.wav", 1, 3.0)
    rows = [{"id": f"r{i}", "audio": "long.wav", "offset": float(i), "duration": 1.0, "text": "x"} for i in range(3)]
    paths = {"train": manifest(tmp_path / "train.jsonl", rows[:2]), "test": manifest(tmp_path / "test.jsonl", rows[2:])}
    report = check_manifests(paths)
    assert report.ok and found(report, "file_shared")[0].severity == "warn"
    for row in rows:
        row["recording"] = "meeting"
    manifest(paths["train"], rows[:2])
    manifest(paths["test"], rows[2:])
    report = check_manifests(paths)
    assert found(report, "recording_shared")[0].severity == "block" and set(leaks(report).drop.values()) == {
        ("recording_shared",)
    }


def test_manifests_of_one_name_are_splits_by_what_tells_them_apart(tmp_path, tone, manifest):
    tone(tmp_path / "a.wav", 1)
    row = {"id": "x", "audio": str(tmp_path / "a.wav"), "text": "x"}
    for names in (("train/data.jsonl", "test/data.jsonl"), ("data.train.jsonl", "data.test.jsonl")):
        paths = [manifest(tmp_path / name, [row]) for name in names]
        (leak,) = found(check_paths(paths), "audio_shared")
        assert all(word in split for word, split in zip(("train", "test"), leak.splits))
    with pytest.raises(UsageError, match="two manifests are named data"):
        check_paths([paths[0], paths[0]])


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"task": "poem"}, "asr or label"),
        ({"max_duration_s": float("nan")}, "above 0"),
        ({"max_quarantine": 2.0}, "0 to 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path, manifest, option, says):
    with pytest.raises(UsageError, match=says):
        check_paths([manifest(tmp_path / "m.jsonl", [{"audio": "a.wav", "text": "x"}])], **option)
