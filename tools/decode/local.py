"""Greedy and sampled decoding of a policy on this machine.

A clip's answers share its encoder output and prompt; rows that have stopped leave the batch. A draw costs one uniform
number a row and step, from a stream that belongs to the answer's own seed: answer `i` of a clip is the same whatever
other answers are drawn beside it, as far as floating point allows; with the same batch and threads, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from tools.decode.draw import draw
from tools.errors import CheckError
from tools.policy.base import Policy, Tokens
from tools.rows import Answer

BATCH = 16  # clips decoded together
Choose = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # logits [rows, W], steps' uniforms -> tokens, log-probs


def answer_seed(base_seed: int, clip_id: str, index: int) -> int:
    """The seed of answer `index` of a clip, 63 bits: depends on nothing else."""
    name = f"{base_seed}\n{clip_id}\n{index}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") >> 1


def uniforms(seed: int, count: int) -> np.ndarray:
    """The answer's own stream of `count` uniform numbers in [0, 1): position t is used for token t."""
    return np.random.Generator(np.random.Philox(key=seed)).random(count)


@dataclass
class _Row:
    """One answer in the making."""

    clip: int
    index: int
    seed: int | None
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: str = "length"


def greedy(
    policy: Policy,
    encoded: Tensor,
    prompts: Sequence[Tokens],
    limit: int,
    clip_ids: Sequence[str],
    batch: int = BATCH,
) -> list[Answer]:
    """The most probable token at every step; one answer a clip, in order. `encoded` [B, S, d], one prompt a clip.

    At most `limit` tokens, the stop token included; an answer cut there (or at the model's last position) has finish
    "length". Raises CheckError where counts differ or a prompt leaves no room.
    """
    rows = [_Row(clip, -1, None) for clip in range(len(encoded))]
    _check(policy, encoded, prompts, clip_ids)
    for part in _parts(prompts, batch):
        _decode(policy, encoded[part], [prompts[c] for c in part], [[rows[c]] for c in part], limit, None)
    return [_answer(policy, clip_ids[row.clip], row, 0.0) for row in rows]


def sample(
    policy: Policy,
    encoded: Tensor,
    prompts: Sequence[Tokens],
    clip_ids: Sequence[str],
    n: int,
    temperature: float,
    limit: int,
    seeds: Sequence[Sequence[int]],
    batch: int = BATCH,
) -> list[list[Answer]]:
    """`n` sampled answers a clip; `seeds[b][i]` is the seed of clip b's answer i (see `answer_seed`).

    Log-probs are those of the distribution drawn from: temperature and forbidden tokens included. Raises CheckError.
    """
    if temperature <= 0:
        raise CheckError(f"Sampling needs a temperature above 0, not {temperature}; use greedy.")
    if len(seeds) != len(encoded) or any(len(row) != n for row in seeds):
        raise CheckError(f"Sampling {n} answers of {len(encoded)} clips needs {n} seeds for each clip.")
    _check(policy, encoded, prompts, clip_ids)
    groups = [[_Row(clip, i, seed) for i, seed in enumerate(row)] for clip, row in enumerate(seeds)]
    for part in _parts(prompts, batch):
        _decode(policy, encoded[part], [prompts[c] for c in part], [groups[c] for c in part], limit, temperature)
    return [[_answer(policy, clip_ids[row.clip], row, temperature) for row in group] for group in groups]


def _check(policy: Policy, encoded: Tensor, prompts: Sequence[Tokens], clip_ids: Sequence[str]) -> None:
    if not len(encoded) == len(prompts) == len(clip_ids):
        raise CheckError(f"{len(encoded)} encoded clips, {len(prompts)} prompts and {len(clip_ids)} ids do not match.")
    for prompt, clip_id in zip(prompts, clip_ids):
        if not 0 < len(prompt) < policy.max_target:
            raise CheckError(
                f"The prompt of clip {clip_id} has {len(prompt)} tokens; the model has {policy.max_target}."
            )


def _parts(prompts: Sequence[Tokens], batch: int) -> Iterator[list[int]]:
    """Clips to decode together: prompts of one length, at most `batch`, otherwise in order."""
    for length in sorted({len(prompt) for prompt in prompts}):
        clips = [c for c, prompt in enumerate(prompts) if len(prompt) == length]
        for at in range(0, len(clips), batch):
            yield clips[at : at + batch]


@torch.inference_mode()
def _decode(
    policy: Policy,
    encoded: Tensor,
    prompts: Sequence[Tokens],
    groups: list[list[_Row]],
    limit: int,
    temperature: float | None,
) -> None:
    """Fill the rows of `groups` (equally many a clip) in place."""
    n = len(groups[0])
    alive = [row for group in groups for row in group]
    limit = min(limit, policy.max_target - len(prompts[0]))
    stream = _stream(alive, limit, policy.device) if temperature else None
    state, logits = policy.begin(encoded, prompts, limit)
    source = torch.arange(len(groups), device=policy.device).repeat_interleave(n)  # answers still share their logits
    state.repeat(n)
    for step in range(limit):
        logits = policy.vocabulary.mask_(logits, first=step == 0)
        if stream is None:
            tokens, values = logits.argmax(-1)[source], None
        else:
            tokens, values = draw(logits, source, stream[:, step], temperature or 1.0)
        stopped = tokens == policy.vocabulary.stop
        _record(alive, tokens, values, stopped)
        if step + 1 == limit or bool(stopped.all()):
            break
        if bool(stopped.any()):
            order = state.keep(~stopped)
            tokens = tokens[order]
            stream = stream[order] if stream is not None else None
            alive = [alive[i] for i in order.tolist()]
        logits = policy.step(state, tokens)
        source = torch.arange(len(alive), device=policy.device)


def _stream(rows: list[_Row], limit: int, device: torch.device) -> Tensor:
    return torch.from_numpy(np.stack([uniforms(row.seed or 0, limit) for row in rows])).to(device)


def _record(rows: list[_Row], tokens: Tensor, values: Tensor | None, stopped: Tensor) -> None:
    for row, token, stop in zip(rows, tokens.tolist(), stopped.tolist()):
        row.tokens.append(token)
        if stop:
            row.finish = "stop"
    if values is not None:
        for row, value in zip(rows, values.tolist()):
            row.logprobs.append(value)


def _answer(policy: Policy, clip_id: str, row: _Row, temperature: float) -> Answer:
    return Answer(
        clip_id=clip_id,
        text=policy.text(row.tokens),
        tokens=tuple(row.tokens),
        finish=row.finish,
        index=row.index,
        seed=row.seed,
        temperature=temperature,
        logprobs=tuple(row.logprobs) if row.seed is not None else None,
    )
