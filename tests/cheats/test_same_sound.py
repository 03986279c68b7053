"""Sound that is in two splits under another name, level, encoding, channel or cut: found by the audit on its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from agent.ledger.audit import audit
from agent.ledger.chain import Ledger
from tools.audio.identity import clip_digest
from tools.audio.read import load_wave, read_clip
from tools.rows import Clip

RULES = {"data-audio-shared", "data-audio-similar", "data-audio-digests"}


@pytest.fixture(scope="module")
def speech(shared_speech: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """Two different real recordings, mono, and their rate."""
    folder = shared_speech / "read" / "harvard"
    (one, rate), (other, again) = (load_wave(folder / name) for name in ("spk1_snt1.wav", "spk2_snt2.wav"))
    assert rate == again and min(one.shape[1], other.shape[1]) > 1.5 * rate
    return one[0], other[0], rate


def workdir(folder: Path, train: Path, test: Path) -> Path:
    """A ledger with a data check, and a membership of one training and one test clip."""
    rows = []
    for split, path in (("train", train), ("test", test)):
        sha = clip_digest(read_clip(Clip("x", path, channel=0)))
        row = {"id": f"{split}-1", "split": split, "speaker": None, "recording": None, "lang": "en", "audio": str(path)}
        rows.append(
            {**row, "offset_s": 0.0, "duration_s": None, "channel": 0, "audio_sha256": sha, "text_sha256": None}
        )
    (folder / "data").mkdir()
    (folder / "data/membership.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ledger = Ledger.open(folder)
    ledger.append("note", {"text": "begun"})
    ledger.close()
    return folder


def louder(wave: np.ndarray, rate: int) -> dict[str, Any]:
    return {"data": wave * 0.5, "samplerate": rate, "subtype": "PCM_16"}


def cut(wave: np.ndarray, rate: int) -> dict[str, Any]:
    return {"data": wave[rate // 4 : -rate // 8], "samplerate": rate, "subtype": "PCM_16"}


def encoded(wave: np.ndarray, rate: int) -> dict[str, Any]:
    return {"data": wave, "samplerate": rate, "format": "OGG", "subtype": "VORBIS"}


def channel(wave: np.ndarray, rate: int) -> dict[str, Any]:
    return {"data": np.stack([wave, np.zeros_like(wave)], axis=1), "samplerate": rate, "subtype": "PCM_24"}


@pytest.mark.speech
@pytest.mark.parametrize("change", [louder, cut, encoded, channel], ids=lambda f: f.__name__)
def test_a_train_clip_in_test_is_found_however_it_was_changed(
    tmp_path: Path, speech: tuple[np.ndarray, np.ndarray, int], change: Callable[..., dict[str, Any]]
) -> None:
    wave, _, rate = speech
    soundfile.write(tmp_path / "a.wav", wave, rate, subtype="PCM_16")
    made = change(wave, rate)
    name = tmp_path / ("b.ogg" if made.get("format") == "OGG" else "b.wav")
    soundfile.write(name, **made)
    report = audit(workdir(tmp_path, tmp_path / "a.wav", name), only=RULES)
    assert set(report.rules) & {"data-audio-shared", "data-audio-similar"}, report.to_text()
    assert {f["line"] for v in report.violations for f in v["files"]} == {1, 2}


@pytest.mark.speech
def test_two_different_recordings_are_no_leak(tmp_path: Path, speech: tuple[np.ndarray, np.ndarray, int]) -> None:
    one, other, rate = speech
    soundfile.write(tmp_path / "a.wav", one, rate, subtype="PCM_16")
    soundfile.write(tmp_path / "b.wav", other, rate, subtype="PCM_16")
    assert audit(workdir(tmp_path, tmp_path / "a.wav", tmp_path / "b.wav"), only=RULES).ok


@pytest.mark.speech
def test_a_recording_made_louder_after_the_check_is_named(
    tmp_path: Path, speech: tuple[np.ndarray, np.ndarray, int]
) -> None:
    one, other, rate = speech
    soundfile.write(tmp_path / "a.wav", one, rate, subtype="PCM_16")
    soundfile.write(tmp_path / "b.wav", other, rate, subtype="PCM_16")
    checked = workdir(tmp_path, tmp_path / "a.wav", tmp_path / "b.wav")
    soundfile.write(tmp_path / "b.wav", other * 0.9, rate, subtype="PCM_16")
    report = audit(checked, only=RULES)
    assert report.rules == ["data-audio-digests"]
    assert report.violations[0]["files"][0] == {"path": "data/membership.jsonl", "line": 2}
