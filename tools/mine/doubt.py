"""References that do not belong to their audio: the answers of a clip agree with each other and not with the reference.

Samples of a weak recogniser hardly ever agree to the letter, so agreement is measured in characters: the answer closest to
the others (their medoid) lies near them all, while even the best of them is far from the reference. Where it fits another
clip's reference, rows have changed places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import regex
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from tools.mine.contrast import loose
from tools.rows import Answer, Group

AGREE = 0.4  # mean distance of the medoid to the other answers, as a share of characters
FAR = 0.65  # distance to the reference of even the closest answer
FITS = 0.45  # distance to another clip's reference at which the answer is that clip's
LEAST = 3
LETTERS = 8
_SYLLABLES = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")


def letters(text: str) -> int:
    """How long a text is in letters; a character that writes a syllable or a word counts as two."""
    return len(text) + len(_SYLLABLES.findall(text))


@dataclass(frozen=True, slots=True)
class Doubt:
    """`clips` whose reference should be listened to; `fits` names, for some of them, the clip whose reference their
    answers are. `agreeing`: clips whose answers agree, right or wrong; the others cannot speak about a reference."""

    clips: tuple[str, ...]
    fits: Mapping[str, str]
    agreeing: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"clips": list(self.clips), "fits": dict(self.fits), "agreeing": self.agreeing}


def medoid(texts: Sequence[str]) -> tuple[int, float]:
    """Index of the text closest to the others and its mean distance to them (0 alike, 1 nothing in common)."""
    if len(texts) < 2:
        return 0, 1.0
    table = cdist(texts, texts, scorer=Levenshtein.normalized_distance, dtype=np.float32)
    means = table.sum(axis=1) / (len(texts) - 1)
    at = int(means.argmin())
    return at, float(means[at])


def doubts(groups: Iterable[Group], references: Mapping[str, str]) -> Doubt:
    """Clips whose answers are far from their reference, and agree or are another's; `references` by clip id."""
    far: dict[str, str] = {}
    agreed: set[str] = set()
    agreeing = 0
    for group in groups:
        heard = [loose(a.text) for a in _usable(group)]
        ref = loose(references.get(group.clip_id, ""))
        if len(heard) < LEAST or letters(ref) < LETTERS:
            continue
        at, apart = medoid(heard)
        near = apart <= AGREE and letters(heard[at]) >= LETTERS
        agreeing += near
        if min(Levenshtein.normalized_distance(ref, text) for text in heard) >= FAR:
            far[group.clip_id] = heard[at]
            agreed |= {group.clip_id} if near else set()
    fits = _fitting(far, references)
    return Doubt(tuple(i for i in far if i in agreed or i in fits), fits, agreeing)


def _usable(group: Group) -> list[Answer]:
    return [a for a in group.answers if a.finish != "length" and a.text.strip()]


def _fitting(found: Mapping[str, str], references: Mapping[str, str]) -> dict[str, str]:
    """Doubtful clip -> the other clip whose reference its answer is."""
    names = sorted(references)
    if not found or len(names) < 2:
        return {}
    refs = [loose(references[name]) for name in names]
    table = cdist(list(found.values()), refs, scorer=Levenshtein.normalized_distance, dtype=np.float32)
    out = {}
    for row, clip in enumerate(found):
        at = int(table[row].argmin())
        if table[row, at] <= FITS and names[at] != clip:
            out[clip] = names[at]
    return out
