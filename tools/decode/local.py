"""Greedy and sampled decoding of a policy on this machine.

A clip's answers share its encoder output, its prompt and what they have in common so far: equal beginnings are one row
of the batch, which forks where a draw parts them; what has stopped leaves it. A draw costs one uniform number, from a stream that belongs to the answer's own seed: answer `i` of a clip is the same whatever
other answers are drawn beside it, as far as floating point allows; with the same batch and threads, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from tools.decode.draw import NOT_FINITE, draw
from tools.errors import CheckError, NonFinite
from tools.policy.base import DecodeState, Encoded, Policy, Tokens, pick
from tools.rows import Answer

BATCH = 16  # clips decoded together


def answer_seed(base_seed: int, clip_id: str, index: int) -> int:
    """The seed of answer `index` of a clip, 63 bits: depends on nothing else."""
    name = f"{base_seed}\n{clip_id}\n{index}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") >> 1


def uniforms(seed: int, count: int) -> np.ndarray:
    """The answer's own stream of `count` uniform numbers in [0, 1): position t is used for token t."""
    return np.random.Generator(np.random.Philox(key=seed)).random(count)


@dataclass
class _Making:
    """One answer in the making; `row` is where its tokens so far stand in the decode's state."""

    clip: int
    index: int
    seed: int | None
    row: int = 0
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: str = "length"


def greedy(
    policy: Policy,
    encoded: Encoded,
    prompts: Sequence[Tokens],
    limit: int,
    clip_ids: Sequence[str],
    batch: int = BATCH,
) -> list[Answer]:
    """The most probable token at every step; one answer a clip, in order. `encoded` [B, S, d], one prompt a clip.

    At most `limit` tokens, the stop token included; an answer cut there (or at the model's last position) has finish
    "length". Raises CheckError where counts differ or a prompt leaves no room.
    """
    making = [_Making(clip, -1, None) for clip in range(len(encoded))]
    _check(policy, encoded, prompts, clip_ids)
    for part in _parts(prompts, batch):
        _decode(policy, pick(encoded, part), [prompts[c] for c in part], [[making[c]] for c in part], limit, None)
    return [_answer(policy, clip_ids[each.clip], each, 0.0) for each in making]


def sample(
    policy: Policy,
    encoded: Encoded,
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
    groups = [[_Making(clip, i, seed) for i, seed in enumerate(row)] for clip, row in enumerate(seeds)]
    for part in _parts(prompts, batch):
        _decode(policy, pick(encoded, part), [prompts[c] for c in part], [groups[c] for c in part], limit, temperature)
    return [[_answer(policy, clip_ids[each.clip], each, temperature) for each in group] for group in groups]


def _check(policy: Policy, encoded: Encoded, prompts: Sequence[Tokens], clip_ids: Sequence[str]) -> None:
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
    encoded: Encoded,
    prompts: Sequence[Tokens],
    groups: list[list[_Making]],
    limit: int,
    temperature: float | None,
) -> None:
    """Fill the answers of `groups` (one group a clip) in place."""
    alive = [each for group in groups for each in group]
    for row, group in enumerate(groups):
        for each in group:
            each.row = row
    limit = min(limit, policy.max_target - len(prompts[0]))
    streams = {id(each): uniforms(each.seed, limit) for each in alive if each.seed is not None}
    state, logits = policy.begin(encoded, prompts, limit, len(alive))
    for step in range(limit):
        policy.vocabulary.mask_(logits, first=step == 0)
        rows = torch.tensor([each.row for each in alive], device=policy.device)
        if temperature is None:
            best = logits.argmax(-1)
            if bool(logits.gather(1, best[:, None]).isnan().any()):
                raise NonFinite(NOT_FINITE)
            tokens = best[rows].tolist()
        else:
            points = torch.tensor([streams[id(each)][step] for each in alive], dtype=torch.float64)
            drawn, values = draw(logits, rows, points.to(policy.device), temperature)
            tokens = drawn.tolist()
            for each, value in zip(alive, values.tolist()):
                each.logprobs.append(value)
        alive = _advance(alive, tokens, policy.vocabulary.stop)
        if not alive or step + 1 == limit:
            return
        logits = policy.step(state, _branch(state, alive).to(policy.device))


def _advance(alive: list[_Making], tokens: list[int], stop: int) -> list[_Making]:
    """Give each answer its token; returns those that go on."""
    for each, token in zip(alive, tokens):
        each.tokens.append(token)
        if token == stop:
            each.finish = "stop"
    return [each for each in alive if each.finish != "stop"]


def _branch(state: DecodeState, alive: list[_Making]) -> Tensor:
    """Fork the state so that answers that are still equal share a row; returns each row's token [rows]."""
    branches: dict[tuple[int, int], int] = {}
    entries = [branches.setdefault((each.row, each.tokens[-1]), len(branches)) for each in alive]
    order = state.fork([row for row, _ in branches])
    row_of = {entry: row for row, entry in enumerate(order)}
    for each, entry in zip(alive, entries):
        each.row = row_of[entry]
    last = [token for _, token in branches]
    return torch.tensor([last[entry] for entry in order])


def _answer(policy: Policy, clip_id: str, made: _Making, temperature: float) -> Answer:
    return Answer(
        clip_id=clip_id,
        text=policy.text(made.tokens),
        tokens=tuple(made.tokens),
        finish=made.finish,
        index=made.index,
        seed=made.seed,
        temperature=temperature,
        logprobs=tuple(made.logprobs) if made.seed is not None else None,
    )
