"""References that look wrong, once a model has answered (train and dev only): nothing is rewritten, a person decides.

Two signs: all answers to a clip agree with each other and not with its reference; and a column of texts that
slipped by some rows, where answers match their neighbours' references and not their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rapidfuzz.distance import Levenshtein

from tools.data.rowchecks import sentence_key

AGREED = 0.9  # share of a clip's answers that must be one and the same
LEAST_ANSWERS = 3
SLIPPED_FROM = 0.6  # error rate of rows against their own references before a slip is looked for
SLIPPED_TO = 0.5  # of that, at most, against the neighbours'
SLIPPED_BETTER, SLIPPED_CHANCE = 0.8, 1e-4
MOST_SLIP = 5


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reference that all answers contradict: what it says, what they say, the share that agrees, words that
    differ.
    """

    id: str
    reference: str
    answer: str
    agreement: float
    words_off: int

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Slip:
    """References stand `rows` rows too late (or, negative, too early): error rates as they are and moved back."""

    rows: int
    error: float
    moved_error: float


def doubtful_references(references: Mapping[str, str], answers: Mapping[str, Sequence[str]]) -> list[Doubt]:
    """Rows whose answers (by id, at least three) agree with each other and not with the reference; most certain first.

    Case, punctuation and spacing do not count. A model that is surely wrong looks the same: this is a list to look
    through.
    """
    out = []
    for key, reference in references.items():
        said = [sentence_key(answer) for answer in answers.get(key, ())]
        if len(said) < LEAST_ANSWERS:
            continue
        common, times = Counter(said).most_common(1)[0]
        wanted = sentence_key(reference)
        if common and times >= AGREED * len(said) and common != wanted:
            off = Levenshtein.distance(wanted.split(), common.split())
            out.append(Doubt(key, reference, common, times / len(said), off))
    return sorted(out, key=lambda d: (-d.agreement, -d.words_off, d.id))


def slipped_references(references: Sequence[str], answers: Sequence[str | None]) -> Slip | None:
    """Whether the references slipped against the audio, from greedy answers in manifest order; None where they did not.

    `answers[i]` is None where row i was not decoded. Flagged when rows match their own reference badly (word error
    rate over 0.6) and that of a neighbour at most half as badly; or a fifth less badly and, row for row, so often
    that a coin would not (one in ten thousand): a weak model answers badly either way.
    """
    wanted = [sentence_key(text).split() for text in references]
    said = [None if text is None else sentence_key(text).split() for text in answers]
    own = _error(_moved(wanted, said, 0))
    if sum(words is not None for words in said) < LEAST_ANSWERS or own < SLIPPED_FROM:
        return None
    moved = {
        k: _error(_moved(wanted, said, k)) for k in range(-MOST_SLIP, MOST_SLIP + 1) if k and len(wanted) > 2 * abs(k)
    }
    best = min(moved, key=lambda k: (moved[k], abs(k)), default=0)
    if not best:
        return None
    surely = moved[best] <= SLIPPED_BETTER * own and _chance(wanted, said, best) <= SLIPPED_CHANCE
    return Slip(best, own, moved[best]) if moved[best] <= SLIPPED_TO * own or surely else None


def _chance(wanted: Sequence[list[str]], said: Sequence[list[str] | None], k: int) -> float:
    """How likely a coin is to favour the neighbour's reference over the row's own in at least as many rows (sign test)."""
    better = worse = 0
    for i, words in enumerate(said):
        if words is not None and 0 <= i + k < len(wanted):
            own, moved = Levenshtein.distance(wanted[i], words), Levenshtein.distance(wanted[i + k], words)
            better, worse = better + (moved < own), worse + (moved > own)
    rows = better + worse
    return sum(math.comb(rows, wins) for wins in range(better, rows + 1)) / 2**rows


def _moved(
    wanted: Sequence[list[str]], said: Sequence[list[str] | None], k: int
) -> Iterable[tuple[list[str], list[str]]]:
    """Reference of row i + k with the answer of row i."""
    return ((wanted[i + k], words) for i, words in enumerate(said) if words is not None and 0 <= i + k < len(wanted))


def _error(pairs: Iterable[tuple[list[str], list[str]]]) -> float:
    """Corpus word error rate."""
    errors = words = 0
    for wanted, said in pairs:
        errors += Levenshtein.distance(wanted, said)
        words += len(wanted)
    return errors / max(words, 1)
