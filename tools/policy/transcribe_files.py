"""A Nemotron Transcribe folder: load its parts offline, and name what trains and what never does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from tools.errors import UsageError
from tools.policy.vocabulary import BLOCK, Vocabulary

MODEL_TYPE = "nemo_speechlm"
ENCODER = ("model.audio_tower.", "model.multi_modal_projector.")
FROZEN = {
    "word_timestamp_": "the timestamp encoder and head stay as they are",
    "mixer.gate.": "routers stay as they are",
    "mixer.experts.": "routed experts stay as they are",
    "lm_head.": "the output head stays as it is",
    "diarization_model.": "the diarization model stays as it is",
}


def forbidden(name: str) -> str:
    """ "" or why a tensor of this name never trains."""
    return next((why for part, why in FROZEN.items() if part in name), "")


def _speech(name: str) -> bool:
    return name.startswith(ENCODER) and not forbidden(name)


def _language(name: str) -> bool:
    return name.startswith("model.language_model.") and ".embeddings." not in name and not forbidden(name)


SURFACES: dict[str, Callable[[str], bool]] = {
    "decoder": _language,
    "encoder": _speech,
    "all": lambda name: _speech(name) or _language(name),
}


@contextmanager
def quiet() -> Iterator[None]:
    """transformers without its progress bars."""
    from transformers.utils import logging

    bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if bar:
            logging.enable_progress_bar()


def load_parts(folder: Path, device: str, precision: str = "float32") -> tuple[Any, Any]:
    """(model, processor) of a folder of this model type; weights in `precision`. Raises UsageError."""
    try:
        from transformers import Nemotron3_5TranscribeForConditionalGeneration as Model
        from transformers import Nemotron3_5TranscribeProcessor as Processor
    except ImportError as error:
        raise UsageError("Nemotron Transcribe needs transformers 5.22 or newer: install 5.24.0.") from error
    try:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        processor = Processor.from_pretrained(folder, local_files_only=True)
        with quiet():
            loaded: Any = Model.from_pretrained(folder, dtype=dtype, local_files_only=True, output_loading_info=True)
        model, info = loaded
    except Exception as error:  # transformers raises many kinds: all of them mean that the folder cannot be used
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(f"The Nemotron Transcribe folder {folder} cannot be loaded: {reason[:200]}") from error
    missing = sorted(set(info["missing_keys"]) | {str(key) for key in info["mismatched_keys"]})
    if missing:
        raise UsageError(f"The folder {folder} lacks {len(missing)} tensors, {missing[0]} among them; get it anew.")
    return model.to(device), processor


def vocabulary_of(model: Any, tokenizer: Any, device: torch.device) -> Vocabulary:
    """What may be drawn: all that plain generation draws, so only what its settings suppress is left out."""
    settings = model.generation_config
    stop = settings.eos_token_id if settings.eos_token_id is not None else tokenizer.eos_token_id
    stops = [stop] if isinstance(stop, int) else list(stop or [])
    if not stops:
        raise UsageError(
            "The model folder names no token that ends an answer: its generation_config.json is incomplete."
        )
    own = tokenizer.eos_token_id if tokenizer.eos_token_id in stops else stops[0]
    size = int(model.config.text_config.vocab_size)
    banned = {int(i) for i in settings.suppress_tokens or []} | (set(stops) - {own}) | set(range(len(tokenizer), size))
    width = min(size, -(-(max(i for i in range(size) if i not in banned) + 1) // BLOCK) * BLOCK)
    bad = sorted(i for i in banned if 0 <= i < width)
    first = sorted(set(bad) | {int(i) for i in settings.begin_suppress_tokens or [] if 0 <= int(i) < width})
    ids = [torch.tensor(rows, dtype=torch.long, device=device) for rows in (bad, first)]
    special = {at for at, token in tokenizer.added_tokens_decoder.items() if token.special}
    return Vocabulary(width, int(own), frozenset(special | set(tokenizer.all_special_ids)), *ids)
