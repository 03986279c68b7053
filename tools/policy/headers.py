"""What a model folder holds, from its headers alone: config.json and the JSON head of each safetensors file."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.errors import UsageError

BYTES = {
    "F64": 8,
    "I64": 8,
    "F32": 4,
    "I32": 4,
    "BF16": 2,
    "F16": 2,
    "I16": 2,
    "F8_E4M3": 1,
    "U8": 1,
    "I8": 1,
    "BOOL": 1,
}
DEFAULT = "nemotron-3.5-transcribe"


@dataclass(frozen=True)
class Stored:
    """Tensors, scalars and bytes of a folder's safetensors files."""

    tensors: int
    scalars: int
    bytes: int


def read_header(path: Path) -> dict[str, Any]:
    """The head of a safetensors file: {tensor: {dtype, shape, data_offsets}}. Raises UsageError where it is none."""
    try:
        with path.open("rb") as handle:
            (length,) = struct.unpack("<Q", handle.read(8))
            if not 0 < length < 2**28:
                raise ValueError(f"a header of {length} bytes")
            body = json.loads(handle.read(length))
        return {name: facts for name, facts in body.items() if name != "__metadata__"}
    except (OSError, ValueError, struct.error) as error:
        raise UsageError(f"{path} is not a safetensors file: {error}") from error


def stored(folder: Path) -> Stored | None:
    """What the folder's safetensors files hold; None where it has none."""
    files = sorted(folder.glob("*.safetensors"))
    tensors = scalars = size = 0
    for file in files:
        for facts in read_header(file).values():
            count = 1
            for side in facts["shape"]:
                count *= side
            tensors, scalars = tensors + 1, scalars + count
            size += count * BYTES.get(facts["dtype"], 4)
    return Stored(tensors, scalars, size) if files else None


def empty_model(model: str) -> tuple[Any, Stored | None]:
    """The model with no weights in it (torch's meta device) and what its folder holds.

    `model` is a Hugging Face folder, a config.json, or `nemotron-3.5-transcribe` for the published shape of that family.
    Raises UsageError for anything else.
    """
    import torch
    from transformers import AutoConfig, Nemotron3_5TranscribeConfig, Nemotron3_5TranscribeForConditionalGeneration
    from transformers import WhisperForConditionalGeneration as Whisper

    path = Path(model)
    folder = path.parent if path.name == "config.json" else path
    kinds: dict[str, Any] = {"whisper": Whisper, "nemo_speechlm": Nemotron3_5TranscribeForConditionalGeneration}
    if not (folder / "config.json").is_file():
        if model.lower().removeprefix("nvidia/") not in (DEFAULT, "nvidia-nemotron-3.5-transcribe-30b-a4b"):
            raise UsageError(f"{model} is neither a folder with a config.json nor {DEFAULT}: give one of the two")
        config: Any = Nemotron3_5TranscribeConfig()
    else:
        try:
            config = AutoConfig.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # transformers raises many kinds
            raise UsageError(f"{folder / 'config.json'} cannot be read: {str(error).splitlines()[0][:200]}") from error
    if config.model_type not in kinds:
        raise UsageError(f"{model} is a {config.model_type}; memory is planned for {', '.join(kinds)}")
    with torch.device("meta"):
        empty = kinds[config.model_type](config)
    return empty.eval(), stored(folder) if folder.is_dir() else None
