"""Scores of label tasks: strict and parsed, side by side; parsing never rewards an empty or a hedging answer.

Strict: the normalised answer is exactly a label. Parsed: an answer that names one label and nothing that speaks against
it. An answer that names two labels, negates one, or is empty is invalid in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score.doubts import doubts
from tools.score.transcripts import unique
from tools.text.profile import Profile

INVALID = "<invalid>"


@dataclass(frozen=True)
class LabelSet:
    """Labels of a task as normalised, and the aliases that parsing accepts. `parse` is the only parser: apply it to
    every model compared."""

    profile: Profile
    labels: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def strict(self, answer: str) -> str:
        """The label that the answer is, else INVALID."""
        text = self.profile.normalise(answer)
        return text if text in self.labels else INVALID

    def parse(self, answer: str) -> str:
        """The one label that the answer names, else INVALID: two labels, a negation, a hedge or nothing."""
        text = self.profile.normalise(answer)
        if text in self.labels:
            return text
        if text in self.aliases:
            return self.aliases[text]
        named, _ = self._named(text.split())
        return named.pop() if len(named) == 1 and not self.hedges(answer) else INVALID

    def hedges(self, answer: str) -> bool:
        """True for an answer that names two labels, or negates or doubts what it says."""
        text = self.profile.normalise(answer)
        if text in self.labels or text in self.aliases:
            return False
        named, rest = self._named(text.split())
        return len(named) > 1 or doubts(rest, self.profile)

    def _named(self, words: Sequence[str]) -> tuple[set[str], set[str]]:
        """The labels that stand in the words (the longest phrase first), and the words that are left."""
        spoken = {label: label for label in self.labels} | dict(self.aliases)
        phrases = sorted(
            ((phrase.split(), label) for phrase, label in spoken.items()), key=lambda p: (-len(p[0]), p[0])
        )
        left: list[str | None] = list(words)
        named: set[str] = set()
        for phrase, label in phrases:
            size = len(phrase)
            for i in range(len(left) - size + 1):
                if left[i : i + size] == phrase:
                    named.add(label)
                    left[i : i + size] = [None] * size
        return named, {word for word in left if word}


def label_set(profile: Profile, labels: Iterable[str], aliases: Mapping[str, str] | None = None) -> LabelSet:
    """Labels and aliases as normalised. Raises UsageError for labels that fall together or vanish under the profile,
    and for an alias of no label or of two."""
    seen: dict[str, str] = {}
    for label in labels:
        text = profile.normalise(label)
        if not text:
            raise UsageError(f"The label {label!r} is empty under the profile {profile.name!r}: rename it.")
        if " ".join(seen.setdefault(text, label).split()).lower() != " ".join(label.split()).lower():
            raise UsageError(f"The labels {seen[text]!r} and {label!r} are one under {profile.name!r}: rename one.")
    known: dict[str, str] = {}
    for alias, label in (aliases or {}).items():
        short, target = profile.normalise(alias), profile.normalise(label)
        if target not in seen:
            raise UsageError(f"The alias {alias!r} stands for {label!r}, which is no label: correct it.")
        if not short or short in seen or known.get(short, target) != target:
            raise UsageError(f"The alias {alias!r} is empty, a label itself or stands for two labels: remove it.")
        known[short] = target
    return LabelSet(profile, tuple(sorted(seen)), known)


def variants(labels: Iterable[str]) -> dict[str, list[str]]:
    """Spellings of one label that differ in blanks or case only, where there are several: for a warning."""
    groups: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        groups.setdefault(" ".join(label.split()).lower(), []).append(label)
    return {key: spellings for key, spellings in groups.items() if len(spellings) > 1}


@dataclass(frozen=True)
class Reading:
    """The score of one way to read answers. `recall` by class; `macro_recall` over classes that have rows; `confusion`
    [label][read as] with INVALID as a column; `precision` is None for a class never given."""

    correct: int
    rows: int
    accuracy: float
    macro_recall: float
    recall: dict[str, float]
    precision: dict[str, float | None]
    confusion: dict[str, dict[str, int]]
    invalid: int

    @property
    def invalid_rate(self) -> float:
        return self.invalid / self.rows

    def to_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "invalid_rate": self.invalid_rate}


@dataclass(frozen=True)
class LabelScore:
    """Strict and parsed scores of the same answers, never mixed."""

    strict: Reading
    parsed: Reading
    empty: int
    profile: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "metric": "accuracy",
            "strict": self.strict.to_json(),
            "parsed": self.parsed.to_json(),
            "empty": self.empty,
            "profile": self.profile,
        }


def score_labels(rows: Iterable[ScoredRow], labels: LabelSet) -> LabelScore:
    """Score answers (`hyp`) against labels (`ref`). Raises CheckError for no rows, a doubled id, or a reference that is
    no label."""
    held = list(unique(rows))
    if not held:
        raise CheckError("There are no rows to score: decode the split first.")
    truths = [labels.profile.normalise(row.ref) for row in held]
    for row, truth in zip(held, truths):
        if truth not in labels.labels:
            raise CheckError(f"Row id {row.id!r} has the reference {row.ref!r}, which is no label of the task.")
    return LabelScore(
        strict=read_as(held, truths, labels, labels.strict),
        parsed=read_as(held, truths, labels, labels.parse),
        empty=sum(not labels.profile.normalise(row.hyp) for row in held),
        profile=labels.profile.to_json(),
    )


def read_as(rows: Sequence[ScoredRow], truths: Sequence[str], labels: LabelSet, read: Callable[[str], str]) -> Reading:
    """Score the answers as read by `read`."""
    return tabulate(truths, [read(row.hyp) for row in rows], labels.labels)


def tabulate(truths: Sequence[str], given: Sequence[str], labels: Sequence[str]) -> Reading:
    """The confusion of two lists of labels, and what follows from it."""
    confusion = {label: dict.fromkeys([*labels, INVALID], 0) for label in labels}
    for truth, answer in zip(truths, given):
        confusion[truth][answer] += 1
    support = {label: sum(row.values()) for label, row in confusion.items()}
    recall = {label: confusion[label][label] / n for label, n in support.items() if n}
    columns = {label: sum(row[label] for row in confusion.values()) for label in labels}
    correct = sum(confusion[label][label] for label in labels)
    return Reading(
        correct=correct,
        rows=len(truths),
        accuracy=correct / len(truths),
        macro_recall=sum(recall.values()) / len(recall),
        recall=recall,
        precision={label: confusion[label][label] / n if n else None for label, n in columns.items()},
        confusion=confusion,
        invalid=sum(row[INVALID] for row in confusion.values()),
    )
