"""Matrix products of a model's linear layers, float32, as fast as the processor allows.

torch sends float32 products on a CPU to MKL, which keeps to AVX2 on processors that are not Intel's. oneDNN, which torch
carries too and uses for convolutions, has no such limit: about twice as fast there, as exact, and as deterministic. Where
it is absent, or for other devices and types, these functions are torch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


@cache
def _onednn() -> Callable[..., Tensor] | None:
    """oneDNN's product x [m, in], weight [out, in], bias -> [m, out], or None where this torch has no such operator."""
    try:
        product: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise.default
        x, weight, bias = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3), torch.arange(4.0)
        right = torch.allclose(product(x, weight, bias, "none", [], ""), F.linear(x, weight, bias))
        return product if right else None
    except (AttributeError, RuntimeError, NotImplementedError):
        return None


def _fits(x: Tensor, weight: Tensor) -> bool:
    plain = x.device.type == "cpu" and x.dtype == weight.dtype == torch.float32 and x.numel() > 0
    return plain and not torch.is_autocast_enabled("cpu") and _onednn() is not None


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: bool = False) -> Tensor:
    """x [m, in] @ weight [out, in].T + bias, then GELU where asked; not differentiable."""
    if _fits(x, weight):
        product = _onednn()
        assert product is not None
        if not weight.is_contiguous() and not weight.t().is_contiguous():
            weight = weight.contiguous()  # other strides fall back to a loop a thousand times slower
        return product(x, weight, bias, *(("gelu", [], "none") if gelu else ("none", [], "")))
    y = F.linear(x, weight, bias)
    return F.gelu(y) if gelu else y


class _Linear(torch.autograd.Function):
    """x [m, in], weight [out, in], bias [out] or None -> [m, out]; forward and backward by `multiply`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiply(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        dx = multiply(grad, weight.t()) if ctx.needs_input_grad[0] else None
        dw = multiply(grad.t(), x.t()) if ctx.needs_input_grad[1] else None
        return dx, dw, grad.sum(0) if ctx.needs_input_grad[2] else None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: bool = False) -> Tensor:
    """As torch's linear on x [..., in], GELU after it where asked; differentiable."""
    if not _fits(x, weight):
        y = F.linear(x, weight, bias)
        return F.gelu(y) if gelu else y
    flat = x.reshape(-1, x.shape[-1])
    wants = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    if wants:
        y = _Linear.apply(flat, weight, bias)
        y = F.gelu(y) if gelu else y
    else:
        y = multiply(flat, weight, bias, gelu)
    return y.view(*x.shape[:-1], -1)


def apply(module: nn.Module, x: Tensor) -> Tensor:
    """module(x), by `linear` where it is a plain linear layer (one wrapped by an adapter keeps its own forward)."""
    if type(module) is nn.Linear:
        return linear(x, module.weight, module.bias)
    out: Tensor = module(x)
    return out
