"""Finding a clip among many, or inside an hour: an index of fingerprint words, votes by place, then bits compared.

`add` what is to be found (the evaluation splits: they are small), `find` with each clip of the rest. Memory is 9
bytes a frame (1 MB an hour) and 8 MB. A candidate is a place to look at; `tools.audio.near` decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tools.audio.fingerprint import BANDS, HOP_S, PLAIN, SPEEDS, Fingerprint, Words

Ints = npt.NDArray[np.int64]

BIN = 6  # frames of place that vote together, on two grids half a bin apart
MIN_VOTES = 3
MAX_BIT_ERRORS = 0.34  # share of bits that may differ at a place: copies stay under 0.22, other speech is near a half
MAX_PLACES = 64  # places whose bits are compared, for every 8 s of the asking clip
BUSY = 2_000  # a word said more often than this in the index says nothing
AROUND = 24  # frames each side of the votes whose bits are compared: 0.8 s, so that a shared second is enough
LEAST_FRAMES = 4
SHIFTS = np.arange(-2, 3)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place to look at: clip `key`, where the asking clip would start in it, and at which speed; votes and bit
    errors.

    The votes lie between `first_s` and `last_s` of the asking clip.
    """

    key: int
    start_s: float
    speed: float
    votes: int
    bit_errors: float
    first_s: float
    last_s: float


@dataclass
class FingerprintIndex:
    """Stored fingerprints by key (any int, each once), sealed on the first `find` after an `add`."""

    _words: list[Words] = field(default_factory=list)
    _sure: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    _keys: list[int] = field(default_factory=list)
    _sealed: _Sealed | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: int, stored: Fingerprint) -> None:
        """Store a clip's plain words."""
        plain = 0 if stored.words.shape[0] == 1 else PLAIN
        self._words.append(stored.words[plain, 0])
        self._sure.append(stored.sure)
        self._keys.append(key)
        self._sealed = None

    def find(self, asking: Fingerprint, skip: frozenset[int] = frozenset()) -> list[Candidate]:
        """Places where the asking clip may be, fewest bit errors first; keys in `skip` are passed over."""
        if not self._keys:
            return []
        if self._sealed is None:
            self._sealed = _seal(self._words, self._sure, self._keys)
        return self._sealed.find(asking, skip)


@dataclass(frozen=True)
class _Votes:
    """Places by votes, most first; every field [places]."""

    clip: Ints
    speed: Ints
    place: npt.NDArray[np.float64]  # frames from the stored clip's start to the asking clip's
    count: Ints
    first: Ints
    last: Ints


@dataclass(frozen=True)
class _Sealed:
    line: Words  # all words, clip after clip
    sure: npt.NDArray[np.bool_]
    starts: Ints  # first frame of each clip on the line, and the end
    keys: Ints
    places: npt.NDArray[np.int32]  # frames in the order of their words
    first: npt.NDArray[np.int64]  # by word: where its frames begin in `places` (and end: the next word's)

    def find(self, asking: Fingerprint, skip: frozenset[int]) -> list[Candidate]:
        frame, speed, at = self._hits(asking)
        clip = np.searchsorted(self.starts, at, side="right") - 1
        if skip:
            stay = ~np.isin(self.keys[clip], list(skip))
            frame, speed, at, clip = frame[stay], speed[stay], at[stay], clip[stay]
        place = at - self.starts[clip] - frame * np.asarray(SPEEDS)[speed]
        votes = _count_votes(clip, speed, place, frame, asking.frames)
        return self._judged(asking, votes) if len(votes.clip) else []

    def _hits(self, asking: Fingerprint) -> tuple[Ints, Ints, Ints]:
        """Every stored frame with a word the asking clip has: asking frame, speed, stored frame."""
        spoken = np.flatnonzero(asking.sure)
        asked = asking.words[:, :, spoken].ravel()
        low = self.first[asked]
        many = self.first[asked + 1] - low
        many[many > BUSY] = 0
        which = np.repeat(np.arange(asked.size), many)
        inside = np.arange(which.size) - np.repeat(np.cumsum(many) - many, many)
        at = self.places[low[which] + inside].astype(np.int64)
        return spoken[which % max(spoken.size, 1)], which // max(spoken.size * asking.words.shape[1], 1), at

    def _judged(self, asking: Fingerprint, votes: _Votes) -> list[Candidate]:
        """Candidates: places where the bits around the votes agree, each at the best of five shifts."""
        errors, shift = self._bit_errors(asking, votes)
        place = votes.place + shift
        good = [int(i) for i in np.lexsort((votes.clip, -votes.count, errors)) if errors[i] <= MAX_BIT_ERRORS]
        return [
            Candidate(
                int(self.keys[votes.clip[i]]),
                float(place[i]) * HOP_S,
                SPEEDS[votes.speed[i]],
                int(votes.count[i]),
                float(errors[i]),
                float(votes.first[i]) * HOP_S,
                float(votes.last[i]) * HOP_S,
            )
            for i in _apart(votes, place, good)
        ]

    def _bit_errors(self, asking: Fingerprint, votes: _Votes) -> tuple[npt.NDArray[np.float64], Ints]:
        """Share of differing bits around each place (1 where too little overlaps), and the shift in frames that
        gave it.
        """
        middle = (votes.first + votes.last) // 2
        reach = int((votes.last - votes.first).max()) // 2 + AROUND
        frames = middle[:, None] + np.arange(-reach, reach + 1)
        asked = (frames >= (votes.first - AROUND)[:, None]) & (frames <= (votes.last + AROUND)[:, None])
        asked &= (frames >= 0) & (frames < asking.frames)
        inside = np.clip(frames, 0, asking.frames - 1)
        asked &= asking.sure[inside]
        ours = asking.words[votes.speed[:, None], 0, inside]
        start, end = self.starts[votes.clip], self.starts[votes.clip + 1]
        at = np.rint(frames * np.asarray(SPEEDS)[votes.speed][:, None] + votes.place[:, None]).astype(np.int64)
        errors = np.ones((len(SHIFTS), len(start)))
        for i, shift in enumerate(SHIFTS):
            there = at + start[:, None] + shift
            use = asked & (there >= start[:, None]) & (there < end[:, None])
            there = np.clip(there, 0, self.line.size - 1)
            use &= self.sure[there]
            wrong = np.where(use, np.bitwise_count(ours ^ self.line[there]), 0).sum(axis=1)
            used = use.sum(axis=1)
            errors[i] = np.where(used >= LEAST_FRAMES, wrong / np.maximum(used * (BANDS - 1), 1), 1.0)
        best = errors.argmin(axis=0)
        return errors[best, np.arange(len(start))], SHIFTS[best]


