"""Which rule of a profile moved the score and by how much; and the score under several profiles side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
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


def rule_effects(rows: Iterable[ScoredRow], profile: Profile) -> list[RuleEffect]:
    """One line for the raw texts (cut at white space), then one a rule in the profile's order; rows are streamed."""
    names = ["raw", *(rule.name for rule in profile.rules), *(["compounds"] if profile.compounds else [])]
    sums = [[0, 0, 0] for _ in names]
    for row in rows:
        texts = row.ref, row.hyp
        _add(sums[0], *_cut(texts, row.lang, profile), touched=False)
        for held, rule in zip(sums[1:], profile.rules):
            before, texts = texts, (rule.apply(texts[0], row.lang), rule.apply(texts[1], row.lang))
            _add(held, *_cut(texts, row.lang, profile), touched=before != texts)
        if profile.compounds:
            apart, (ref, hyp, _) = _cut(texts, row.lang, profile), profile.pair(row.ref, row.hyp, row.lang)
            _add(sums[-1], ref, hyp, touched=apart != (ref, hyp))
    rates = [errors / units if units else None for errors, units, _ in sums]
    moves = [None if old is None or new is None else new - old for old, new in pairwise(rates)]
    return [
        RuleEffect(name, errors, units, rate, move, touched)
        for name, (errors, units, touched), rate, move in zip(names, sums, rates, [None, *moves])
    ]


def _cut(texts: tuple[str, str], lang: str | None, profile: Profile) -> tuple[list[str], list[str]]:
    kind = resolve(profile.unit_kind(lang), texts[0])
    return split(texts[0], kind), split(texts[1], kind)


def _add(held: list[int], ref: Sequence[str], hyp: Sequence[str], touched: bool) -> None:
    found = count(ref, hyp)
    for i, more in enumerate((found.total, found.reference, touched)):
        held[i] += more


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
