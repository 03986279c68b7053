"""What trains and what stays: the trainable tensors by name, and digests over them and over the frozen rest."""

from __future__ import annotations

import hashlib
from typing import Any

from tools.errors import CheckError
from tools.train.config import GspoConfig


def trained_surface(policy: Any, config: GspoConfig) -> dict[str, Any]:
    """The trainable parameters by name. Raises CheckError where counts asserted in the settings do not hold."""
    surface = config.surface if isinstance(config.surface, str) else list(config.surface)
    named = dict(policy.trainable(surface))
    if config.freeze:
        named = {k: p for k, p in named.items() if not any(part in k for part in config.freeze)}
        named = dict(policy.trainable(sorted(named)))
    tensors, scalars = len(named), sum(p.numel() for p in named.values())
    for what, want, have in (
        ("tensors", config.surface_tensors, tensors),
        ("scalars", config.surface_scalars, scalars),
    ):
        if want is not None and want != have:
            raise CheckError(f"the training surface has {have:,} {what} where the settings assert {want:,}")
    return named


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
