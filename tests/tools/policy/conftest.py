from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.tools.policy.tiny import noise, tiny_whisper
from tools.policy.whisper import WhisperPolicy


@pytest.fixture(scope="session")
def multilingual_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_whisper(tmp_path_factory.mktemp("tiny") / "multilingual")


@pytest.fixture(scope="session")
def english_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_whisper(tmp_path_factory.mktemp("tiny") / "english", multilingual=False)


@pytest.fixture
def tiny(multilingual_folder: Path) -> WhisperPolicy:
    """A fresh tiny multilingual policy."""
    return WhisperPolicy.load(multilingual_folder)


@pytest.fixture(scope="session")
def tiny_encoded(multilingual_folder: Path) -> torch.Tensor:
    """Encoder outputs of three noises under the tiny multilingual policy."""
    with torch.no_grad():
        return WhisperPolicy.load(multilingual_folder).encode([noise(seed) for seed in range(3)])
