"""The same audio under other encodings, channels, cuts and augmentations: F02, F03 and what the near search covers."""

import json
import shutil

import numpy as np
import pytest
import soundfile
import soxr

from tools.audio.read import read_clip
from tools.data.checks import check_clips, check_manifests, leaks
from tools.data.splits import make_splits
from tools.rows import Clip


def found(report, *checks):
    return [finding for finding in report.findings if finding.check in checks]


def check(tmp_path, manifest, train, test, **options):
    paths = {"train": manifest(tmp_path / "train.jsonl", train), "test": manifest(tmp_path / "test.jsonl", test)}
    return check_manifests(paths, **{"max_duration_s": 60.0, **options})


@pytest.mark.speech
def test_f02_other_encodings_are_one_identity(tmp_path, shared_speech, manifest):
    folder = shared_speech / "same_audio"
    rows = [{"id": n, "audio": str(folder / n), "text": "x"} for n in ("cold_corpus.wav", "chan3.wav")]
    others = ["cold_corpus_24bit.wav", "cold_corpus_32bit_float.wav", "chan3.sph", "chan3.2chan.wav"]
    report = check(tmp_path, manifest, rows, [{"id": n, "audio": str(folder / n), "text": "y"} for n in others])
    (leak,) = found(report, "audio_shared")
    assert leak.severity == "block" and leak.text.startswith("2 clip(s) of audio in both train and test")
    assert {row.id for row in leak.rows} == {*others, "cold_corpus.wav", "chan3.wav"}
    assert len(leaks(report).drop) == 2


@pytest.mark.speech
@pytest.mark.parametrize("channel", [0, None])
def test_f02_one_channel_of_a_stereo_file(tmp_path, shared_speech, manifest, channel):
    folder = shared_speech / "same_audio"
    flac = {"id": "flac", "audio": str(folder / "61-70968-0000.flac"), "text": "x"}
    stereo = {"id": "stereo", "audio": str(folder / "stereo_diarization.wav"), "text": "y", "channel": channel}
    control = {"id": "ok", "audio": str(folder / "cold_corpus.wav"), "text": "z"}
    report = check(tmp_path, manifest, [flac], [stereo, control])
    (leak,) = found(report, "audio_similar")
    assert leak.severity == "block" and {row.id for row in leak.rows} == {"flac", "stereo"}
    assert [q.kind for q in report.quarantined] == ([] if channel == 0 else ["channel"])


@pytest.mark.speech
def test_f02_augmented_copies(tmp_path, shared_speech, manifest):
    folder = shared_speech / "same_audio/augmented"
    kinds = ["add_noise", "add_reverb", "drop_chunk", "drop_freq", "speed_perturb"]
    rows = [{"id": kind, "audio": str(folder / f"{kind}.flac"), "text": "x"} for kind in kinds]
    report = check(tmp_path, manifest, rows, [{"id": "original", "audio": str(folder / "original.wav"), "text": "x"}])
    (leak,) = found(report, "audio_similar")
    assert {row.id for row in leak.rows} == {*kinds, "original"} and "speed 1.111" in leak.text
    (note,) = found(report, "identity")
    assert "reverberation" in note.text and "speed changed by up to 10 %" in note.text  # the kinds covered are said


@pytest.mark.speech
def test_f03_a_clip_inside_another_file(tmp_path, shared_speech, manifest):
    folder = shared_speech / "same_audio"
    train = [{"id": n, "audio": str(folder / f"{n}.wav"), "text": "x"} for n in ("acoustic_corpus", "cold_corpus")]
    audio = str(folder / "michaelandsickmichael.wav")
    test = [{"id": f"long{c}", "audio": audio, "text": "y", "channel": c} for c in (0, 1)]
    report = check(tmp_path, manifest, train, test)
    (leak,) = found(report, "audio_similar")
    assert "acoustic_corpus (train) in long0 (test) at 0.000 s" in leak.text
    assert "cold_corpus (train) in long1 (test) at 26.723 s" in leak.text
    assert not found(report, "interval_overlap")


@pytest.mark.speech
def test_segments_of_one_recording_are_told_by_arithmetic_alone(tmp_path, shared_speech, manifest):
    audio = str(shared_speech / "read/libri/libri-1088-134315-0000.wav")
    row = {"audio": audio, "text": "x", "duration": 5.0}
    train, test = (
        [{**row, "id": "a", "offset": 1.0}],
        [{**row, "id": "b", "offset": 5.9}, {**row, "id": "c", "offset": 6.0}],
    )
    report = check(tmp_path, manifest, train, test)
    (overlap,) = found(report, "interval_overlap")
    assert "overlap by 0.100 s" in overlap.text and not found(report, "audio_similar", "audio_partly_shared")