def _seal(words: list[Words], sure: list[npt.NDArray[np.bool_]], keys: list[int]) -> _Sealed:
    line, spoken = np.concatenate(words), np.concatenate(sure)
    starts = np.concatenate([[0], np.cumsum([len(w) for w in words])])
    at = np.flatnonzero(spoken).astype(np.int32)
    order = np.argsort(line[at], kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(line[at], minlength=1 << (BANDS - 1)))])
    return _Sealed(line, spoken, starts, np.asarray(keys), at[order], first)


def _count_votes(clip: Ints, speed: Ints, place: npt.NDArray[np.float64], frame: Ints, asking_frames: int) -> _Votes:
    """The places with the most votes: hits of one clip and speed whose places lie in one bin."""
    low = int(np.floor(place.min(initial=0.0))) - BIN
    cell = ((place - low) // (BIN / 2)).astype(np.int64)  # half bins: a bin is a cell and the next
    width = int(cell.max(initial=0)) + 2
    group = (clip * len(SPEEDS) + speed) * width + cell
    cells, counts = np.unique(np.concatenate([group, group + 1]), return_counts=True)
    enough = np.flatnonzero(counts >= min(MIN_VOTES, max(2, asking_frames // 8)))
    limit = MAX_PLACES * (1 + asking_frames // 250)
    top = enough[np.argsort(-counts[enough], kind="stable")][:limit]
    order = np.argsort(group, kind="stable")
    begin = np.searchsorted(group[order], cells[top] - 1, side="left")
    end = np.searchsorted(group[order], cells[top], side="right")
    if not len(top):
        none = np.zeros(0, np.int64)
        return _Votes(none, none, none.astype(np.float64), none, none, none)
    spans = np.stack([begin, np.minimum(end, len(order) - 1)], axis=1).ravel()  # reduceat: every other span is a vote's
    first, last = np.minimum.reduceat(frame[order], spans)[::2], np.maximum.reduceat(frame[order], spans)[::2]
    total = np.concatenate([[0.0], np.cumsum(place[order])])
    head = order[begin]
    mean = (total[end] - total[begin]) / (end - begin)
    return _Votes(clip[head], speed[head], mean, counts[top], first, last)


def _apart(votes: _Votes, place: npt.NDArray[np.float64], good: list[int]) -> list[int]:
    """The places without those that look at one place of one clip again, first come first kept."""
    out: list[int] = []
    seen: dict[int, list[float]] = {}
    for i in good:
        middle = float(place[i] + SPEEDS[votes.speed[i]] * (votes.first[i] + votes.last[i]) / 2)
        others = seen.setdefault(int(votes.clip[i]), [])
        if all(abs(middle - other) >= 2 * BIN for other in others):
            others.append(middle)
            out.append(i)
    return out
