"""Whether a run goes on after a stage: twenty updates first, then as long as dev says so, never because the reward does.

Source: seed 000 sections 4 and 5: small tasks twenty updates first, at most a hundred in the initial comparison; refills
that dominate, a reward that rises without dev, and a limit that is broken each have their own answer. What is decided
depends on figures alone, so a run that was killed and resumed decides the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal

MOST_UPDATES = 100
REFILLS_DOMINATE = 0.5  # this share or more of what was offered in the stage was passed over

Reason = Literal["improving", "limits", "refills", "inspect", "flat", "no_new_best"]


@dataclass(frozen=True, slots=True)
class Point:
    """A checkpoint: its dev error and whether the declared rule would take it."""

    update: int
    dev: float | None
    eligible: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """What is known at the end of a stage of `size` updates, the last being `update`.

    `seed_dev`: the seed's dev error; `noise`: what it differs from itself; `points`: all checkpoints so far; `offered`,
    `retained`: groups of the last stage; `reward_rises`: the offered reward over the whole run.
    """

    update: int
    size: int
    seed_dev: float
    noise: float
    points: tuple[Point, ...]
    offered: int
    retained: int
    reward_rises: bool

    @property
    def refill_share(self) -> float:
        return 1 - self.retained / self.offered if self.offered else 0.0


@dataclass(frozen=True, slots=True)
class Going:
    """`go_on` or not, the reason, and a sentence."""

    go_on: bool
    reason: Reason
    because: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def is_boundary(update: int, size: int, checkpoint_every: int) -> bool:
    """Whether a checkpoint at `update` is the first one at or after a whole number of stages."""
    return update // size > max(0, update - checkpoint_every) // size


def going_on(stage: Stage) -> Going:
    """Decide. The questions in order: limits, refills, dev; a reward that rises alone is a reason to look, not to go on.

    Retention wavers from checkpoint to checkpoint: the first stage, or two in a row, without any within the limits end a run.
    Which checkpoint is taken is the selection's to say; whether dev still falls is asked of all of them.
    """
    recent = [p for p in stage.points if p.update > stage.update - 2 * stage.size]
    known = [p for p in stage.points if p.dev is not None]
    if recent and not any(p.eligible for p in recent):
        text = "no checkpoint of late keeps retention and classes within their limits: the earlier acceptable one stays"
        return Going(False, "limits", text)
    if stage.offered and stage.refill_share >= REFILLS_DOMINATE:
        text = (
            f"{stage.refill_share:.0%} of the groups sampled in the last stage were refills: the selection is used up"
        )
        return Going(False, "refills", text)
    best = _best(known)
    if best is None or best.dev is None or best.dev >= stage.seed_dev - stage.noise:
        if stage.reward_rises:
            return Going(False, "inspect", "the reward rises and dev does not: paired outputs and scoring come first")
        return Going(False, "flat", "neither reward nor dev has moved")
    if best.update <= stage.update - stage.size:
        return Going(False, "no_new_best", f"dev has not improved since update {best.update}")
    return Going(True, "improving", f"dev fell to {best.dev:.4f} at update {best.update} (seed {stage.seed_dev:.4f})")


def _best(points: Sequence[Point]) -> Point | None:
    return min(points, key=lambda p: (p.dev if p.dev is not None else float("inf"), p.update), default=None)


def rises(rewards: Sequence[float]) -> bool:
    """The last third is above the first by more than the noise between neighbours."""
    third = len(rewards) // 3
    if third < 2:
        return True
    noise = math.sqrt(fmean((a - b) ** 2 for a, b in pairwise(rewards)) / 2 / third)
    return fmean(rewards[-third:]) > fmean(rewards[:third]) + noise
