"""Which rule of a profile moved the score and by how much; and the score under several profiles side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.rows import ScoredRow
from tools.score.align import count
from tools.score.compare import Comparison, compare_rows
from tools.score.transcripts import TranscriptScore, score_rows
from tools.text.profile import Profile
from tools.text.units import resolve, split


@dataclass(frozen=True)
class RuleEffect:
    """The totals once this rule has run as well. `change` is the rate's move (None for the first line, the raw texts);
    the moves add up to the difference between raw and profile. `rows` counts rows whose pair the rule touched."""

    rule: str
    errors: int
    reference_units: int
    rate: float | None
    change: float | None
    rows: int

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def rule_effects(rows: Sequence[ScoredRow], profile: Profile) -> list[RuleEffect]:
    """One line for the raw texts (cut at white space), then one a rule in the profile's order."""
    pairs = [(row.ref, row.hyp) for row in rows]
    out = [_effect("raw", pairs, rows, profile, None, 0)]
    for rule in profile.rules:
        after = [(rule.apply(r, row.lang), rule.apply(h, row.lang)) for (r, h), row in zip(pairs, rows)]
        touched = sum(old != new for old, new in zip(pairs, after))
        out.append(_effect(rule.name, after, rows, profile, out[-1].rate, touched))
        pairs = after
    if profile.compounds:
        final = score_rows(rows, profile)
        change = None if final.value is None or out[-1].rate is None else final.value - out[-1].rate
        out.append(RuleEffect("compounds", final.errors, final.reference_units, final.value, change, 0))
    return out


def _effect(
    name: str,
    pairs: Sequence[tuple[str, str]],
    rows: Sequence[ScoredRow],
    profile: Profile,
    before: float | None,
    touched: int,
) -> RuleEffect:
    errors = units = 0
    for (ref, hyp), row in zip(pairs, rows):
        kind = resolve(profile.unit_kind(row.lang), ref)
        found = count(split(ref, kind), split(hyp, kind))
        errors += found.total
        units += found.reference
    rate = errors / units if units else None
    change = None if before is None or rate is None else rate - before
    return RuleEffect(name, errors, units, rate, change, touched)


def score_under(rows: Sequence[ScoredRow], profiles: Sequence[Profile]) -> dict[str, TranscriptScore]:
    """The score under each profile, by its name."""
    return {profile.name: score_rows(rows, profile) for profile in profiles}


def compare_under(
    a: Sequence[ScoredRow], b: Sequence[ScoredRow], profiles: Sequence[Profile], by: str = "speaker"
) -> dict[str, Comparison]:
    """The comparison under each profile: a gain that one alone shows is a gain of style (`style_gain`)."""
    return {profile.name: compare_rows(a, b, profile, by) for profile in profiles}


def style_gain(comparisons: dict[str, Comparison]) -> bool:
    """True where the change has not the same sign under all profiles."""
    signs = {(c.delta > 0) - (c.delta < 0) for c in comparisons.values() if c.delta is not None}
    return len(signs) > 1
