"""Low-rank adapters (peft) on the linear layers of a training surface: LoRA, rsLoRA, DoRA, and rsLoRA with DoRA.

The adapted layers' own weights stay as they are and byte-equal; only the adapters train. What a model amounts to is read
merged (`merged`): decoding, digests, checkpoints and exports never see an adapter.

Sources: LoRA arXiv 2106.09685, rsLoRA 2312.03732 (scale alpha / sqrt(rank)), DoRA 2402.09353.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tools.errors import UsageError
from tools.policy.base import NamedParameters

NAME = "default"
KINDS = ("lora", "rslora", "dora", "rsdora")


@dataclass(frozen=True)
class AdapterSpec:
    """`kind` is one of KINDS; `layers`: only linear layers whose name contains one of these, all where empty."""

    kind: str
    rank: int
    alpha: float
    layers: tuple[str, ...] = ()
    seed: int = 0


def adaptable(model: nn.Module, surface: Sequence[str], layers: Sequence[str] = ()) -> list[str]:
    """Names of the plain linear layers whose weight is in `surface`; the output head is not one of them."""
    output = getattr(model, "get_output_embeddings", lambda: None)()
    chosen = set(surface)
    return sorted(
        name
        for name, module in model.named_modules()
        if type(module) is nn.Linear
        and module is not output
        and f"{name}.weight" in chosen
        and (not layers or any(part in name for part in layers))
    )


def add_adapters(model: nn.Module, surface: Sequence[str], spec: AdapterSpec) -> NamedParameters:
    """Put adapters on the linear layers of `surface` and make them the only thing that trains; by name, in order.

    A new adapter changes nothing that the model computes. Raises UsageError without peft, for an unknown kind, and where
    the surface has no linear layer to adapt.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise UsageError("Adapters need the package peft: pip install 'rehear[adapters]'.") from error
    if spec.kind not in KINDS:
        raise UsageError(f"There is no adapter {spec.kind!r}: use one of {', '.join(KINDS)}.")
    names = adaptable(model, surface, spec.layers)
    if not names:
        raise UsageError("The training surface has no linear layer to adapt: widen surface, or adapter_layers.")
    config = LoraConfig(
        r=spec.rank,
        lora_alpha=spec.alpha,  # type: ignore[arg-type]
        lora_dropout=0.0,  # a dropout would make the ratio move by itself
        target_modules=names,
        use_rslora=spec.kind in ("rslora", "rsdora"),
        use_dora=spec.kind in ("dora", "rsdora"),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        inject_adapter_in_model(config, model, adapter_name=NAME)
    named = [(name, p) for name, p in model.named_parameters() if ".lora_" in name]
    for _, parameter in model.named_parameters():
        parameter.requires_grad_(False)
    for _, parameter in named:
        parameter.requires_grad_(True)
    return sorted(named)


def merged(layer: Any) -> tuple[Tensor, Tensor | None]:
    """Weight [out, in] and bias of an adapted linear layer: base and adapter in one. Without gradient."""
    base = layer.base_layer
    with torch.no_grad():
        weight: Tensor = base.weight + layer.get_delta_weight(NAME).to(base.weight.dtype)
        magnitudes = getattr(layer, "lora_magnitude_vector", {})
        if NAME in magnitudes:
            norm = torch.linalg.norm(weight, dim=1)
            weight = (magnitudes[NAME].weight / norm)[:, None] * weight
    return weight, base.bias
