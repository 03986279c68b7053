"""The most frequent confusions, keyword and entity error rates, the worst rows."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.errors import UsageError
from tools.rows import ScoredRow
from tools.score.align import count, pairs
from tools.text.profile import Profile

KEPT = 50_000


def confusions(
    rows: Iterable[ScoredRow], profile: Profile, top: int = 20
) -> dict[str, list[tuple[str | None, str | None, int]]]:
    """The `top` substitutions, deletions and insertions: (reference unit, hypothesis unit, times).

    Memory is bounded: beyond 100,000 different pairs of a kind the rarest half is forgotten.
    """
    found: dict[str, Counter[tuple[str | None, str | None]]] = {
        name: Counter() for name in ("substitutions", "deletions", "insertions")
    }
    for row in rows:
        ref, hyp, _ = profile.pair(row.ref, row.hyp, row.lang)
        if ref == hyp:
            continue
        for said, heard in pairs(ref, hyp):
            name = "insertions" if said is None else "deletions" if heard is None else "substitutions"
            found[name][said, heard] += 1
            if len(found[name]) > 2 * KEPT:
                found[name] = Counter(dict(found[name].most_common(KEPT)))
    return {name: [(*pair, n) for pair, n in _most(counter, top)] for name, counter in found.items()}


def _most(counter: Counter[tuple[str | None, str | None]], top: int) -> list[tuple[tuple[str | None, str | None], int]]:
    """Most frequent first, ties by text, so that the order is the same every time."""
    return sorted(counter.items(), key=lambda item: (-item[1], item[0][0] or "", item[0][1] or ""))[:top]


@dataclass(frozen=True)
class KeywordScore:
    """Keyword errors over a corpus. `said`: occurrences in references; `missed` of them not in the hypothesis;
    `invented`: occurrences in hypotheses beyond the reference's, clip by clip. `rate` = (missed + invented) / said."""

    said: int
    missed: int
    invented: int
    by_keyword: dict[str, tuple[int, int, int]]

    @property
    def rate(self) -> float | None:
        return (self.missed + self.invented) / self.said if self.said else None

    @property
    def recall(self) -> float | None:
        return 1.0 - self.missed / self.said if self.said else None

    def to_json(self) -> dict[str, Any]:
        table = {k: dict(zip(("said", "missed", "invented"), v)) for k, v in self.by_keyword.items()}
        fields = {"said": self.said, "missed": self.missed, "invented": self.invented}
        return {**fields, "rate": self.rate, "recall": self.recall, "by_keyword": table}


def keyword_score(rows: Iterable[ScoredRow], profile: Profile, keywords: Sequence[str]) -> KeywordScore:
    """Error rate of a customer's keywords (phrases welcome), as normalised. Raises UsageError for an empty keyword."""
    phrases = {word: profile.units(word) for word in dict.fromkeys(keywords)}
    for word, units in phrases.items():
        if not units:
            raise UsageError(f"The keyword {word!r} is empty under the profile {profile.name!r}: remove it.")
    table = {word: [0, 0, 0] for word in phrases}
    for row in rows:
        ref, hyp, _ = profile.pair(row.ref, row.hyp, row.lang)
        for word, units in phrases.items():
            said, heard = occurrences(units, ref), occurrences(units, hyp)
            table[word][0] += said
            table[word][1] += max(said - heard, 0)
            table[word][2] += max(heard - said, 0)
    said, missed, invented = (sum(row[i] for row in table.values()) for i in range(3))
    return KeywordScore(said, missed, invented, {word: (v[0], v[1], v[2]) for word, v in table.items()})


def occurrences(phrase: Sequence[str], units: Sequence[str]) -> int:
    """How often the phrase stands in the units."""
    size = len(phrase)
    if size == 1:
        return list(units).count(phrase[0])
    return sum(list(units[i : i + size]) == list(phrase) for i in range(len(units) - size + 1))


def entity_score(
    rows: Iterable[ScoredRow], profile: Profile, entities: Mapping[str, Sequence[str]]
) -> dict[str, KeywordScore]:
    """Keyword scores by class of entity (`{"drug": [...], "place": [...]}`)."""
    held = list(rows)
    return {name: keyword_score(held, profile, words) for name, words in entities.items()}


@dataclass(frozen=True)
class WorstRow:
    """One of the rows with the most errors."""

    id: str
    errors: int
    reference_units: int
    ref: str
    hyp: str
    audio: str | None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def worst_rows(
    rows: Iterable[ScoredRow], profile: Profile, top: int = 20, audio: Mapping[str, str] | None = None
) -> list[WorstRow]:
    """The `top` rows by errors, then by id, with the clip's audio path (`audio` maps row ids to paths)."""
    paths = audio or {}

    def measured() -> Iterable[WorstRow]:
        for row in rows:
            ref, hyp, _ = profile.pair(row.ref, row.hyp, row.lang)
            yield WorstRow(row.id, count(ref, hyp).total, len(ref), row.ref, row.hyp, paths.get(row.id))

    return [r for r in heapq.nsmallest(top, measured(), key=lambda r: (-r.errors, r.id)) if r.errors]
