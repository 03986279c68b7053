"""Log-probabilities of given tokens over a large vocabulary, in bounded memory.

On a small model the vocabulary's softmax is most of the cost of a policy-gradient loss. Two things keep it low: only
the positions of answer tokens come here, and the exponentials are kept for the backward pass while they fit
`KEEP_BYTES` (else they are computed again, chunk by chunk).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tools.policy.product import multiply
from tools.policy.vocabulary import Vocabulary

CHUNK_ROWS = 512
KEEP_BYTES = 768 * 2**20


def _logits(x: Tensor, weight: Tensor, first: Tensor, vocabulary: Vocabulary) -> Tensor:
    """[m, W] logits with forbidden columns at -inf; rows where `first` is True open an answer."""
    z = vocabulary.mask_(multiply(x, weight), first=False)
    rows = first.nonzero()
    if len(rows):
        z[rows, vocabulary.forbidden_first] = -torch.inf
    return z


class _TokenLogProbs(torch.autograd.Function):
    """x [M, d] (already divided by the temperature), weight [W, d], targets [M], first [M] -> [M]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, targets: Tensor, first: Tensor, vocabulary: Vocabulary) -> Tensor:
        needs = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        keep = needs and len(x) * len(weight) * 4 <= KEEP_BYTES
        kept: list[tuple[Tensor, Tensor]] = []
        out = []
        for at in range(0, len(x), CHUNK_ROWS):
            rows = slice(at, at + CHUNK_ROWS)
            z = _logits(x[rows], weight, first[rows], vocabulary)
            chosen = z.gather(1, targets[rows, None])[:, 0]
            top = z.amax(1)
            weights = z.sub_(top[:, None]).exp_()
            total = weights.sum(1)
            out.append(chosen - top - total.log())
            if keep:
                kept.append((weights, total))
        ctx.save_for_backward(x, weight, targets, first)
        ctx.vocabulary, ctx.kept = vocabulary, kept
        return torch.cat(out) if out else x.new_zeros(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, targets, first = ctx.saved_tensors
        dx = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        dw = torch.zeros_like(weight.t()) if ctx.needs_input_grad[1] else None  # [d, W]: the faster way round
        for i, at in enumerate(range(0, len(x), CHUNK_ROWS)):
            rows = slice(at, at + CHUNK_ROWS)
            if ctx.kept:
                weights, total = ctx.kept[i]
                dz = weights * (-grad[rows] / total)[:, None]
            else:
                dz = torch.softmax(_logits(x[rows], weight, first[rows], ctx.vocabulary), -1).mul_(-grad[rows, None])
            dz.scatter_add_(1, targets[rows, None], grad[rows, None])
            if dx is not None:
                dx[rows] = multiply(dz, weight.t())
            if dw is not None:
                dw += multiply(x[rows].t(), dz.t())
        return dx, None if dw is None else dw.t(), None, None, None


def token_logprobs(
    x: Tensor, weight: Tensor, targets: Tensor, first: Tensor, vocabulary: Vocabulary, temperature: float = 1.0
) -> Tensor:
    """Natural-log probabilities [M] of `targets` [M] given hidden states `x` [M, d] and output rows `weight` [>=W, d].

    `first` [M] (bool) marks the tokens that open an answer. Differentiable once in `x` and `weight`.
    """
    with torch.autocast(x.device.type, enabled=False):
        scaled = x.float() * (1.0 / temperature)
        return _TokenLogProbs.apply(scaled, weight[: vocabulary.width].float(), targets, first, vocabulary)
