"""The no-training comparator of a label task: what aliases, priors and parsing alone would gain on the seed's answers.

Fitted on development rows only, then applied to every model compared. An RL gain over a poorly prompted seed need not
be a gain over this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tools.errors import CheckError
from tools.rows import ScoredRow
from tools.score.labels import INVALID, LabelSet, Reading, tabulate
from tools.score.transcripts import unique


@dataclass(frozen=True)
class Comparator:
    """A fixed map from answers to labels: aliases seen on dev, then the parser, then what a parsed label mostly stood
    for on dev, then dev's commonest label for an answer that names none. Empty and hedging answers stay invalid."""

    labels: LabelSet
    aliases: dict[str, str]
    remap: dict[str, str]
    fallback: str
    fitted_on: int
    split: str = "dev"

    def read(self, answer: str) -> str:
        """The label for an answer; INVALID for an empty or a hedging one."""
        text = self.labels.profile.normalise(answer)
        if not text or self.labels.hedges(answer):
            return INVALID
        if text in self.aliases:
            return self.aliases[text]
        parsed = self.labels.parse(answer)
        return self.remap.get(parsed, parsed) if parsed != INVALID else self.fallback

    def score(self, rows: Iterable[ScoredRow]) -> Reading:
        """The comparator's score on any model's rows. Raises CheckError for no rows or a doubled id."""
        held = list(unique(rows))
        if not held:
            raise CheckError("There are no rows to score: decode the split first.")
        truths = [self.labels.profile.normalise(row.ref) for row in held]
        return tabulate(truths, [self.read(row.hyp) for row in held], self.labels.labels)

    def to_json(self) -> dict[str, Any]:
        return {
            "labels": list(self.labels.labels),
            "aliases": dict(sorted(self.aliases.items())),
            "remap": dict(sorted(self.remap.items())),
            "fallback": self.fallback,
            "fitted_on": self.fitted_on,
            "split": self.split,
        }


def fit_comparator(rows: Sequence[ScoredRow], labels: LabelSet, split: str = "dev", min_count: int = 3) -> Comparator:
    """Fit on the seed's development rows. Raises CheckError for another split, or for no rows.

    An alias is an answer naming no label that stood for one in most of at least `min_count` rows. A parsed label is
    mapped to another one where that other is the truth in most of at least `min_count` rows.
    """
    if split != "dev":
        raise CheckError(f"The comparator is fitted on dev only, not on {split!r}: give it the development rows.")
    if not rows:
        raise CheckError("There are no development rows to fit the comparator on.")
    normalise = labels.profile.normalise
    raw: dict[str, Counter[str]] = {}
    parsed: dict[str, Counter[str]] = {}
    prior: Counter[str] = Counter()
    for row in rows:
        truth, answer, label = normalise(row.ref), normalise(row.hyp), labels.parse(row.hyp)
        prior[truth] += 1
        if label != INVALID:
            parsed.setdefault(label, Counter())[truth] += 1
        elif answer and not labels.hedges(row.hyp):
            raw.setdefault(answer, Counter())[truth] += 1
    aliases = {answer: best for answer, seen in raw.items() if (best := _majority(seen, min_count))}
    remap = {label: best for label, seen in parsed.items() if (best := _majority(seen, min_count)) and best != label}
    return Comparator(labels, aliases, remap, _first(prior), len(rows), split)


def _majority(seen: Counter[str], min_count: int) -> str:
    """The label of more than half of at least `min_count` rows, or an empty string."""
    best = _first(seen)
    total = sum(seen.values())
    return best if total >= min_count and 2 * seen[best] > total else ""


def _first(seen: Counter[str]) -> str:
    return min(seen, key=lambda label: (-seen[label], label))
