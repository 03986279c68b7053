"""Retained groups as the learner takes them: the different answers of a clip, with an advantage and a count each."""

from __future__ import annotations

from dataclasses import dataclass

from tools.groups import Retained
from tools.rows import Answer, Clip
from tools.train.config import GspoConfig
from tools.train.estimator import advantages, frontier_weight


@dataclass(frozen=True)
class TrainGroup:
    """The different answers of one clip that train, with an advantage each.

    `counts[i]` is how often answer i was sampled. Equal answers have equal tokens, reward and ratio, so one row
    weighted by its count gives the same loss and gradient as the copies, for less work.
    """

    clip: Clip
    answers: tuple[Answer, ...]
    advantages: tuple[float, ...]
    rewards: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def tokens(self) -> list[tuple[int, ...]]:
        return [a.tokens for a in self.answers]

    @property
    def lengths(self) -> list[int]:
        return [len(a.tokens) for a in self.answers]


def make_groups(retained: Retained, clips: dict[str, Clip], config: GspoConfig) -> list[TrainGroup]:
    """Advantages for the retained groups, one group a clip (F39); answers that do not count are left out by id."""
    if config.method == "sft":
        return [TrainGroup(clips[g.clip_id], g.answers, (0.0,), (0.0,), (1,)) for g in retained.groups]
    out = []
    for group in retained.groups:
        adv = advantages(group.rewards, config.estimator, std_floor=config.std_floor)
        weight = frontier_weight(group.rewards, config.frontier_weight, config.frontier_reward)
        same: dict[tuple[int, ...], list[int]] = {}
        for i, used in enumerate(adv.used):
            if used:
                same.setdefault(group.answers[i].tokens, []).append(i)
        first = [rows[0] for rows in same.values()]
        out.append(
            TrainGroup(
                clips[group.clip_id],
                tuple(group.answers[i] for i in first),
                tuple(weight * adv.values[i] for i in first),
                tuple(float(group.rewards[i] or 0.0) for i in first),
                tuple(len(rows) for rows in same.values()),
            )
        )
    assert len({g.clip.id for g in out}) == len(retained.groups), "as many groups as clips"
    return out
