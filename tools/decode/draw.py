"""Draw one token a row by inverting the cumulative distribution, one uniform number a row.

Blocks first: the sums of `BLOCK` neighbouring probabilities say which block holds the point, then only that block is
summed up. So the vocabulary is passed over twice (softmax, block sums), and no number is drawn for every entry of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tools.errors import NonFinite
from tools.policy.vocabulary import BLOCK

NOT_FINITE = "the model's probabilities are not finite numbers: its weights have gone beyond all bounds, or are damaged"


def _first_above(cumulative: Tensor, point: Tensor) -> Tensor:
    """First column of [rows, k] whose cumulative sum exceeds `point` [rows]; never a column of no mass."""
    inside = torch.minimum(point, torch.nextafter(cumulative[:, -1], torch.zeros_like(point)))
    return torch.searchsorted(cumulative, inside[:, None], right=True)[:, 0]


def draw(logits: Tensor, source: Tensor, uniform: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Tokens [rows] and their log-probs [rows] under softmax(logits / temperature). Uses `logits` up.

    `logits` [m, W] with -inf where a token may not be drawn; row r draws from `logits[source[r]]` at `uniform[r]`
    (float64 in [0, 1)). Columns keep their order, so equal distributions give equal tokens for equal uniforms.
    Raises NonFinite where the model gives no probabilities.
    """
    probs = torch.softmax(logits.div_(temperature), -1)
    rest = -probs.shape[1] % BLOCK
    blocks = torch.nn.functional.pad(probs, (0, rest)) if rest else probs
    blocks = blocks.view(len(probs), -1, BLOCK)
    sums = blocks.sum(-1).double().cumsum(-1)[source]
    if not bool(sums[:, -1].isfinite().all()):
        raise NonFinite(NOT_FINITE)
    point = uniform * sums[:, -1]
    block = _first_above(sums, point)
    before = torch.where(block > 0, sums.gather(1, (block - 1).clamp_min(0)[:, None])[:, 0], 0.0)
    inside = _first_above(blocks[source, block].double().cumsum(-1), point - before)
    tokens = block * BLOCK + inside
    return tokens, probs[source, tokens].double().log() - sums[
        :, -1
    ].log()  # softmax's own sum is float32: put it right
