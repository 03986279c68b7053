"""Greedy tokens equal CTranslate2's on the same log-mel input: same weights, another engine."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tools.embedded.compare_ct2 import compare, read_folder, table, windows

pytestmark = [
    pytest.mark.seed_model,
    pytest.mark.speech,
    pytest.mark.skipif(importlib.util.find_spec("faster_whisper") is None, reason="faster-whisper is not installed"),
]


def test_greedy_tokens_equal_ctranslate2s_on_all_read_speech(seed_folder: Path, shared_speech: Path) -> None:
    waves = read_folder(shared_speech / "read")
    assert len(waves) >= 30
    rows = compare(waves, transcribe=False)
    assert len(rows) >= len(waves)
    assert not [row.name for row in rows if not row.equal], table(rows)


def test_the_report_shows_where_transcribe_differs(seed_folder: Path, shared_speech: Path) -> None:
    rows = compare(read_folder(shared_speech / "read" / "cards" / "002.wav"))
    text = table(rows)
    assert "1 of 1 clips: greedy tokens equal" in text
    assert (rows[0].transcribed != rows[0].text) == ("transcribe " + repr(rows[0].transcribed) in text)


def test_a_long_clip_is_cut_into_windows() -> None:
    parts = list(windows("long", np.arange(16000 * 45, dtype=np.float32), 30.0))
    assert [(name, len(wave)) for name, wave in parts] == [("long@0s", 480_000), ("long@30s", 240_000)]
    assert [name for name, _ in windows("short", np.zeros(480_000, np.float32), 30.0)] == ["short"]
