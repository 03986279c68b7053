"""The sampling half of an update: offer clips in order, G answers each, keep the first N groups with contrast."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from tools.errors import CheckError
from tools.groups import Retained, first_n_with_contrast, has_contrast
from tools.rows import Answer, Clip, Group
from tools.train.config import GspoConfig
from tools.train.order import ClipOrder, Position

if TYPE_CHECKING:
    from torch import Tensor

Encode = Callable[[Sequence[Clip]], "Tensor"]
Prompts = Callable[[Clip], tuple[int, ...]]
Reward = Callable[..., "float | None"]
Normalise = Callable[[str, "str | None"], str]
REWARD_MOST = 1e6  # a reward beyond this is a mistake: float32 sums of its square lose everything else


def normaliser(reward: Any) -> Normalise:
    """How a reward reads a text before it compares; the text itself where it brings no profile."""
    profile = getattr(reward, "profile", None)
    return _as_written if profile is None else profile.normalise


def _as_written(text: str, lang: str | None) -> str:
    return text


class Sampler(Protocol):
    """`tools.decode.local.sample`, or anything that gives the same answers for the same seeds."""

    def __call__(
        self,
        policy: Any,
        encoded: Tensor,
        prompts: Sequence[tuple[int, ...]],
        clip_ids: Sequence[str],
        n: int,
        temperature: float,
        limit: int,
        seeds: Sequence[Sequence[int]],
    ) -> list[list[Answer]]: ...


@dataclass(frozen=True)
class Rollout:
    """What an update sampled. `groups` are all offered groups in order; `retained` the first N with contrast.

    `raw` holds the rewards before answers cut at the limit were taken out, by clip id; `after` is the data position
    when the update is done.
    """

    retained: Retained
    groups: tuple[Group, ...]
    raw: Mapping[str, tuple[float | None, ...]]
    after: Position


def base_seed(random_seed: int, update: int) -> int:
    """The seed of an update, from which every answer's own seed follows."""
    return int.from_bytes(hashlib.sha256(f"{random_seed}:{update}".encode()).digest()[:8], "big") >> 1


class RolloutSource:
    """Samples groups for an update from the pool, in chunks no larger than the number of groups still missing."""

    def __init__(
        self,
        policy: Any,
        pool: Sequence[Clip],
        encode: Encode,
        reward: Reward,
        config: GspoConfig,
        *,
        prompts: Prompts,
        sample: Sampler,
        answer_seed: Callable[[int, str, int], int],
        check: Callable[[], None],
        progress: Callable[[int, int], None],
    ) -> None:
        self.policy, self.encode, self.reward, self.config = policy, encode, reward, config
        self.clips = {c.id: c for c in pool}
        self.prompts, self.sample, self.answer_seed = prompts, sample, answer_seed
        self.check, self.progress = check, progress
        self.normalise = normaliser(reward)
        self.order = ClipOrder([c.id for c in pool], config.random_seed, config.groups * config.offer_factor)

    def collect(self, update: int, position: Position) -> Rollout:
        """Sample update `update` from `position`. `check` is called before every chunk and may raise to stop."""
        groups: list[Group] = []
        raw: dict[str, tuple[float | None, ...]] = {}
        most = min(self.config.groups * self.config.offer_factor, len(self.clips))
        stream = self._stream(update, position, most, groups, raw)
        retained = first_n_with_contrast(stream, self.config.groups, max(most, self.config.groups))
        assert [g.clip_id for g in groups] == list(retained.offered), "every clip sampled was offered, once"
        return Rollout(retained, tuple(groups), raw, self.order.advance(position, len(retained.offered)))

    def _stream(
        self,
        update: int,
        position: Position,
        most: int,
        groups: list[Group],
        raw: dict[str, tuple[float | None, ...]],
    ) -> Iterator[Group]:
        ids = _until_repeat(self.order.following(position))
        missing = self.config.groups
        while missing > 0 and len(groups) < most:
            chunk = list(islice(ids, min(missing, most - len(groups), self.config.sample_clips)))
            if not chunk:
                return
            self.check()
            self.progress(len(groups), most)
            for group, rewards in self._sample_chunk(update, chunk):
                groups.append(group)
                raw[group.clip_id] = rewards
                missing -= has_contrast(group.rewards)
                yield group

    def _sample_chunk(self, update: int, ids: Sequence[str]) -> list[tuple[Group, tuple[float | None, ...]]]:
        import torch

        c = self.config
        clips = [self.clips[i] for i in ids]
        base = base_seed(c.random_seed, update)
        seeds = [[self.answer_seed(base, i, k) for k in range(c.answers)] for i in ids]
        with torch.no_grad():
            encoded = self.encode(clips)
            answers = self.sample(
                self.policy,
                encoded,
                [self.prompts(x) for x in clips],
                ids,
                c.answers,
                c.temperature,
                c.answer_limit,
                seeds,
            )
        return [self._score(clip, row) for clip, row in zip(clips, answers, strict=True)]

    def _score(self, clip: Clip, answers: Sequence[Answer]) -> tuple[Group, tuple[float | None, ...]]:
        """One clip's group: rewards bound to answers by clip id, answers cut at the limit handled by rule (F32)."""
        n = self.config.answers
        if len(answers) != n or any(a.clip_id != clip.id for a in answers):
            ids = sorted({a.clip_id for a in answers})
            raise CheckError(f"clip {clip.id}: {n} answers were asked for, {len(answers)} came, of clips {ids}")
        raw = tuple(_finite(self.reward(a.text, clip.text or "", clip.lang), clip.id) for a in answers)
        kept = tuple(r if self._counts(clip, a) else None for a, r in zip(answers, raw))
        return Group(clip.id, tuple(answers), kept), raw

    def _counts(self, clip: Clip, answer: Answer) -> bool:
        """Whether an answer trains. One cut at the limit may have been on its way to being right: its reward then says
        more about the limit than about the answer. Once it is longer than its reference it cannot be right any more, and
        leaving it out would teach that running on costs nothing."""
        if answer.finish != "length" or self.config.truncated == "keep":
            return True
        if self.config.truncated == "drop":
            return False
        said, due = (len("".join(self.normalise(t, clip.lang).split())) for t in (answer.text, clip.text or ""))
        return said > due


