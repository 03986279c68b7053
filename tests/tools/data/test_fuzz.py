"""Damaged input: no crash, no hang, no row lost. The long run is `pytest -m figures tests/tools/data/test_fuzz.py`."""

import random
import time

import pytest

from tests.tools.data import fuzz
from tools.audio.facts import audio_facts
from tools.data.checks import check_paths
from tools.data.manifest import read_manifest
from tools.errors import RehearError
from tools.rows import Clip

HANG_S = 20.0


def manifests(tmp_path, tone, seed, count):
    """Read damaged manifests; every tenth goes through the whole check."""
    for i, name in enumerate("ab"):
        tone(tmp_path / f"{name}.wav", i, 0.3)
    read = errors = 0
    for i in range(count):
        kind, data = fuzz.manifest(random.Random(f"{seed}:{i}"))
        path = tmp_path / f"m.{kind}"
        path.write_bytes(data)
        started = time.monotonic()
        try:
            found = read_manifest(path)
            read += 1
            if found.format == "json_lines" and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
                end = b"\r" if b"\n" not in data and b"\r" in data.strip() else b"\n"
                lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(end) if not blank(line)]
                assert len(found.rows) + len(found.quarantined) == len(lines), (seed, i)
            if i % 10 == 0:
                report = check_paths([path], near=False)
                assert report.rows_in == len(report.kept) + len(report.quarantined), (seed, i)
                assert report.rows_in == len(found.rows) + len(found.quarantined), (seed, i)
        except RehearError as error:
            errors += 1
            assert "\n" not in str(error).strip() and str(error), (seed, i)
        assert time.monotonic() - started < HANG_S, (seed, i)
    return read, errors


def blank(line):
    try:
        return not line.decode("utf-8").strip()
    except UnicodeDecodeError:
        return False


def audio(tmp_path, seed, count):
    whole = fuzz.sounds()
    usable = 0
    for i in range(count):
        path = tmp_path / "damaged"
        path.write_bytes(fuzz.sound(random.Random(f"{seed}:{i}"), whole))
        started = time.monotonic()
        facts, waves = audio_facts(Clip(f"{i}", path, "x"))
        assert time.monotonic() - started < HANG_S, (seed, i)
        assert (facts.error is None) == bool(facts.digest) and (facts.error is None or all(facts.error)), (seed, i)
        usable += facts.error is None and all(wave.size for _, wave in waves)
    return usable


def test_manifests_in_small(tmp_path, tone):
    read, errors = manifests(tmp_path, tone, 1, 300)
    assert read > 200 and errors > 0


def test_audio_in_small(tmp_path):
    assert 5 < audio(tmp_path, 1, 120) < 120


@pytest.mark.figures
def test_ten_thousand_manifests(tmp_path, tone):
    read, errors = manifests(tmp_path, tone, 2, 10_000)
    print(f"10,000 damaged manifests: {read} read, {errors} refused in one sentence, no crash, no hang, no row lost")


@pytest.mark.figures
def test_two_thousand_audio_files(tmp_path):
    usable = audio(tmp_path, 2, 2_000)
    print(f"2,000 damaged audio files: {usable} usable, {2_000 - usable} refused in one sentence, no crash, no hang")
