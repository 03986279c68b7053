"""A policy of whatever family a folder holds."""

from __future__ import annotations

import json
from pathlib import Path

from tools.policy.base import Policy
from tools.policy.transcribe_files import MODEL_TYPE


def model_type(folder: Path) -> str:
    """The model type that the folder's config.json names; "" where it names none."""
    try:
        return str(json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")).get("model_type", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def load_policy(folder: str | Path, device: str = "cpu", precision: str = "float32") -> Policy:
    """Nemotron Transcribe where the folder is one, else Whisper, whose loader says what is wrong with any other folder.

    `precision` "bf16" is for large models on a GPU; Whisper's weights are always float32.
    """
    if model_type(Path(folder)) == MODEL_TYPE:
        from tools.policy.transcribe import TranscribePolicy

        return TranscribePolicy.load(folder, device, precision)
    from tools.policy.whisper import WhisperPolicy

    return WhisperPolicy.load(folder, device)
