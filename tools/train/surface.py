"""What trains and what stays: the trainable tensors by name, and digests over them and over the frozen rest.

A surface is named (the policy knows what it means) or listed tensor by tensor; a list must come with the number of its
tensors and scalars, which is asserted before the first step. With an adapter, low-rank factors on the surface's linear
layers train in its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from tools.errors import CheckError, UsageError
from tools.train.config import GspoConfig


def trained_surface(policy: Any, config: GspoConfig) -> dict[str, Any]:
    """The trainable parameters by name. Raises CheckError where counts asserted in the settings do not hold."""
    surface = config.surface if isinstance(config.surface, str) else list(config.surface)
    named = dict(policy.trainable(surface))
    if config.freeze:
        _all_match("freeze", config.freeze, list(named))
        named = {k: p for k, p in named.items() if not any(part in k for part in config.freeze)}
        if not named:
            raise UsageError("freeze takes every tensor of the training surface: nothing is left to train")
        named = dict(policy.trainable(sorted(named)))
    if config.adapter != "none":
        named = _adapted(policy, named, config)
    tensors, scalars = len(named), sum(p.numel() for p in named.values())
    if not isinstance(config.surface, str) and None in (config.surface_tensors, config.surface_scalars):
        raise UsageError(
            "a surface that lists its tensors needs surface_tensors and surface_scalars, to be asserted before the first "
            f"step: this one has {tensors} and {scalars}"
        )
    for what, want, have in (
        ("tensors", config.surface_tensors, tensors),
        ("scalars", config.surface_scalars, scalars),
    ):
        if want is not None and want != have:
            raise CheckError(f"the training surface has {have:,} {what} where the settings assert {want:,}")
    return named


def _all_match(setting: str, parts: Sequence[str], names: Sequence[str]) -> None:
    """Raises UsageError for a part that stands in no name: a slip of the pen would otherwise train something else."""
    idle = [part for part in parts if not any(part in name for name in names)]
    if idle:
        raise UsageError(f"{setting}: no tensor of the training surface has {idle[0]!r} in its name")


def _adapted(policy: Any, named: dict[str, Any], config: GspoConfig) -> dict[str, Any]:
    from tools.policy.adapters import AdapterSpec, add_adapters

    _all_match("adapter_layers", config.adapter_layers, list(named))
    kind, rank, alpha = config.adapter, config.adapter_rank, config.adapter_alpha
    spec = AdapterSpec(kind, rank, alpha, config.adapter_layers, config.random_seed)
    return dict(add_adapters(policy.model, sorted(named), spec))


def plain_weights(policy: Any, named: dict[str, Any]) -> dict[str, Any]:
    """What the trained tensors amount to under the names of the plain model: adapters merged into their layers."""
    if not any(".lora_" in name for name in named):
        return {name: p.detach() for name, p in named.items()}
    from tools.policy.adapters import merged

    layers = sorted({name.split(".lora_")[0] for name in named})
    return {f"{layer}.weight": merged(policy.model.get_submodule(layer))[0] for layer in layers}


def tensors_digest(named: dict[str, Any]) -> str:
    """sha256 over names, shapes and bytes of tensors, in order of name."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(named):
        array = named[name].detach().cpu().contiguous()
        digest.update(f"{name} {array.dtype} {tuple(array.shape)}\n".encode())
        digest.update(array.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def frozen_digest(policy: Any, trained: dict[str, Any]) -> str:
    """sha256 over every tensor of the model that does not train (tied to a trained one counts as trained)."""
    moving = {p.data_ptr() for p in trained.values()}
    state = policy.model.state_dict()
    return tensors_digest({k: t for k, t in state.items() if t.data_ptr() not in moving})
