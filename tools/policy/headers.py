"""What a model folder holds, from its headers alone: config.json and the JSON head of each safetensors file."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.errors import UsageError

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
DEFAULT = "nemotron-3.5-transcribe"


@dataclass(frozen=True)
class Stored:
    """Tensors, scalars and bytes of a folder's safetensors files; `missing`: files that belong to it and are not there."""

    tensors: int
    scalars: int
    bytes: int
    missing: tuple[str, ...] = ()


def read_header(path: Path) -> dict[str, Any]:
    """The head of a safetensors file: {tensor: {dtype, shape, data_offsets}}. Raises UsageError where it is none."""
    try:
        with path.open("rb") as handle:
            (length,) = struct.unpack("<Q", handle.read(8))
            if not 0 < length < 2**28:
                raise ValueError(f"a header of {length} bytes")
            body = json.loads(handle.read(length))
        heads = {name: facts for name, facts in body.items() if name != "__metadata__"}
        for facts in heads.values():
            begin, end = facts["data_offsets"]
            if not (
                isinstance(facts["dtype"], str) and 0 <= begin <= end and all(side >= 0 for side in facts["shape"])
            ):
                raise ValueError("a tensor without type, shape or place")
        return heads
    except (OSError, ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise UsageError(f"{path} is not a safetensors file: {error}") from error


def weight_files(folder: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The files that a model is loaded from, those that are there and the names of those that are not.

    As transformers chooses: `model.safetensors`, else what the index names; without either all there are, of which no
    model can be loaded.
    """
    if (folder / SINGLE).is_file():
        return [folder / SINGLE], ()
    if not (folder / INDEX).is_file():
        found = sorted(folder.glob("*.safetensors"))
        return found, (INDEX,) if found else ()
    try:
        named = sorted({str(name) for name in json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{folder / INDEX} cannot be read: get it anew") from error
    there = [folder / name for name in named if (folder / name).is_file()]
    return there, tuple(name for name in named if not (folder / name).is_file())


def stored(folder: Path) -> Stored | None:
    """What the folder's safetensors files hold; None where it has none."""
    files, missing = weight_files(folder)
    heads = [facts for file in files for facts in read_header(file).values()]
    sizes = [facts["data_offsets"][1] - facts["data_offsets"][0] for facts in heads]
    scalars = sum(math.prod(facts["shape"]) for facts in heads)
    return Stored(len(heads), scalars, sum(sizes), missing) if files or missing else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, or with a zero byte in it
        return False


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
    if not _is_file(folder / "config.json"):
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
    try:
        with torch.device("meta"):
            empty = kinds[config.model_type](config)
    except Exception as error:  # each class checks its own shape in its own way
        raise UsageError(f"{model}: no model can be made from its config.json: {str(error)[:200]}") from error
    return empty.eval(), stored(folder) if folder.is_dir() else None
