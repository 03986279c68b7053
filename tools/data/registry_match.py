"""Comparing a clip with published sets of fingerprint words: no order, no audio, only how many words both have."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.audio.fingerprint import BANDS, FP_RATE, HOP, PLAIN, Words, fingerprint
from tools.audio.read import Wave

KEPT = 85  # of 256: the third of all words that is published
LEAST_HITS = 5
SHARE = 0.28  # of the smaller set's words that must be in both
WINDOW_S = 8.0  # a long clip is looked at in stretches of this length, half overlapping
COVERED = (
    "exact: equal decoded samples under any name, container, lossless encoding or bit depth; near, for clips of 2 s or more: "
    "level, rate, MP3, Opus, mu-law, crop, padding, speed changed by up to 10 %, three in four at 20 dB of noise or in a small room. "
    "Without the audio a near collision may also be the same words spoken again by the same synthetic voice"
)


@dataclass(frozen=True, slots=True)
class Collision:
    """A row that collides: exact or near audio, or its text; `score` is the share of words for near audio, else 1."""

    manifest: str
    row: int
    id: str
    kind: str
    score: float

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def chosen(words: Words, salt: bytes) -> npt.NDArray[np.bool_]:
    """Which words are among the published third: by the words and the salt, so both sides choose the same."""
    key = np.frombuffer(hashlib.sha256(salt).digest()[:8], "<u8")[0] | np.uint64(1)
    mixed = (words.astype(np.uint64) + np.uint64(1)) * key
    mixed ^= mixed >> np.uint64(29)
    return ((mixed * key) >> np.uint64(40)) % np.uint64(256) < KEPT


@dataclass(frozen=True)
class WordSets:
    """Published sets by word: sets holding word w are `sets[first[w] : first[w + 1]]`; `sizes` by set."""

    first: npt.NDArray[np.int64]
    sets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, words: list[Words]) -> WordSets:
        """Raises ValueError for words that are none."""
        sizes = np.array([len(one) for one in words], dtype=np.int64)
        line = np.concatenate([*words, np.zeros(0, np.uint32)]).astype(np.int64)
        if line.size and line.max() >= 1 << (BANDS - 1):
            raise ValueError("a word of more than 20 bits")
        owner = np.repeat(np.arange(len(words)), sizes)
        first = np.concatenate([[0], np.cumsum(np.bincount(line, minlength=1 << (BANDS - 1)))])
        return cls(first, owner[np.argsort(line, kind="stable")], sizes)

    def best(self, wave8k: Wave, salt: bytes) -> float:
        """The highest share of words that the clip has in common with a set, 0 where that is no collision."""
        step = round(WINDOW_S / 2 * FP_RATE)
        starts = range(0, max(1, wave8k.size - step), step)
        return max(self._best(wave8k[at : at + 2 * step], salt) for at in starts)

    def _best(self, wave8k: Wave, salt: bytes) -> float:
        phases = [fingerprint(wave8k[shift:]) for shift in (0, HOP // 2) if wave8k.size > shift]
        plain = np.unique(np.concatenate([f.words[PLAIN, 0][f.sure] for f in phases[:1]]))
        asking = int(np.count_nonzero(chosen(plain, salt)))
        best = 0.0
        for speed in range(phases[0].words.shape[0]):
            words = np.unique(np.concatenate([f.words[speed][:, f.sure].ravel() for f in phases]))
            best = max(best, self._share(words[chosen(words, salt)], asking))
        return best

    def _share(self, words: Words, asking: int) -> float:
        low = self.first[words]
        many = self.first[words.astype(np.int64) + 1] - low
        inside = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        hits = np.bincount(self.sets[np.repeat(low, many) + inside], minlength=len(self.sizes))
        smaller = np.maximum(np.minimum(self.sizes, max(asking, 1)), 1)
        share = np.where(hits >= LEAST_HITS, np.minimum(hits / smaller, 1.0), 0.0)
        highest = float(share.max(initial=0.0))
        return highest if highest >= SHARE else 0.0
