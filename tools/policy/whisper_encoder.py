"""Whisper's encoder on one clip: Hugging Face's layers and weights, products by `tools.policy.product`."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tools.policy.product import apply, multiply

ROWS = 500  # query rows a product: their scores stay in the processor's cache


def encode_clip(encoder: Any, mel: Tensor) -> Tensor:
    """Log-mel [mels, 2 * S] -> [1, S, d]; differentiable. Equals the encoder's own forward to rounding."""
    x = encoder.layers[0].activation_fn(encoder.conv1(mel[None]))
    x = encoder.layers[0].activation_fn(encoder.conv2(x)).transpose(1, 2)
    x = x + encoder.embed_positions.weight
    for layer in encoder.layers:
        x = x + _attend(layer.self_attn, layer.self_attn_layer_norm(x))
        x = x + apply(layer.fc2, layer.activation_fn(apply(layer.fc1, layer.final_layer_norm(x))))
    out: Tensor = encoder.layer_norm(x)
    return out


def _attend(attention: Any, x: Tensor) -> Tensor:
    _, frames, width = x.shape
    shape = (frames, attention.num_heads, -1)
    q, k, v = (apply(p, x).view(shape).transpose(0, 1) for p in (attention.q_proj, attention.k_proj, attention.v_proj))
    if (torch.is_grad_enabled() and q.requires_grad) or x.is_cuda:
        y = F.scaled_dot_product_attention(q[None], k[None], v[None])[0]  # in three dimensions it keeps every score
    else:
        y = _attend_plain(q * q.shape[-1] ** -0.5, k, v)
    return apply(attention.out_proj, y.transpose(0, 1).reshape(1, frames, width))


def _attend_plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax(q k') v for [heads, S, size], head by head and `ROWS` rows at a time; no gradient."""
    out = torch.empty_like(v)
    for head in range(len(q)):
        turned = v[head].t()
        for at in range(0, q.shape[1], ROWS):
            scores = torch.softmax(multiply(q[head, at : at + ROWS], k[head]), -1)
            out[head, at : at + ROWS] = multiply(scores, turned)
    return out
