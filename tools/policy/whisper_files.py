"""Load the parts of a Hugging Face Whisper folder, offline, with one clear sentence where it cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tools.embedded.seed import check_folder
from tools.errors import UsageError


def load_parts(folder: Path, device: str) -> tuple[Any, Any, Any]:
    """(model in float32, tokenizer, feature extractor) of a Whisper folder. Raises UsageError."""
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizer
    from transformers.utils import logging

    check_folder(folder)
    bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        tokenizer = WhisperTokenizer.from_pretrained(folder, local_files_only=True)
        loaded: Any = WhisperForConditionalGeneration.from_pretrained(
            folder,
            dtype=torch.float32,
            attn_implementation="sdpa",
            local_files_only=True,
            output_loading_info=True,
        )
        model, info = loaded
        extractor = _extractor(WhisperFeatureExtractor, folder, model.config.num_mel_bins)
    except Exception as err:  # transformers raises many kinds: all of them mean that the folder cannot be used
        reason = str(err).strip().splitlines()[0] if str(err).strip() else type(err).__name__
        raise UsageError(f"The Whisper folder {folder} cannot be loaded: {reason[:200]}") from err
    finally:
        if bar:
            logging.enable_progress_bar()
    missing = sorted(set(info["missing_keys"]) | {str(key) for key in info["mismatched_keys"]})
    if missing:
        raise UsageError(
            f"The Whisper folder {folder} lacks {len(missing)} tensors, {missing[0]} among them; get it anew."
        )
    return model.to(device), tokenizer, extractor


def _extractor(kind: Any, folder: Path, mels: int) -> Any:
    if (folder / "preprocessor_config.json").is_file():
        return kind.from_pretrained(folder, local_files_only=True)
    return kind(feature_size=mels)
