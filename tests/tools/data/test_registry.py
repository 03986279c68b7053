"""The contamination registry: collisions are found, nothing else can be read from it."""

import json

import numpy as np
import pytest
import soundfile

from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.data.registry import Registry, build, check, publishable
from tools.errors import CheckError, UsageError
from tools.rows import Clip

SALT = bytes(range(16))

pytestmark = pytest.mark.speech


@pytest.fixture
def benchmark(tmp_path, shared_speech, manifest):
    """A private test set of real clips, and its registry."""
    files = sorted([*shared_speech.glob("read/librivox/*.wav"), *shared_speech.glob("read/languages/??.wav")])
    texts = [f"the secret sentence of clip number {i}" for i in range(len(files))]
    rows = [{"id": f"secret{i}", "audio": str(f), "text": t} for i, (f, t) in enumerate(zip(files, texts))]
    built = build([manifest(tmp_path / "private.jsonl", rows)], tmp_path / "registry.jsonl", salt=SALT, name="bench")
    return files, texts, built


def test_it_says_nothing_but_what_it_must(tmp_path, benchmark):
    files, _, built = benchmark
    published = (tmp_path / "registry.jsonl").read_text()
    head, *entries = [json.loads(line) for line in published.splitlines()]
    assert (built.clips, built.texts, built.texts_left_out) == (len(files), len(files), 0)
    for secret in ("secret", "sentence", str(files[-1]), files[-1].stem, "librivox"):
        assert secret not in published.replace(json.dumps(head["statement"]), "")
    assert [e["exact"] for e in entries[:-1]] == sorted(e["exact"] for e in entries[:-1])  # not the manifest's order
    assert entries[-1]["texts"] == sorted(entries[-1]["texts"])
    assert any("guess" in sentence for sentence in head["statement"])
    again = build([tmp_path / "private.jsonl"], tmp_path / "again.jsonl", salt=SALT, name="bench")
    assert (tmp_path / "again.jsonl").read_text() == published and again.clips == built.clips
    other = build([tmp_path / "private.jsonl"], tmp_path / "other.jsonl")
    assert other.clips == built.clips
    salted = json.loads((tmp_path / "other.jsonl").read_text().splitlines()[-1])
    assert not set(salted["texts"]) & set(entries[-1]["texts"])


def test_collisions_by_row_and_the_cleaned_manifest(tmp_path, shared_speech, benchmark, manifest):
    files, texts, _ = benchmark
    wave = read_clip(Clip("x", files[2]))
    soundfile.write(tmp_path / "same.flac", wave, 16000, subtype="PCM_24")
    soundfile.write(tmp_path / "lossy.mp3", 0.4 * wave, 16000)
    long = np.concatenate([read_clip(Clip("x", f)) for f in sorted(shared_speech.glob("read/harvard/*.wav"))[:6]])
    soundfile.write(tmp_path / "long.wav", np.concatenate([long, read_clip(Clip("x", files[3])), long]), 16000)
    rows = [
        {"id": "same", "audio": "same.flac", "text": "other words entirely here"},
        {"id": "lossy", "audio": "lossy.mp3", "text": "other words again over here"},
        {"id": "long", "audio": "long.wav", "text": "x"},
        {"id": "text", "audio": str(shared_speech / "read/cards/001.wav"), "text": texts[4].upper() + "!"},
        {"id": "clean", "audio": str(shared_speech / "read/harvard/spk2_snt1.wav"), "text": "nothing of the kind"},
        {"id": "gone", "audio": "gone.wav", "text": "y"},
    ]
    train = manifest(tmp_path / "train.jsonl", rows)
    report = check([train], tmp_path / "registry.jsonl", clean_to=tmp_path / "clean.jsonl")
    assert [(c.id, c.kind) for c in report.collisions] == [
        ("same", "exact"),
        ("lossy", "near"),
        ("long", "near"),
        ("text", "text"),
    ]
    assert not report.ok and [q.id for q in report.quarantined] == ["gone"] and report.rows_in == 6
    assert [c.id for c in read_manifest(tmp_path / "clean.jsonl").rows] == ["text", "clean"]
    out = report.to_json()
    assert out["collisions"][0] == {"manifest": str(train), "row": 1, "id": "same", "kind": "exact", "score": 1.0}
    strict = check([train], tmp_path / "registry.jsonl", clean_to=tmp_path / "clean.jsonl", drop_text=True)
    assert strict.kept == 1
    clean = check([tmp_path / "clean.jsonl"], tmp_path / "registry.jsonl")
    assert clean.ok and not clean.collisions


def test_other_recordings_do_not_collide(tmp_path, shared_speech, benchmark, manifest):
    files = sorted([*shared_speech.glob("read/harvard/*.wav"), *shared_speech.glob("read/cards/*.wav")])
    rows = [{"audio": str(f), "text": "same short text"} for f in files]
    report = check([manifest(tmp_path / "train.jsonl", rows)], tmp_path / "registry.jsonl")
    assert report.ok and report.collisions == [] and report.kept == len(files)


def test_short_sentences_are_left_out(tmp_path, tone, manifest):
    assert publishable("a sentence of words") and not publishable("turn it off") and not publishable("yes")
    assert publishable("我们今天早上坐公共汽车去城里的学校上课真好") and not publishable("我们去学校")
    tone(tmp_path / "a.wav", 1, 2.0)
    path = manifest(tmp_path / "m.jsonl", [{"audio": "a.wav", "text": "yes"}])
    built = build([path], tmp_path / "r.jsonl")
    assert (built.clips, built.texts, built.texts_left_out) == (1, 0, 1)
    assert [c.kind for c in check([path], tmp_path / "r.jsonl").collisions] == ["exact"]


def test_bad_files_get_one_sentence(tmp_path, manifest):
    with pytest.raises(UsageError, match="cannot be opened"):
        Registry.load(tmp_path / "none")
    for text in ("", "{}", "not json", '{"kind": "rehear-registry", "version": 9}', "[1]"):
        (tmp_path / "r.jsonl").write_text(text)
        with pytest.raises(UsageError, match="no contamination registry"):
            Registry.load(tmp_path / "r.jsonl")
    path = manifest(tmp_path / "m.jsonl", [{"audio": "gone.wav", "text": "x"}])
    with pytest.raises(CheckError, match="nothing to publish"):
        build([path], tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
