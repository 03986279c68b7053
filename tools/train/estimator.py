"""Advantages of one group: how much better or worse an answer is than the others of the same clip.

Pure maths in numpy, no I/O. A group is all answers of one clip, so the size G may differ from group to group.

Three estimators, by name:

`skill`       (r_i - mean of the other G-1) / (sample std of all G + eps), float64 (seed 000 section 5).
`group_mean`  (r_i - mean of all G) / (sample std of all G + eps), float64 (the GRPO paper).
`nemo_rl`     baseline and sample std both leave the row out, std from float32 moments E[x^2] - E[x]^2, divided
              only where that std is not 0 (NeMo-RL `calculate_baseline_and_std_per_prompt` at 7ea279a).

Two guards, the same for all:

* no contrast, no advantage: where max(r) - min(r) <= 1e-6 on the raw rewards every advantage is exactly 0;
* no blow-up: a std below `std_floor` does not amplify. `skill` and `group_mean` divide by the floor instead;
  `nemo_rl` treats it as the 0 it nearly is and leaves the difference undivided, as it does with an exact 0. With the
  default floor of 0.01 a group that differs by 0.0001 gets advantages of 0.01 or less; by its own std it would be 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tools.errors import UsageError
from tools.groups.contrast import has_contrast, is_scored

Estimator = Literal["skill", "nemo_rl", "group_mean"]
EPS = 1e-6
STD_FLOOR = 0.01

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GroupAdvantage:
    """Advantages of one group, aligned with its answers.

    `values[i]` belongs to answer i and is 0.0 where that answer is not used. `used[i]` says whether answer i takes part
    in the loss. `dropped` are the positions of answers without a finite reward. `reason` is empty for a group that
    trains; otherwise "too_few_scored" or "no_contrast".
    """

    values: tuple[float, ...]
    used: tuple[bool, ...]
    dropped: tuple[int, ...]
    reason: str = ""

    @property
    def trains(self) -> bool:
        return not self.reason


def skill(rewards: Array, *, eps: float = EPS, std_floor: float = STD_FLOOR) -> Array:
    """`[G]` finite rewards -> `[G]` advantages: mean of the others, sample std of the whole group."""
    n = len(rewards)
    others = (rewards.sum() - rewards) / (n - 1)
    return (rewards - others) / (max(float(rewards.std(ddof=1)), std_floor) + eps)


def group_mean(rewards: Array, *, eps: float = EPS, std_floor: float = STD_FLOOR) -> Array:
    """`[G]` finite rewards -> `[G]` advantages: mean and sample std of the whole group."""
    return (rewards - rewards.mean()) / (max(float(rewards.std(ddof=1)), std_floor) + eps)


def nemo_rl_moments(rewards: Array, *, leave_one_out: bool = True) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """`[G]` rewards -> float32 `(baseline [G], std [G])` as NeMo-RL computes them, rounding included."""
    r = np.asarray(rewards, np.float32)
    n = len(r)
    m = np.float32(n - 1 if leave_one_out else n)
    weights = np.ones((n, n), np.float32) - (np.eye(n, dtype=np.float32) if leave_one_out else np.float32(0))
    baseline, square = (weights @ r) / m, (weights @ (r * r)) / m
    with np.errstate(invalid="ignore", divide="ignore"):
        std = np.sqrt((square - baseline * baseline) * (m / (m - np.float32(1))))
    std = np.nan_to_num(std, nan=0.0, posinf=0.0, neginf=0.0)
    return baseline.astype(np.float32), std.astype(np.float32)


def nemo_rl(rewards: Array, *, eps: float = EPS, std_floor: float = STD_FLOOR, leave_one_out: bool = True) -> Array:
    """`[G]` finite rewards -> `[G]` advantages of NeMo-RL, in float32 inside and float64 outside."""
    baseline, std = nemo_rl_moments(rewards, leave_one_out=leave_one_out)
    gain = np.asarray(rewards, np.float32) - baseline
    divisor = np.where(std > std_floor, std + np.float32(eps), np.float32(1))
    return (gain / divisor).astype(np.float64)


def frontier_weight(rewards: Sequence[float | None], strength: float, success: float) -> float:
    """What a group counts by its share p of answers with a reward of at least `success`: exp(-strength * KL(p || 1/2)).

    1 at p = 1/2, exp(-strength * ln 2) where all or none succeed; 1 for strength 0. Seed 004's MGPO variant.
    """
    scored = [r for r in rewards if r is not None and is_scored(r)]
    if not strength or not scored:
        return 1.0
    p = sum(r >= success for r in scored) / len(scored)
    return math.exp(-strength * sum(q * math.log(2.0 * q) for q in (p, 1.0 - p) if q > 0))


_BY_NAME = {"skill": skill, "group_mean": group_mean, "nemo_rl": nemo_rl}


def advantages(
    rewards: Sequence[float | None], estimator: Estimator = "skill", *, eps: float = EPS, std_floor: float = STD_FLOOR
) -> GroupAdvantage:
    """Advantages of one group, answers without a finite reward dropped by position.

    Raises UsageError for an unknown estimator. Every value returned is finite.
    """
    if estimator not in _BY_NAME:
        raise UsageError(f"unknown estimator {estimator!r}: use one of {', '.join(get_args(Estimator))}")
    scored = [i for i, r in enumerate(rewards) if is_scored(r)]
    dropped = tuple(i for i in range(len(rewards)) if i not in set(scored))
    values, used = [0.0] * len(rewards), [False] * len(rewards)
    if len(scored) < 2:
        return GroupAdvantage(tuple(values), tuple(used), dropped, "too_few_scored")
    if not has_contrast(rewards):
        return GroupAdvantage(tuple(values), tuple(used), dropped, "no_contrast")
    kept = np.array([rewards[i] for i in scored], np.float64)
    for i, a in zip(scored, _BY_NAME[estimator](kept, eps=eps, std_floor=std_floor)):
        values[i], used[i] = float(a), True
    if not np.all(np.isfinite(values)):
        raise UsageError(f"estimator {estimator!r} gave a non-finite advantage for the rewards {list(rewards)}")
    return GroupAdvantage(tuple(values), tuple(used), dropped)
