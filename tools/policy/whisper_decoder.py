"""Whisper's decoder, one token a row at a time: cross-attention keys shared by a clip's answers, caches laid out beforehand.

Weights are read once when a decode begins (q, k, v stacked into one product, adapters merged), so a state is valid until
the next optimiser step. Rows of a state belong to clips; all clips of a state share one prompt length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.policy.product import apply, linear
from tools.policy.weights import effective

Linear = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class LayerWeights:
    self_norm: nn.Module
    qkv: Linear
    self_out: Linear
    cross_norm: nn.Module
    cross_q: Linear
    cross_out: Linear
    ffn_norm: nn.Module
    fc1: Linear
    fc2: Linear
    activation: Any


def _stack(parts: Sequence[Linear]) -> Linear:
    weights = torch.cat([weight for weight, _ in parts])
    biases = torch.cat([weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in parts])
    return weights, biases


def layer_weights(layer: Any) -> LayerWeights:
    own, cross = layer.self_attn, layer.encoder_attn
    return LayerWeights(
        self_norm=layer.self_attn_layer_norm,
        qkv=_stack([effective(own.q_proj), effective(own.k_proj), effective(own.v_proj)]),
        self_out=effective(own.out_proj),
        cross_norm=layer.encoder_attn_layer_norm,
        cross_q=effective(cross.q_proj),
        cross_out=effective(cross.out_proj),
        ffn_norm=layer.final_layer_norm,
        fc1=effective(layer.fc1),
        fc2=effective(layer.fc2),
        activation=layer.activation_fn,
    )


def cross_keys(layer: Any, encoded: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Cross-attention keys and values of one layer: each [B, heads, S, head size]; a clip's answers share them."""
    shape = (*encoded.shape[:2], heads, encoded.shape[2] // heads)
    keys, values = apply(layer.encoder_attn.k_proj, encoded), apply(layer.encoder_attn.v_proj, encoded)
    return keys.view(shape).transpose(1, 2), values.view(shape).transpose(1, 2)


class WhisperState:
    """Rows in decoding. `clip` [rows] says whose cross-attention keys a row reads; `length` tokens are in the caches.

    `cache` is [layers, 2 (keys, values), capacity, heads, places, head size]; rows fill its first part.
    """

    def __init__(
        self,
        decoder: Any,
        embedding: Tensor,
        cross: list[tuple[Tensor, Tensor]],
        heads: int,
        places: int,
        capacity: int,
    ) -> None:
        self.cross, self.heads, self.embedding = cross, heads, embedding
        self.positions = decoder.embed_positions.weight
        self.norm = decoder.layer_norm
        self.layers = [layer_weights(layer) for layer in decoder.layers]
        clips, _, _, size = cross[0][0].shape
        self.scale = size**-0.5
        self.gelu = decoder.config.activation_function == "gelu"
        self.cache = embedding.new_empty((len(self.layers), 2, capacity, heads, places, size))
        self.length = 0
        self._place(list(range(clips)))

    @property
    def rows(self) -> int:
        return len(self.clip)

    def _place(self, clip: list[int]) -> None:
        """Set whose rows they are; keep their order by clip, its inverse, and how many rows each clip has."""
        self.clip = clip
        order = sorted(range(len(clip)), key=clip.__getitem__)
        self.counts = [(c, len(list(part))) for c, part in groupby(clip[row] for row in order)]
        device = self.embedding.device
        self.order = None if order == list(range(len(clip))) else torch.tensor(order, device=device)
        self.inverse = None if self.order is None else torch.argsort(self.order)

    def fork(self, parents: Sequence[int]) -> list[int]:
        """New rows, each a copy of the old row that `parents` names; old rows that nobody names are gone.

        Returns `order`: new row r is entry `order[r]` of `parents`. A row's first child stays where it is and the others
        fill what is free, so that only as many rows move as were born or dropped.
        """
        count = len(parents)
        order = [-1] * count
        waiting = []
        for entry, parent in enumerate(parents):
            if parent < count and order[parent] < 0:
                order[parent] = entry
            else:
                waiting.append(entry)
        free = [row for row in range(count) if order[row] < 0]
        if free:
            device = self.embedding.device
            to, of = torch.tensor(free, device=device), torch.tensor([parents[e] for e in waiting], device=device)
            self.cache[:, :, to, :, : self.length] = self.cache[:, :, of, :, : self.length]
        for row, entry in zip(free, waiting):
            order[row] = entry
        self._place([self.clip[parents[entry]] for entry in order])
        return order

    def forward(self, tokens: Tensor) -> Tensor:
        """Append `tokens` [rows, t] to every row; returns the last position's hidden state [rows, d]."""
        t = tokens.shape[1]
        x = F.embedding(tokens, self.embedding) + self.positions[self.length : self.length + t]
        for i, layer in enumerate(self.layers):
            x = x + self._attend_self(layer, i, layer.self_norm(x))
            x = x + self._attend_clip(layer, i, layer.cross_norm(x))
            x = x + linear(self._expand(layer, layer.ffn_norm(x)), *layer.fc2)
        self.length += t
        return self.norm(x[:, -1])

    def _expand(self, layer: LayerWeights, x: Tensor) -> Tensor:
        if self.gelu:
            return linear(x, *layer.fc1, gelu=True)
        out: Tensor = layer.activation(linear(x, *layer.fc1))
        return out

    def _attend_self(self, layer: LayerWeights, i: int, x: Tensor) -> Tensor:
        rows, t, width = x.shape
        q, k, v = linear(x, *layer.qkv).view(rows, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        end = self.length + t
        keys, values = self.cache[i, :, :rows, :, :end]
        keys[:, :, self.length :], values[:, :, self.length :] = k, v
        if t > 1:
            y = F.scaled_dot_product_attention(q, keys, values, is_causal=True)
        else:
            y = torch.softmax((q * self.scale) @ keys.transpose(2, 3), -1) @ values
        return linear(y.transpose(1, 2).reshape(rows, t, width), *layer.self_out)

    def _attend_clip(self, layer: LayerWeights, i: int, x: Tensor) -> Tensor:
        """Each clip's rows against its own keys, clip by clip: no copy of the keys and no padding of ragged groups."""
        _, t, width = x.shape
        q = linear(x, *layer.cross_q)
        q = q if self.order is None else q[self.order]
        keys, values = self.cross[i]
        outs = []
        at = 0
        for clip, count in self.counts:
            part = q[at : at + count].view(1, count * t, self.heads, -1).transpose(1, 2)
            y = F.scaled_dot_product_attention(part, keys[clip : clip + 1], values[clip : clip + 1])
            outs.append(y.transpose(1, 2).reshape(count, t, width))
            at += count
        y = torch.cat(outs)
        return linear(y if self.inverse is None else y[self.inverse], *layer.cross_out)