class ReferenceSource:
    """For supervised training: the next N clips in the same order, each with its reference as the one answer.

    A run of it takes as many optimiser steps on as many clips an update as a GSPO run of the same settings: the control
    arm that says what the rewards added.
    """

    def __init__(
        self,
        pool: Sequence[Clip],
        config: GspoConfig,
        *,
        targets: Callable[[Clip], tuple[int, ...]],
        check: Callable[[], None],
    ) -> None:
        self.clips, self.config, self.targets, self.check = {c.id: c for c in pool}, config, targets, check
        self.order = ClipOrder([c.id for c in pool], config.random_seed, config.groups)

    def collect(self, update: int, position: Position) -> Rollout:
        """The clips of update `update` from `position`; no rewards. `targets(clip)` ends in the stop token."""
        self.check()
        ids = list(islice(_until_repeat(self.order.following(position)), self.config.groups))
        groups = tuple(Group(i, (self._reference(self.clips[i]),), (None,)) for i in ids)
        kept = Retained(groups, tuple(ids), {}, self.config.groups)
        return Rollout(kept, groups, {}, self.order.advance(position, len(ids)))

    def _reference(self, clip: Clip) -> Answer:
        return Answer(clip.id, clip.text or "", self.targets(clip), index=0)


def _until_repeat(ids: Iterator[str]) -> Iterator[str]:
    """Ids up to the first that comes a second time: a small pool is not offered twice in one update."""
    seen: set[str] = set()
    for i in ids:
        if i in seen:
            return
        seen.add(i)
        yield i


def _finite(reward: float | None, clip_id: str = "") -> float | None:
    """A reward that is not a finite number counts as not scored (F41). Raises CheckError where no fair sum could hold it."""
    if reward is None:
        return None
    try:
        value = float(reward)
    except (TypeError, ValueError) as error:
        raise CheckError(f"the reward of an answer of clip {clip_id} is {reward!r}: give a number or None") from error
    if math.isfinite(value) and abs(value) > REWARD_MOST:
        raise CheckError(f"the reward of an answer of clip {clip_id} is {value:g}: scale it to at most {REWARD_MOST:g}")
    return value if math.isfinite(value) else None
