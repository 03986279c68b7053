"""Teacher forcing through Whisper's decoder: all answers of some clips at once, with no work spent on padding.

Positions of all rows are packed into one list, so that linear layers, norms and cross-attention see only real tokens;
only self-attention is padded. `M` packed positions, `R` rows (answers), `L` the longest row, `T` the longest answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tools.policy.base import Tokens
from tools.policy.product import apply
from tools.policy.whisper_decoder import cross_keys


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows laid end to end, clip by clip.

    `inputs`, `places` and `slots` [M]: token fed, its position, and its slot in the padded [R * L]. `per_clip` counts a
    clip's positions. `predicts` [A]: the packed position that predicts each answer token; `targets` and `first` [A]:
    that token, and whether it opens its answer. `mask` [R, T] comes from lengths.
    """

    inputs: Tensor
    places: Tensor
    slots: Tensor
    shape: tuple[int, int]
    per_clip: list[int]
    predicts: Tensor
    targets: Tensor
    first: Tensor
    mask: Tensor


def pack(prompts: Sequence[Tokens], answers: Sequence[Sequence[Tokens]], device: torch.device) -> Packed:
    """Lay out prompt + answer of every row; the stop token is predicted, never fed."""
    rows = [(b, answer) for b, group in enumerate(answers) for answer in group]
    fed = [(*prompts[b], *answer[:-1]) for b, answer in rows]
    longest = max(map(len, fed))
    start = 0
    predicts: list[int] = []
    for (b, answer), row in zip(rows, fed):
        begin = start + len(prompts[b]) - 1
        predicts += range(begin, begin + len(answer))
        start += len(row)
    mask = torch.arange(max(len(answer) for _, answer in rows)) < torch.tensor([[len(answer)] for _, answer in rows])
    per_clip = [0] * len(prompts)
    for (b, _), row in zip(rows, fed):
        per_clip[b] += len(row)
    lists = (
        [token for row in fed for token in row],
        [place for row in fed for place in range(len(row))],
        [r * longest + place for r, row in enumerate(fed) for place in range(len(row))],
        predicts,
        [token for _, answer in rows for token in answer],
        [i == 0 for _, answer in rows for i in range(len(answer))],
    )
    inputs, places, slots, at, targets, first = (torch.tensor(values, device=device) for values in lists)
    shape = (len(rows), longest)
    return Packed(inputs, places, slots, shape, per_clip, at, targets, first, mask.to(device))


def hidden_states(decoder: Any, heads: int, encoded: Tensor, packed: Packed) -> Tensor:
    """Decoder output [M, d] at every packed position, for encoder output [B, S, d]; differentiable."""
    x = decoder.embed_tokens(packed.inputs) + decoder.embed_positions.weight[packed.places]
    for layer in decoder.layers:
        x = x + _attend_self(layer.self_attn, heads, layer.self_attn_layer_norm(x), packed)
        x = x + _attend_clips(layer, heads, layer.encoder_attn_layer_norm(x), encoded, packed.per_clip)
        x = x + apply(layer.fc2, layer.activation_fn(apply(layer.fc1, layer.final_layer_norm(x))))
    out: Tensor = decoder.layer_norm(x)
    return out


def _attend_self(attention: Any, heads: int, x: Tensor, packed: Packed) -> Tensor:
    rows, longest = packed.shape
    width = x.shape[1]

    def padded(part: Tensor) -> Tensor:
        """[M, d] -> [R, heads, L, size]; padding, to the right, is zero and no real position looks at it."""
        flat = part.new_zeros(rows * longest, width).index_copy(0, packed.slots, part)
        return flat.view(rows, longest, heads, -1).transpose(1, 2)

    q, k, v = (padded(apply(p, x)) for p in (attention.q_proj, attention.k_proj, attention.v_proj))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return apply(attention.out_proj, y.transpose(1, 2).reshape(rows * longest, width)[packed.slots])


def _attend_clips(layer: Any, heads: int, x: Tensor, encoded: Tensor, per_clip: list[int]) -> Tensor:
    """All queries of a clip's answers in one attention over its keys, which are read once a clip.

    The keys are unbound, not sliced: a slice's backward pass would write a gradient of full size for every clip.
    """
    attention = layer.encoder_attn
    keys, values = cross_keys(layer, encoded, heads)
    outs = []
    for q, k, v in zip(apply(attention.q_proj, x).split(per_clip), keys.unbind(0), values.unbind(0)):
        if len(q):
            y = F.scaled_dot_product_attention(q.view(1, len(q), heads, -1).transpose(1, 2), k[None], v[None])
            outs.append(y[0].transpose(0, 1).reshape(q.shape))
    return apply(attention.out_proj, torch.cat(outs))
