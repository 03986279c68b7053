"""Statistics by stratum, and which strata deserve more samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tools.errors import UsageError
from tools.groups import Errors, GroupStats, SetStats, group_stats, set_stats
from tools.mine.subset import group_by
from tools.rows import Group

CERTAIN = 0.9  # a stratum with contrast in this share of its clips needs no more samples to be called useful


@dataclass(frozen=True, slots=True)
class StratumStats:
    """One stratum: its statistics and a 95 % Wilson interval of the share of clips with contrast."""

    name: str
    stats: SetStats
    contrast_interval: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **self.stats.to_json(), "contrast_interval": list(self.contrast_interval)}


@dataclass(frozen=True, slots=True)
class MiningStats:
    """All groups together, by stratum, and clip by clip."""

    overall: SetStats
    strata: tuple[StratumStats, ...]
    groups: tuple[GroupStats, ...]
    stratum_of: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Figures only, no texts: fit for a report or a ledger."""
        return {**self.overall.to_json(), "strata": [s.to_json() for s in self.strata]}


@dataclass(frozen=True, slots=True)
class Extension:
    """A stratum to sample more: `clips` are its clips that have shown no better answer yet, `extra` answers each."""

    stratum: str
    clips: tuple[str, ...]
    extra: int
    why: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """95 % Wilson score interval of a share; (0, 1) without observations."""
    if n == 0:
        return 0.0, 1.0
    p, zz = hits / n, z * z
    centre, half = p + zz / (2 * n), z * math.sqrt(p * (1 - p) / n + zz / (4 * n * n))
    return max(0.0, (centre - half) / (1 + zz / n)), min(1.0, (centre + half) / (1 + zz / n))


def mining_stats(groups: Iterable[Group], strata: Mapping[str, str], errors: Errors | None = None) -> MiningStats:
    """Statistics overall and by stratum; `strata` maps clip ids to stratum names ("all" where one is missing)."""
    rows = [group_stats(g, errors) for g in groups]
    ids = [r.clip_id for r in rows]
    if len(set(ids)) < len(ids):
        raise UsageError(f"clip {next(i for i in ids if ids.count(i) > 1)} has two groups: merge them before mining")
    names = {r.clip_id: strata.get(r.clip_id, "all") for r in rows}
    parts = group_by(rows, lambda r: names[r.clip_id])
    table = tuple(StratumStats(k, set_stats(v), wilson(sum(g.contrast for g in v), len(v))) for k, v in parts.items())
    return MiningStats(set_stats(rows), table, tuple(rows), names)


def strata_to_extend(stats: MiningStats, extend_to: int = 16) -> list[Extension]:
    """Which strata to sample up to `extend_to` answers a clip: the useful ones whose worth is still uncertain.

    Useful: most answers are valid, and the clips are not all right already. Uncertain: fewer than nine clips in ten
    have shown contrast. Eight equal answers are weak evidence, so a stratum of flat but wrong groups is uncertain too.
    Only clips without an answer better than greedy are sampled again: the others have shown what they can.
    """
    out = []
    for stratum in stats.strata:
        s = stratum.stats
        members = [g for g in stats.groups if stats.stratum_of[g.clip_id] == stratum.name]
        clips = [g for g in members if g.answers < extend_to and not g.better and not _all_right(g)]
        if s.valid_share < 0.5 or s.contrast_share >= CERTAIN or not clips:
            continue
        why = (
            f"contrast in {sum(g.contrast for g in members)} of {len(members)} clips "
            f"(95 % interval {stratum.contrast_interval[0]:.2f} to {stratum.contrast_interval[1]:.2f})"
        )
        extra = extend_to - max(g.answers for g in clips)
        out.append(Extension(stratum.name, tuple(g.clip_id for g in clips), extra, why))
    return out


def strata_to_deepen(
    before: MiningStats, after: MiningStats, *, have: int, need: int, deepen_to: int = 32, least: float = 1.0
) -> list[Extension]:
    """Which strata to sample on from sixteen answers to 32 or 64: only where the expected extra yield justifies it.

    Justified: the run would lack groups (`have` of `need`), and the answers from eight to sixteen have turned clips of the
    stratum into ones with a better answer; as many again, in proportion to the clips still without one, must be `least`
    or more. A stratum that the second eight did not help is left: more of the same is dear and likely the same.
    """
    if have >= need:
        return []
    out = []
    first = {g.clip_id: g for g in before.groups}
    for stratum in after.strata:
        members = [g for g in after.groups if after.stratum_of[g.clip_id] == stratum.name]
        extended = [g for g in members if g.clip_id in first and g.answers > first[g.clip_id].answers]
        turned = sum(bool(g.better) and not first[g.clip_id].better for g in extended)
        left = [g for g in extended if not g.better and g.answers < deepen_to]
        expected = len(left) * turned / len(extended) if extended else 0.0
        if expected >= least:
            why = f"{stratum.name}: {turned} of {len(extended)} clips turned by sixteen, {expected:.1f} more expected"
            extra = deepen_to - max(g.answers for g in left)
            out.append(Extension(stratum.name, tuple(g.clip_id for g in left), extra, why))
    return out


def _all_right(group: GroupStats) -> bool:
    """Every answer without error: more samples would show the same."""
    return group.mean_errors == 0 and group.greedy_errors in (None, 0)


def merge_groups(first: Group, more: Group) -> Group:
    """The answers of both, for a clip sampled in two goes. Raises UsageError for two clips or answers counted twice."""
    if first.clip_id != more.clip_id:
        raise UsageError(f"cannot merge a group of clip {first.clip_id} with one of clip {more.clip_id}")
    seen = {a.index for a in first.answers}
    if doubled := seen & {a.index for a in more.answers}:
        raise UsageError(f"clip {first.clip_id}: answer {min(doubled)} is in both groups, it would count twice")
    return Group(
        first.clip_id,
        first.answers + more.answers,
        first.rewards + more.rewards,
        first.greedy or more.greedy,
        first.greedy_reward if first.greedy else more.greedy_reward,
    )
