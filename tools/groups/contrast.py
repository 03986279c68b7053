"""Does a group of answers hold contrast, and the first N groups of a stream that do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from tools.errors import UsageError
from tools.rows import Group

CONTRAST = 1e-6


def is_scored(reward: float | None) -> TypeGuard[float]:
    """A reward that may reach a trainer: a finite number."""
    return reward is not None and math.isfinite(reward)


def scored(rewards: Sequence[float | None]) -> list[float]:
    """The finite rewards of a group, in order."""
    return [r for r in rewards if is_scored(r)]


def spread(rewards: Sequence[float | None]) -> float:
    """max - min of the finite rewards; 0 with fewer than two of them."""
    kept = scored(rewards)
    return max(kept) - min(kept) if len(kept) > 1 else 0.0


def has_contrast(rewards: Sequence[float | None]) -> bool:
    """True where max(reward) - min(reward) > 1e-6 over at least two finite rewards (house.md section 7)."""
    return spread(rewards) > CONTRAST


def why_unused(rewards: Sequence[float | None]) -> str:
    """ "" for a group with contrast, else "too_few_scored" or "no_contrast"."""
    if len(scored(rewards)) < 2:
        return "too_few_scored"
    return "" if has_contrast(rewards) else "no_contrast"


@dataclass(frozen=True, slots=True)
class Retained:
    """What `first_n_with_contrast` kept of what it was offered.

    `groups` are the first N with contrast, in the order offered; `offered` the ids of every clip sampled, in order;
    `unused` says by clip id why a group was passed over. `refills` counts the clips sampled beyond the first N.
    """

    groups: tuple[Group, ...]
    offered: tuple[str, ...]
    unused: dict[str, str]
    wanted: int

    @property
    def refills(self) -> int:
        return max(0, len(self.offered) - self.wanted)

    @property
    def short(self) -> int:
        """How many groups are missing to the N that were wanted."""
        return self.wanted - len(self.groups)

    def to_json(self) -> dict[str, Any]:
        return {
            "retained": [g.clip_id for g in self.groups],
            "offered": list(self.offered),
            "unused": dict(self.unused),
            "refills": self.refills,
            "short": self.short,
        }


def first_n_with_contrast(stream: Iterable[Group], n: int, max_offer: int) -> Retained:
    """Take groups from a lazy stream until `n` have contrast or `max_offer` were offered.

    The same first N as from offering all `max_offer` and keeping the first N with contrast, without sampling the rest:
    nothing is drawn from the stream after the N-th, so a stream that samples on demand samples no clip in vain.
    Raises UsageError when a clip id comes twice: a group is one clip's answers, keyed by its id.
    """
    if n < 1 or max_offer < n:
        raise UsageError(f"cannot keep {n} groups of at most {max_offer} offered: ask for 1 <= n <= max_offer")
    kept: list[Group] = []
    offered: list[str] = []
    unused: dict[str, str] = {}
    for group in stream:
        if group.clip_id in offered:
            raise UsageError(f"clip {group.clip_id} was offered twice in one update: clip ids must be unique")
        if len(group.rewards) != len(group.answers):
            raise UsageError(f"clip {group.clip_id} has {len(group.answers)} answers but {len(group.rewards)} rewards")
        offered.append(group.clip_id)
        reason = why_unused(group.rewards)
        if reason:
            unused[group.clip_id] = reason
        else:
            kept.append(group)
        if len(kept) == n or len(offered) == max_offer:
            break
    return Retained(tuple(kept), tuple(offered), unused, n)
