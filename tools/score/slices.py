"""Slices of an evaluation: by language, speaker, duration, domain; code switching; clips that hold numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from tools.rows import ScoredRow
from tools.score.align import count, wrong_positions
from tools.score.diagnose import main_script, script_of
from tools.score.transcripts import TranscriptScore, score_by
from tools.text.english.cardinals import DECADES, ORDINALS, SCALES, TENS, TENTHS, UNITS
from tools.text.profile import Profile

DURATION_EDGES_S = (2.0, 5.0, 10.0, 20.0, 30.0)
_DIGIT = regex.compile(r"\p{N}")
_HAN_NUMBER = regex.compile(r"[零〇一二三四五六七八九十百千万亿億兩两]")
_NUMBER_WORDS = frozenset([*UNITS, *TENS, *SCALES, *ORDINALS, *TENTHS, *DECADES, "hundred"]) - {"one", "second"}


def duration_slice(row: ScoredRow) -> str:
    """`00-02 s`, `02-05 s`, ... `30+ s`; "" where the duration is unknown."""
    if not row.duration_s > 0:
        return ""
    low = 0.0
    for high in DURATION_EDGES_S:
        if row.duration_s < high:
            return f"{low:02.0f}-{high:02.0f} s"
        low = high
    return f"{low:02.0f}+ s"


def by_domain(domains: Mapping[str, str]) -> Callable[[ScoredRow], str | None]:
    """A slice key from row ids to a customer's domains."""
    return lambda row: domains.get(row.id)


def has_number(row: ScoredRow) -> bool:
    """True where either text holds a number, in digits, Han numerals or English words."""
    for text in (row.ref, row.hyp):
        if _DIGIT.search(text) or not _NUMBER_WORDS.isdisjoint(text.lower().split()) or _HAN_NUMBER.search(text):
            return True
    return False


def score_numbers(rows: Iterable[ScoredRow], profile: Profile) -> dict[str, TranscriptScore]:
    """`with numbers` and `without numbers`: for a language whose profile has no number rules, show both."""
    return score_by(rows, lambda row: "with numbers" if has_number(row) else "without numbers", profile)


# --- code switching ------------------------------------------------------------------------------------------------


def unit_script(unit: str) -> str:
    """The script of one unit; empty for digits and signs."""
    return main_script(unit) if len(unit) > 1 else script_of(unit)


def switch_slice(profile: Profile) -> Callable[[ScoredRow], str]:
    """A slice key: `mono Latin`, `mono Han` (kana included), ... or `mixed`, by the scripts of the reference."""

    def key(row: ScoredRow) -> str:
        scripts = {_family(unit_script(u)) for u in profile.units(row.ref, row.lang)} - {""}
        return "mixed" if len(scripts) > 1 else f"mono {next(iter(scripts))}" if scripts else ""

    return key


def _family(script: str) -> str:
    return "Han" if script in ("Hiragana", "Katakana") else script


@dataclass(frozen=True)
class SwitchErrors:
    """Errors on the embedded language's units alone (PIER: points of interest), and on units at a switch of script.

    The embedded script is the rarer one of each mixed reference. Insertions have no reference unit and are not counted.
    """

    embedded_units: int
    embedded_errors: int
    switch_units: int
    switch_errors: int
    rows: int

    @property
    def embedded_rate(self) -> float | None:
        return self.embedded_errors / self.embedded_units if self.embedded_units else None

    @property
    def switch_rate(self) -> float | None:
        return self.switch_errors / self.switch_units if self.switch_units else None

    def to_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "embedded_rate": self.embedded_rate, "switch_rate": self.switch_rate}


def switch_errors(rows: Iterable[ScoredRow], profile: Profile) -> SwitchErrors:
    """Error rates at the places that matter in mixed utterances."""
    totals = [0, 0, 0, 0, 0]
    for row in rows:
        ref, hyp, _ = profile.pair(row.ref, row.hyp, row.lang)
        scripts = [_family(unit_script(unit)) for unit in ref]
        votes = {s: scripts.count(s) for s in dict.fromkeys(scripts) if s}
        if len(votes) < 2:
            continue
        wrong = wrong_positions(ref, hyp)
        embedded = min(votes, key=lambda s: (votes[s], s))
        inner = {i for i, s in enumerate(scripts) if s == embedded}
        at_switch = {i for i in range(len(ref)) if _switches(scripts, i)}
        counted = (len(inner), len(inner & wrong), len(at_switch), len(at_switch & wrong), 1)
        totals = [a + b for a, b in zip(totals, counted)]
    return SwitchErrors(*totals)


def _switches(scripts: Sequence[str], i: int) -> bool:
    """True where unit i stands beside a unit of another script."""
    near = [scripts[j] for j in (i - 1, i + 1) if 0 <= j < len(scripts)]
    return bool(scripts[i]) and any(s and s != scripts[i] for s in near)


def empty_and_loud(rows: Iterable[ScoredRow], profile: Profile) -> dict[str, float | int | None]:
    """Clips with an empty reference: how many, how many answered, units invented, units an hour of their audio."""
    clips = answered = units = 0
    seconds = 0.0
    for row in rows:
        ref, hyp, _ = profile.pair(row.ref, row.hyp, row.lang)
        if ref:
            continue
        clips, answered, units = clips + 1, answered + bool(hyp), units + count(ref, hyp).insertions
        seconds += row.duration_s
    return {
        "clips": clips,
        "answered": answered,
        "units": units,
        "units_per_hour": units / (seconds / 3600.0) if seconds > 0 else None,
    }
