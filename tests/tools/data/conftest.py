"""Small real inputs for the data room: tones as audio, manifests as the customer writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile


@pytest.fixture
def tone() -> Callable[..., Path]:
    """Write a wav of noise that is the same for the same seed; returns its path."""

    def write(path: Path, seed: int = 0, seconds: float = 1.0, rate: int = 16000) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        wave = np.random.default_rng(seed).normal(0, 0.1, round(seconds * rate))
        soundfile.write(path, wave, rate, subtype="PCM_16")
        return path

    return write


@pytest.fixture
def manifest() -> Callable[..., Path]:
    """Write rows as JSON lines; returns the path."""

    def write(path: Path, rows: list[dict]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    return write
