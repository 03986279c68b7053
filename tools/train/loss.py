"""Losses over answer tokens: GSPO, GRPO, the k3 penalty, and cross-entropy. Pure maths in torch, no I/O.

Shapes: `new`, `old`, `ref` are log-probs of the answer tokens `[B, T]`; `mask` `[B, T]` is 1 on the tokens of an
answer, its stop token included, made from lengths and never from token ids (F37); `advantages` `[B]`; `weights` `[B]`
is 1 for an answer that counts and 0 for one that is dropped.

Both policy losses are sums over answers or tokens divided by a total that the caller may give (`total`): the loss of a
minibatch is then exactly the sum of the losses of its chunks, however it is cut to fit the memory.

Source: NeMo-RL `ClippedPGLossFn` at 7ea279a (facts/nemo_rl.md 2.6); GSPO, arXiv 2507.18071; k3, Schulman 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

KL_INPUT_CLAMP = 20.0
KL_OUTPUT_CLAMP = 10.0


@dataclass(frozen=True)
class PolicyLoss:
    """A differentiable scalar and what the loss saw, detached.

    `ratios`: `[B]` for GSPO, `[B, T]` for GRPO. `clipped`: bool, same shape, where the clip took the gradient away.
    `counted`: bool, same shape, which entries the loss counted. `total`: what the sum was divided by.
    """

    loss: Tensor
    ratios: Tensor
    clipped: Tensor
    counted: Tensor
    total: float


def length_mask(lengths: Sequence[int], width: int | None = None) -> Tensor:
    """Token counts `[B]` -> float mask `[B, T]`: 1 on the first `lengths[b]` positions of row b."""
    import torch

    width = max(lengths, default=0) if width is None else width
    return (torch.arange(width)[None, :] < torch.tensor(list(lengths), dtype=torch.long)[:, None]).float()


def sequence_log_ratio(new: Tensor, old: Tensor, mask: Tensor) -> Tensor:
    """`[B]` mean over an answer's tokens of (new - old): the log of GSPO's length-normalised ratio, full gradient."""
    return ((new - old) * mask).sum(-1) / mask.sum(-1).clamp(min=1)


def clipped_objective(ratio: Tensor, advantages: Tensor, clip_low: float, clip_high: float) -> tuple[Tensor, Tensor]:
    """max(-A r, -A clip(r, 1 - low, 1 + high)) and where the clip is active, both of the shape of `ratio`."""
    plain = -advantages * ratio
    held = -advantages * ratio.clamp(1 - clip_low, 1 + clip_high)
    return plain.maximum(held), (held > plain).detach()


def k3(new: Tensor, ref: Tensor) -> Tensor:
    """Per-token k3 estimate of KL(new || ref), exp(d) - d - 1 with d = ref - new, shape of `new`, in float32 or wider.

    d is clamped to +-20 before exp and the result to 10, so that value and gradient stay finite (F44).
    """
    import torch

    wide = new if new.dtype == torch.float64 else new.float()
    d = (ref.to(wide.dtype) - wide).clamp(-KL_INPUT_CLAMP, KL_INPUT_CLAMP)
    return (d.exp() - d - 1).clamp(-KL_OUTPUT_CLAMP, KL_OUTPUT_CLAMP)


def _kl_term(new: Tensor, ref: Tensor) -> Tensor:
    """k3 weighted by exp(new - new.detach()): value of k3, gradient of the score-function form NeMo-RL uses."""
    import torch

    estimate = k3(new, ref)
    return torch.exp(new - new.detach()).to(estimate.dtype) * estimate


def gspo(
    new: Tensor,
    old: Tensor,
    mask: Tensor,
    advantages: Tensor,
    weights: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    kl_weight: float = 0.0,
    ref: Tensor | None = None,
    total: float | None = None,
) -> PolicyLoss:
    """Group sequence policy optimisation: one clipped ratio an answer, mean over the answers that count.

    `total` is the number of answers to divide by; the sum of `weights` when None. The penalty is averaged over an
    answer's tokens first, as NeMo-RL does it. Raises UsageError for a penalty without reference log-probs.
    """
    ratio = sequence_log_ratio(new, old, mask).exp()
    per_answer, clipped = clipped_objective(ratio, advantages, clip_low, clip_high)
    if kl_weight:
        per_answer = per_answer + kl_weight * (_kl_term(new, _need(ref)) * mask).sum(-1) / mask.sum(-1).clamp(min=1)
    divisor = float(weights.sum()) if total is None else total
    counted = weights > 0
    return PolicyLoss(_reduce(per_answer, weights, divisor), ratio.detach(), clipped & counted, counted, divisor)


def grpo(
    new: Tensor,
    old: Tensor,
    mask: Tensor,
    advantages: Tensor,
    weights: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    kl_weight: float = 0.0,
    ref: Tensor | None = None,
    total: float | None = None,
) -> PolicyLoss:
    """Group relative policy optimisation at token level: one clipped ratio a token, mean over the tokens that count.

    `total` is the number of tokens to divide by; all unmasked tokens of answers that count when None.
    """
    keep = mask * weights[:, None]
    ratio = (new - old).exp()
    per_token, clipped = clipped_objective(ratio, advantages[:, None], clip_low, clip_high)
    if kl_weight:
        per_token = per_token + kl_weight * _kl_term(new, _need(ref))
    divisor = float(keep.sum()) if total is None else total
    counted = keep > 0
    return PolicyLoss(_reduce(per_token, keep, divisor), ratio.detach(), clipped & counted, counted, divisor)


def cross_entropy(logprobs: Tensor, mask: Tensor, *, total: float | None = None) -> Tensor:
    """Supervised loss: minus the mean log-prob of reference tokens `[B, T]`, over all unmasked tokens or `total`."""
    return _reduce(-logprobs, mask, float(mask.sum()) if total is None else total)


def _reduce(values: Tensor, weights: Tensor, total: float) -> Tensor:
    """sum(values * weights) / total; entries of weight 0 give neither value nor gradient, non-finite ones included."""
    return values.where(weights > 0, values.new_zeros(())).mul(weights).sum() / max(total, 1e-8)


def _need(ref: Tensor | None) -> Tensor:
    if ref is None:
        raise UsageError("a KL penalty needs the anchor's log-probs: pass ref= or set kl_weight to 0")
    return ref
