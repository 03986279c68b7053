"""Whisper's decoder, one token a row at a time: cross-attention keys shared by a clip's answers, caches laid out beforehand.

Weights are read once when a decode begins (q, k, v stacked into one product, adapters merged), so a state is valid until
the next optimiser step. Rows of a state belong to clips; all clips of a state share one prompt length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
    keys, values = layer.encoder_attn.k_proj(encoded), layer.encoder_attn.v_proj(encoded)
    return keys.view(shape).transpose(1, 2), values.view(shape).transpose(1, 2)


class WhisperState:
    """Rows in decoding. `clip` [rows] says whose cross-attention keys a row reads; `length` tokens are in the caches."""

    def __init__(
        self, decoder: Any, embedding: Tensor, cross: list[tuple[Tensor, Tensor]], heads: int, room: int
    ) -> None:
        self.cross, self.heads, self.embedding = cross, heads, embedding
        self.positions = decoder.embed_positions.weight
        self.norm = decoder.layer_norm
        self.layers = [layer_weights(layer) for layer in decoder.layers]
        clips, _, _, size = cross[0][0].shape
        self.clip = torch.arange(clips, device=embedding.device)
        self.length = 0
        shape = (clips, heads, room, size)
        self.keys = [embedding.new_empty(shape) for _ in self.layers]
        self.values = [embedding.new_empty(shape) for _ in self.layers]
        self._sort()

    @property
    def rows(self) -> int:
        return len(self.clip)

    def _sort(self) -> None:
        """Rows by clip: an order, its inverse, and how many rows each clip still has."""
        self.order = torch.argsort(self.clip, stable=True)
        self.inverse = torch.argsort(self.order)
        counts = torch.bincount(self.clip, minlength=len(self.cross[0][0])).tolist()
        self.counts = [(clip, count) for clip, count in enumerate(counts) if count]
        self.in_order = bool((self.order == torch.arange(self.rows, device=self.order.device)).all())

    def repeat(self, n: int) -> None:
        self.clip = self.clip.repeat_interleave(n)
        for cache in (self.keys, self.values):
            for i, old in enumerate(cache):
                new = old.new_empty((len(old) * n, *old.shape[1:]))
                used = old[:, :, : self.length]
                new.view(len(old), n, *old.shape[1:])[:, :, :, : self.length] = used[:, None]
                cache[i] = new
        self._sort()

    def keep(self, alive: Tensor) -> Tensor:
        """Rows left at the end fill the holes, so that only as many rows move as were dropped."""
        count = int(alive.sum())
        index = torch.arange(self.rows, device=alive.device)
        holes, movers = index[:count][~alive[:count]], index[count:][alive[count:]]
        for cache in (self.keys, self.values):
            for layer in cache:
                layer[holes, :, : self.length] = layer[movers, :, : self.length]
        index[holes] = movers
        order = index[:count]
        self.clip = self.clip[order]
        self._sort()
        return order

    def forward(self, tokens: Tensor) -> Tensor:
        """Append `tokens` [rows, t] to every row; returns the last position's hidden state [rows, d]."""
        rows, t = tokens.shape
        x = F.embedding(tokens, self.embedding) + self.positions[self.length : self.length + t]
        for i, layer in enumerate(self.layers):
            x = x + self._attend_self(layer, i, layer.self_norm(x))
            x = x + self._attend_clip(layer, i, layer.cross_norm(x))
            x = x + F.linear(layer.activation(F.linear(layer.ffn_norm(x), *layer.fc1)), *layer.fc2)
        self.length += t
        return self.norm(x[:, -1])

    def _attend_self(self, layer: LayerWeights, i: int, x: Tensor) -> Tensor:
        rows, t, width = x.shape
        q, k, v = F.linear(x, *layer.qkv).view(rows, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        end = self.length + t
        self.keys[i][:rows, :, self.length : end] = k
        self.values[i][:rows, :, self.length : end] = v
        keys, values = self.keys[i][:rows, :, :end], self.values[i][:rows, :, :end]
        y = F.scaled_dot_product_attention(q, keys, values, is_causal=t > 1)
        return F.linear(y.transpose(1, 2).reshape(rows, t, width), *layer.self_out)

    def _attend_clip(self, layer: LayerWeights, i: int, x: Tensor) -> Tensor:
        """Each clip's rows against its own keys, clip by clip: no copy of the keys and no padding of ragged groups."""
        rows, t, width = x.shape
        q = F.linear(x, *layer.cross_q)
        q = q if self.in_order else q[self.order]
        keys, values = self.cross[i]
        outs = []
        at = 0
        for clip, count in self.counts:
            part = q[at : at + count].view(1, count * t, self.heads, -1).transpose(1, 2)
            y = F.scaled_dot_product_attention(part, keys[clip : clip + 1], values[clip : clip + 1])
            outs.append(y.transpose(1, 2).reshape(count, t, width))
            at += count
        y = torch.cat(outs)
        return F.linear(y if self.in_order else y[self.inverse], *layer.cross_out)
