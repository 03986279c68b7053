"""References that look wrong, once a model has answered (train and dev only): nothing is rewritten, a person decides.

Two signs: all answers to a clip agree with each other and not with its reference; and a column of texts that
slipped by some rows, where answers match their neighbours' references and not their own.
"""

from __future__ import annotations

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


def slipped_references(references: Sequence[str], answers: Sequence[str]) -> Slip | None:
    """Whether the references slipped against the audio, from greedy answers in manifest order; None where they did not.

    Flagged when rows match their own reference badly (word error rate over 0.6) and some neighbour's at most half
    as badly.
    """
    wanted = [sentence_key(text).split() for text in references]
    said = [sentence_key(text).split() for text in answers]
    own = _error(zip(wanted, said))
    if len(wanted) < 3 or own < SLIPPED_FROM:
        return None
    moved = {
        k: _error(_moved(wanted, said, k)) for k in range(-MOST_SLIP, MOST_SLIP + 1) if k and len(wanted) > 2 * abs(k)
    }
    best = min(moved, key=lambda k: (moved[k], abs(k)), default=0)
    return Slip(best, own, moved[best]) if best and moved[best] <= SLIPPED_TO * own else None


def _moved(wanted: Sequence[list[str]], said: Sequence[list[str]], k: int) -> Iterable[tuple[list[str], list[str]]]:
    """Reference of row i + k with the answer of row i."""
    return ((wanted[i + k], said[i]) for i in range(len(said)) if 0 <= i + k < len(wanted))


def _error(pairs: Iterable[tuple[list[str], list[str]]]) -> float:
    """Corpus word error rate."""
    errors = words = 0
    for wanted, said in pairs:
        errors += Levenshtein.distance(wanted, said)
        words += len(wanted)
    return errors / max(words, 1)
