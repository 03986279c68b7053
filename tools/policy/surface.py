"""Which parameters train. The rest is frozen and stays byte-equal.

Position embeddings never train under a named surface: few rows of them are ever touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tools.errors import UsageError
from tools.policy.base import NamedParameters

POSITIONS = "embed_positions"
SURFACES: dict[str, Callable[[str], bool]] = {
    "decoder": lambda name: name.startswith("model.decoder.") and POSITIONS not in name,
    "decoder-layers": lambda name: name.startswith(("model.decoder.layers.", "model.decoder.layer_norm.")),
    "all": lambda name: POSITIONS not in name,
}


def select_surface(model: Any, surface: str | Sequence[str]) -> NamedParameters:
    """Whisper's surfaces: "decoder" (token embeddings included), "decoder-layers" (without them) or "all"; or a list."""
    return select_named(model, surface, SURFACES)


def select_named(
    model: Any, surface: str | Sequence[str], surfaces: Mapping[str, Callable[[str], bool]]
) -> NamedParameters:
    """Set requires_grad on exactly the surface and return it in name order.

    `surface` is one of `surfaces`, or names tensors one by one. Raises UsageError for an unknown surface or tensor.
    """
    parameters = dict(model.named_parameters())
    if isinstance(surface, str):
        if surface not in surfaces:
            raise UsageError(f"Training surface {surface!r} is none of {', '.join(surfaces)}; or list tensors by name.")
        chosen = {name for name in parameters if surfaces[surface](name)}
    else:
        chosen = set(surface)
        unknown = sorted(chosen - set(parameters))
        if unknown or not chosen:
            what = f"tensor {unknown[0]!r} is not in the model" if unknown else "the list is empty"
            raise UsageError(f"Training surface: {what}; names are those of the Hugging Face checkpoint.")
    for name, parameter in parameters.items():
        parameter.requires_grad_(name in chosen)
    return [(name, parameters[name]) for name in sorted(chosen)]
