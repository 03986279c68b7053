"""Effective weights of a model, adapters merged, and digests over them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

SHAPE_FIELDS = (
    "model_type",
    "vocab_size",
    "d_model",
    "num_mel_bins",
    "encoder_layers",
    "decoder_layers",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "max_source_positions",
    "max_target_positions",
    "activation_function",
    "scale_embedding",
)


def effective(linear: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Weight [out, in] and bias of a linear layer; of an adapted one (LoRA and kin) what its forward amounts to."""
    if isinstance(linear, nn.Linear):
        return linear.weight, linear.bias
    from tools.policy.adapters import merged

    return merged(linear)


def plain_state(model: nn.Module) -> dict[str, Tensor]:
    """State with the names of a model without adapters: adapters merged, tied tensors once. Detached, not copied."""
    wrapped = {name: module for name, module in model.named_modules() if hasattr(module, "base_layer")}
    state: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen and not any(name.startswith(f"{w}.") for w in wrapped):
            state[name] = tensor.detach()
        seen.add(tensor.data_ptr())
    for name, module in wrapped.items():
        weight, bias = effective(module)
        state[f"{name}.weight"] = weight.detach()
        if bias is not None:
            state[f"{name}.bias"] = bias.detach()
    return dict(sorted(state.items()))


def _feed(digest: Any, name: str, tensor: Tensor) -> None:
    array = tensor.contiguous().cpu()
    digest.update(f"{name} {array.dtype} {tuple(array.shape)}\n".encode())
    digest.update(array.reshape(-1).view(torch.uint8).numpy().data)


def state_digest(state: Mapping[str, Tensor], config: Mapping[str, Any]) -> str:
    """sha256 over all tensors (name, dtype, shape, bytes; sorted by name) and the config's fields of shape."""
    digest = hashlib.sha256()
    fields = {key: config.get(key) for key in SHAPE_FIELDS}
    digest.update(json.dumps(fields, sort_keys=True).encode())
    for name in sorted(state):
        _feed(digest, name, state[name])
    return digest.hexdigest()
