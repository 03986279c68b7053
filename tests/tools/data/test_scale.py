"""F15 in small, and the promise of map and reduce: however the work is cut up, the report is the same."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import soundfile

import tools.data.checks as checks
from tools.data.checks import check_clips, check_manifests, check_paths
from tools.rows import Clip

ROWS = 20_000


@pytest.fixture
def huge(tmp_path, tone):
    """20,000 rows that point at 10 files; the last line has no end, the one before it is broken."""
    for i in range(10):
        tone(tmp_path / f"{i}.wav", i, 1.5)
    with open(tmp_path / "train.jsonl", "w") as out:
        for i in range(ROWS):
            row = {
                "id": f"r{i}",
                "audio": f"{i % 10}.wav",
                "text": f"text {i % 500}",
                "speaker": f"s{i % 70}",
                "lang": "en",
            }
            out.write("{broken" if i == ROWS - 2 else json.dumps(row))
            out.write("\n" if i < ROWS - 1 else "")
    return tmp_path / "train.jsonl"


def test_f15_each_file_is_heard_once_and_no_row_is_lost(huge):
    heard = []

    def counting(function, items):
        for item in items:
            heard.extend([item] if hasattr(item, "audio") else [])
            yield function(item)

    told = []
    report = check_paths([huge], mapper=counting, progress=lambda *done: told.append(done))
    assert len(heard) == 10 and report.rows_in == ROWS and len(report.kept) == ROWS - 1
    assert [q.row for q in report.quarantined] == [ROWS - 1] and report.kept[-1].id == f"r{ROWS - 1}"
    assert told[-1] == ("audio", 10, 10) and ("rows", ROWS, 0) in told
    (twice,) = [f for f in report.findings if f.check == "audio_duplicate"]
    assert len(twice.rows) == ROWS - 1 and len(twice.to_json()["rows"]) == 1_000


@pytest.mark.speech
def test_the_report_is_the_same_however_the_work_is_cut_up(tmp_path, shared_speech, manifest, monkeypatch):
    rows = [json.loads(line) for line in (shared_speech / "digits/manifest.jsonl").read_text().splitlines()[::25]]
    for i, row in enumerate(rows):
        row["audio_filepath"] = str(shared_speech / "digits" / row["audio_filepath"])
        row["id"] = row["id"] if i % 9 else "twice"
        row["text"] = row["text"] if i % 11 else None
    long = [{"id": p.stem, "audio": str(p), "text": "x"} for p in sorted(shared_speech.glob("read/harvard/*.wav"))]
    paths = {
        "train": manifest(tmp_path / "train.jsonl", rows[:50] + long),
        "test": manifest(tmp_path / "test.jsonl", rows[40:] + long[3:5]),
    }
    plain = check_manifests(paths)
    assert plain.quarantined and not plain.ok
    for chunk in (1, 7, 1000):
        monkeypatch.setattr(checks, "CHUNK", chunk)
        with ThreadPoolExecutor(3) as pool:
            cut_up = check_manifests(paths, mapper=pool.map)
        assert cut_up.to_json() == plain.to_json() and cut_up.kept == plain.kept


@pytest.mark.speech
def test_f11_a_second_check_takes_only_what_changed(tmp_path, shared_speech, manifest):
    files = sorted((shared_speech / "read/harvard").glob("*.wav"))
    for file in files:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    wave, rate = soundfile.read(files[0])
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    names = [*(f.name for f in files), "broken.wav"]
    rows = [{"id": n, "audio": n, "text": f"text {i}", "speaker": f"s{i}"} for i, n in enumerate(names)]
    path = manifest(tmp_path / "pool.jsonl", rows)
    heard = []

    def counting(function, items):
        for item in items:
            heard.extend([item.id] if hasattr(item, "audio") else [])
            yield function(item)

    def checked(**options):
        heard.clear()
        return check_paths([path], mapper=counting, max_quarantine=0.5, cache=tmp_path / "facts.sqlite", **options)

    first = checked()
    assert len(heard) == len(names) and [q.id for q in first.quarantined] == ["broken.wav"]
    again = checked()
    assert heard == [] and again.to_json() == first.to_json() and again.kept == first.kept
    soundfile.write(tmp_path / "broken.wav", np.concatenate([np.zeros(3000), 0.5 * wave]), rate)
    mended = checked()
    assert heard == ["broken.wav"] and not mended.quarantined
    (copy,) = [f for f in mended.findings if f.check == "audio_similar_inside"]
    assert {row.id for row in copy.rows} == {"broken.wav", files[0].name}
    anew = check_paths([path], max_quarantine=0.5)
    assert mended.kept == anew.kept and mended.same_audio == anew.same_audio
    assert [f.check for f in mended.findings] == [f.check for f in anew.findings]
    assert checked().to_json() == mended.to_json() and heard == []


@pytest.mark.speech
def test_the_cache_asks_again_when_the_stored_side_grew(tmp_path, shared_speech, manifest):
    files = sorted((shared_speech / "read/harvard").glob("*.wav"))
    wave, rate = soundfile.read(files[0])
    soundfile.write(tmp_path / "copy.wav", 0.5 * wave[2000:], rate)
    train = manifest(tmp_path / "train.jsonl", [{"audio": str(f), "text": f.stem} for f in files[:6]])
    test = [{"audio": str(f), "text": f.stem} for f in files[6:]]
    paths = {"train": train, "test": manifest(tmp_path / "test.jsonl", test)}
    cache = tmp_path / "facts.sqlite"
    assert not [f for f in check_manifests(paths, cache=cache).findings if f.check == "audio_similar"]
    manifest(paths["test"], [*test, {"audio": "copy.wav", "text": "copy"}])
    grown = check_manifests(paths, cache=cache)
    assert [f.check for f in grown.blocks] == ["audio_similar"]
    assert [f.to_json()["rows"] for f in grown.findings] == [
        f.to_json()["rows"] for f in check_manifests(paths).findings
    ]


@pytest.mark.speech
def test_a_pool_and_then_its_splits_with_one_cache(tmp_path, shared_speech):
    """As a run does that makes its splits itself: the second check hears nothing and says what it would without a cache."""
    files = sorted((shared_speech / "read/harvard").glob("*.wav"))
    wave, rate = soundfile.read(files[0])
    soundfile.write(tmp_path / "copy.wav", 0.5 * wave[2000:], rate)
    rows = [Clip(f.stem, f, f.stem, split="manifest", row=i + 1) for i, f in enumerate([*files, tmp_path / "copy.wav"])]
    for test in ({1, 3, 5}, {0, 1, 2}):  # the original is row 0, its copy the last one
        cache = tmp_path / f"{min(test)}.sqlite"
        pool = check_clips(rows, cache=cache)
        assert pool.heard == len(rows) and pool.same_audio
        dealt = [replace(c, split="test" if i in test else "train", duration_s=None) for i, c in enumerate(pool.kept)]
        again, anew = check_clips(dealt, cache=cache), check_clips(dealt)
        assert again.kept == anew.kept and again.heard == 0
        assert [(f.check, f.splits) for f in again.findings] == [(f.check, f.splits) for f in anew.findings]
        assert [f.check for f in again.blocks] == (["audio_similar"] if 0 in test else [])