@pytest.mark.speech
def test_other_speech_of_one_voice_is_not_the_same(tmp_path, shared_speech, manifest):
    folder = shared_speech / "read"
    train = [{"id": f"t{i}", "audio": str(p), "text": "x"} for i, p in enumerate(sorted(folder.glob("harvard/*.wav")))]
    test = [{"id": f"e{i}", "audio": str(p), "text": "x"} for i, p in enumerate(sorted(folder.glob("lib*/*.wav")))]
    digits = [json.loads(line) for line in (shared_speech / "digits/manifest.jsonl").read_text().splitlines()[::40]]
    for i, row in enumerate(digits):
        row["audio_filepath"] = str(shared_speech / "digits" / row["audio_filepath"])
        (train if i % 2 else test).append(row)
    report = check(tmp_path, manifest, train, test, max_duration_s=30.0)
    assert not found(report, "audio_shared")
    similar = found(report, "audio_similar")
    named = {row.id for finding in similar for row in finding.rows}
    reverberant = next(r["id"] for r in test if r["audio"].endswith("_rvb.wav")) if test else ""
    assert named <= {reverberant}


def test_near_copies_stay_in_one_split(tmp_path, shared_speech):
    wave = read_clip(Clip("x", shared_speech / "read/librivox/sense_and_sensibility_01_austen_64kb-0870.wav"))
    quick = soxr.resample(wave, 16000 * 1.03, 16000)
    soundfile.write(tmp_path / "a.wav", wave, 16000, subtype="PCM_16")
    soundfile.write(tmp_path / "b.mp3", quick, 16000)
    files = [tmp_path / "a.wav", tmp_path / "b.mp3", *sorted(shared_speech.glob("read/harvard/spk1*.wav"))]
    clips = [Clip(f"c{i}", file, f"text {i}", row=i + 1, speaker=f"s{i}") for i, file in enumerate(files)]
    report = check_clips(clips)
    assert [set(pair) for pair in report.same_audio] == [{("", 1), ("", 2)}]
    assert found(report, "audio_similar_inside") and report.near_checked
    for seed in range(5):
        splits = make_splits(report.kept, seed=seed, same=report.same_audio)
        together = [name for name, part in splits.items() if {"c0", "c1"} & {c.id for c in part}]
        assert len(together) == 1


@pytest.mark.speech
def test_the_search_can_be_left_out(tmp_path, shared_speech):
    shutil.copy(shared_speech / "awkward/ok.wav", tmp_path / "a.wav")
    report = check_clips([Clip("a", tmp_path / "a.wav", "x")], near=False)
    assert not report.near_checked and "not looked for" in found(report, "identity")[0].text


def test_downmix_and_channel(tmp_path, shared_speech, manifest):
    """A row on one channel and a file that holds the other channel are different; the downmix of both is not."""
    a = read_clip(Clip("x", shared_speech / "read/harvard/spk1_snt1.wav"))[:32000]
    b = read_clip(Clip("x", shared_speech / "read/harvard/spk2_snt1.wav"))[:32000]
    soundfile.write(tmp_path / "s.wav", np.stack([a, b], axis=1), 16000, subtype="PCM_16")
    soundfile.write(tmp_path / "mix.wav", (a + b) / 2, 16000, subtype="FLOAT")
    soundfile.write(tmp_path / "b.wav", b, 16000, subtype="PCM_16")
    left = [{"id": "left", "audio": "s.wav", "channel": 0, "text": "x"}]
    right = {"id": "right", "audio": "s.wav", "channel": 1, "text": "y"}
    report = check(tmp_path, manifest, left, [right, {"id": "b", "audio": "b.wav", "text": "y"}])
    assert not found(report, "audio_similar")
    mixed = check(tmp_path, manifest, left, [{"id": "mix", "audio": "mix.wav", "text": "y"}])
    assert found(mixed, "audio_shared")


@pytest.mark.speech
def test_a_leak_between_dev_and_test_does_not_spoil_the_threshold(tmp_path, shared_speech, manifest):
    """Few clips, one pair of them a leak under another text: pairs taken to differ are then mostly other pairs."""
    folder = shared_speech / "same_audio"
    wave = read_clip(Clip("x", folder / "augmented/original.wav"))
    noisy = wave + np.random.default_rng(0).normal(0, wave.std() / 10, wave.size)
    soundfile.write(tmp_path / "noisy.wav", noisy, 16000)
    long = {"audio": str(folder / "michaelandsickmichael.wav"), "channel": 1, "offset": 30.0, "duration": 3.5}
    rows = {
        "train": [{"id": "noisy", "audio": "noisy.wav", "text": "words of their own"}],
        "dev": [
            {"id": "cold", "audio": str(folder / "cold_corpus.wav"), "offset": 2.5, "duration": 6.0, "text": "cold"}
        ],
        "test": [{"id": "long", **long, "text": "long"}, {"id": "o", "audio": str(folder / "augmented/original.wav")}],
    }
    rows["dev"].append({"id": "sph", "audio": str(folder / "chan3.sph"), "text": "sph"})
    rows["test"][1]["text"] = "original"
    report = check_manifests({split: manifest(tmp_path / f"{split}.jsonl", part) for split, part in rows.items()})
    assert not found(report, "identity_uncertain")
    assert {f.splits for f in found(report, "audio_similar")} == {("dev", "test"), ("train", "test")}
