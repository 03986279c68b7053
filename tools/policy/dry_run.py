"""What the training forward keeps for its backward pass, in bytes: the model's own code, run without memory.

The model lies on torch's meta device: every operation works out shapes and types and computes nothing. What autograd would
save is counted, each storage once, weights left out. So the count follows the code, not a formula about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

FRAMES_S = 12.5  # audio vectors a second of Nemotron Transcribe
REQUEST = 32  # tokens of its request around the audio
CHUNK_ROWS, KEEP_BYTES = 512, 768 * 2**20  # of the log-probs over the vocabulary


def saved_bytes(model: Any, run: Callable[[], Any]) -> int:
    """Bytes that `run` makes autograd keep, the model's own tensors left out."""
    own = {tensor.untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, tuple[int, Tensor]] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = (storage.nbytes(), tensor)  # the tensor is held, so that no address comes twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    del result
    return sum(size for at, (size, _) in kept.items() if at not in own)


class _Attention(torch.autograd.Function):
    """Attention as a fused kernel keeps it: queries, keys, values, its output and a number a row."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = torch.empty_strided((*q.shape[:-1], v.shape[-1]), q.stride(), dtype=q.dtype, device=q.device)
        ctx.save_for_backward(q, k, v, out, q.new_empty(q.shape[:-1], dtype=torch.float32))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("only sizes are worked out here")


@contextmanager
def fused_attention() -> Iterator[None]:
    """On the meta device torch would spell attention out and keep every score, which no kernel does."""
    functional: Any = torch.nn.functional
    own = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = lambda q, k, v, *_, **__: _Attention.apply(q, k, v)
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = own


def vocabulary_bytes(rows: int, width: int) -> int:
    """The log-probs' share: exponentials of all rows while they fit the bound, and one chunk at work."""
    return min(rows * width * 4, KEEP_BYTES) + 3 * CHUNK_ROWS * width * 4


def activations(model: Any, seconds: float, answers: int, tokens: int) -> int:
    """Bytes kept for one clip of `seconds` with `answers` of `tokens` each, under the surface the model has on."""
    run = {"whisper": _whisper, "nemo_speechlm": _transcribe}[model.config.model_type]
    with fused_attention():
        return run(model, seconds, answers, tokens)


def _whisper(model: Any, seconds: float, answers: int, tokens: int) -> int:
    from tools.policy.whisper_encoder import encode_clip
    from tools.policy.whisper_forcing import hidden_states, pack

    encoder, decoder, device = model.model.encoder, model.model.decoder, torch.device("meta")
    trains = any(p.requires_grad for p in encoder.parameters())
    packed = pack([(0,) * 4], [[(0,) * tokens] * answers], device)

    def run() -> Tensor:
        with torch.set_grad_enabled(trains):
            mel = torch.empty(model.config.num_mel_bins, 2 * model.config.max_source_positions, device=device)
            encoded = encode_clip(encoder, mel)
        return hidden_states(decoder, model.config.decoder_attention_heads, encoded, packed)

    return saved_bytes(model, run) + vocabulary_bytes(answers * tokens, model.config.vocab_size)


def _transcribe(model: Any, seconds: float, answers: int, tokens: int) -> int:
    """The speech encoder chunk by chunk, then the request once and its answers from there, as the policy does it."""
    from transformers import DynamicCache

    tower, language = model.model.audio_tower, model.model.language_model
    frames = max(1, round(seconds * FRAMES_S))
    factor, mels = tower.config.subsampling_factor, tower.config.asr_config.num_mel_bins
    trains = any(p.requires_grad for p in tower.parameters())
    width, dtype = language.config.hidden_size, next(language.parameters()).dtype

    def run() -> list[Any]:
        kept: list[Any] = []
        with torch.set_grad_enabled(trains):
            for context, _ in tower._get_chunks(frames):
                size = (context.stop - context.start) * factor
                kept.append(tower.asr_encoder(torch.empty(1, size, mels, device="meta"), None).last_hidden_state)
            states = torch.empty(1, frames, kept[0].shape[-1], device="meta", requires_grad=trains)
            kept.append(model.model.multi_modal_projector(tower.asr_norm(states)))
        cache = DynamicCache(config=language.config)
        window = torch.empty(1, frames + REQUEST, width, device="meta", dtype=dtype, requires_grad=trains)
        kept.append(language(inputs_embeds=window, cache=cache, use_cache=True))
        cache.reorder_cache(torch.zeros(answers, dtype=torch.long, device="meta"))  # type: ignore[arg-type]
        fed = torch.empty(answers, max(tokens - 1, 2), width, device="meta", dtype=dtype)
        kept.append(language(inputs_embeds=fed, cache=cache, use_cache=True))
        return kept

    return saved_bytes(model, run) + vocabulary_bytes(answers * tokens, language.config.vocab_size)
