"""Statistics of one group of answers, and of a set of groups: what is there to learn, and from how many clips.

Error rates here are ratios of corpus totals (house.md section 7), taken from an `errors` function that the caller
gives: `errors(clip_id, text) -> (errors, reference units)`. Without it, the rates are None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from tools.groups.contrast import CONTRAST, is_scored, scored, spread, why_unused
from tools.rows import Answer, Group

Errors = Callable[[str, str], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class GroupStats:
    """One clip. `valid` = scored and not cut at the limit; `better` = answers with a reward above the greedy one's.

    `spread` is max - min of the rewards. `greedy_errors`, `mean_errors`, `best_errors` are counts of errors against
    `units` reference units; best = the fewest of any sampled answer. None where no `errors` function was given.
    """

    clip_id: str
    answers: int
    valid: int
    truncated: int
    empty: int
    distinct: int
    reward_min: float | None
    reward_mean: float | None
    reward_max: float | None
    spread: float
    contrast: bool
    unused: str
    greedy_reward: float | None
    better: int | None
    units: float | None
    greedy_errors: float | None
    mean_errors: float | None
    best_errors: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SetStats:
    """A set of groups. Shares are of answers (valid, truncated, empty) or of clips (contrast, better, one_distinct).

    `greedy`, `mean_sample`, `oracle` are error rates over all clips that have them: sum of errors / sum of units. The
    oracle is the best of the samples: an estimate of opportunity, not of a trained model (seed 000 section 3).
    """

    clips: int
    answers: int
    answers_per_clip: float
    valid_share: float
    truncated_share: float
    empty_share: float
    contrast_share: float
    better_share: float | None
    one_distinct_share: float
    distinct_per_clip: float
    spread_mean: float
    reward_mean: float | None
    greedy: float | None
    mean_sample: float | None
    oracle: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def distinct(answers: Sequence[Answer]) -> int:
    """How many different texts a group holds (case and outer spaces count, they are what the model said)."""
    return len({a.text for a in answers})


def group_stats(group: Group, errors: Errors | None = None) -> GroupStats:
    """Statistics of one group; `errors` as in the module's docstring."""
    rewards = scored(group.rewards)
    greedy = group.greedy_reward if is_scored(group.greedy_reward) else None
    counts = [errors(group.clip_id, a.text) for a in group.answers] if errors else []
    base = errors(group.clip_id, group.greedy.text) if errors and group.greedy else None
    return GroupStats(
        clip_id=group.clip_id,
        answers=len(group.answers),
        valid=sum(is_scored(r) and a.finish != "length" for a, r in zip(group.answers, group.rewards)),
        truncated=sum(a.finish == "length" for a in group.answers),
        empty=sum(not a.text.strip() for a in group.answers),
        distinct=distinct(group.answers),
        reward_min=min(rewards, default=None),
        reward_mean=fmean(rewards) if rewards else None,
        reward_max=max(rewards, default=None),
        spread=spread(group.rewards),
        contrast=not why_unused(group.rewards),
        unused=why_unused(group.rewards),
        greedy_reward=greedy,
        better=None if greedy is None else sum(r > greedy + CONTRAST for r in rewards),
        units=counts[0][1] if counts else None,
        greedy_errors=base[0] if base else None,
        mean_errors=fmean(e for e, _ in counts) if counts else None,
        best_errors=min((e for e, _ in counts), default=None),
    )


def set_stats(groups: Iterable[GroupStats]) -> SetStats:
    """Statistics of a set of groups; every share of an empty set is 0 and every rate None."""
    rows = list(groups)
    answers = sum(g.answers for g in rows)
    with_greedy = [g for g in rows if g.better is not None]
    means = [g.reward_mean for g in rows if g.reward_mean is not None]
    return SetStats(
        clips=len(rows),
        answers=answers,
        answers_per_clip=_share(answers, len(rows)),
        valid_share=_share(sum(g.valid for g in rows), answers),
        truncated_share=_share(sum(g.truncated for g in rows), answers),
        empty_share=_share(sum(g.empty for g in rows), answers),
        contrast_share=_share(sum(g.contrast for g in rows), len(rows)),
        better_share=_share(sum(bool(g.better) for g in with_greedy), len(with_greedy)) if with_greedy else None,
        one_distinct_share=_share(sum(g.distinct <= 1 for g in rows), len(rows)),
        distinct_per_clip=_share(sum(g.distinct for g in rows), len(rows)),
        spread_mean=_share(sum(g.spread for g in rows), len(rows)),
        reward_mean=fmean(means) if means else None,
        greedy=_rate(rows, "greedy_errors"),
        mean_sample=_rate(rows, "mean_errors"),
        oracle=_rate(rows, "best_errors"),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _rate(rows: Sequence[GroupStats], field: str) -> float | None:
    """sum(field) / sum(units) over the rows that have the field; None without any reference unit."""
    have = [g for g in rows if getattr(g, field) is not None and g.units is not None]
    units = sum(g.units or 0 for g in have)
    return sum(getattr(g, field) for g in have) / units if units else None
