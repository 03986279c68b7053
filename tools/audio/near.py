"""Near identity: which clips are the same sound under another encoding, level, noise, room, cut or speed.

`NearIndex` stores clips by key; `matches` finds the stored clips that an asking clip is a copy of, contains or lies in:
fingerprint words find places (`tools.audio.index`), phase decides (`tools.audio.phase`). Covered: `COVERED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import soxr

from tools.audio.fingerprint import FP_RATE, HOP_S, SPAN, Fingerprint, fingerprint
from tools.audio.index import Candidate, FingerprintIndex
from tools.audio.phase import Agreement, coherence_at, compare, compare_speed
from tools.audio.read import Wave

COVERED = (
    "other name, container, bit depth, rate, level, channel; MP3, Opus, Vorbis, mu-law; noise to 20 dB; crop, padding; "
    "a cut of 1.2 s or more out of a longer recording; reverberation to RT60 0.8 s; speed changed by up to 10 %"
)
THRESHOLD = 0.38  # coherence: copies give 0.6 and more, the sentence spoken again by the same voice at most 0.25
LEAST_THRESHOLD, MOST_THRESHOLD = 0.35, 0.55
MARGIN = 1.4  # of the highest coherence among pairs known to differ
COPY, MOST_COPIES = 0.5, 0.34
SAME_SHARE = 0.6  # of the shorter clip must be the same sound
LEAST_SHARED_S = 0.3
LOOK_S = 4.0  # seconds compared first
NARROW_S, NARROW_THRESHOLD = 1.2, 0.97  # a shorter look, where clips share only a part, must be surer
SHORT_THRESHOLD = 0.5  # clips of 1.2 s and less: other speech comes to 0.4 by chance
SLACK_S, REACH_S = 0.1, 0.4  # how much more of the stored clip is looked at; where the lag may lie then
WHOLE_S = 30.0  # seconds over which the shared part is then followed
CHUNK_S = 1.0
CHUNK_COHERENCE = 0.2  # at the lag already known
MAX_SPEED_BIT_ERRORS = 0.2  # a copy at another speed keeps its words better than one in noise
MANY_OF_ONE_SIZE = 8
TRIED = 4  # places tried for each stored clip

Stretch = Callable[[int, float, float], Wave]


@dataclass(frozen=True, slots=True)
class Match:
    """A stored clip that shares sound with the asking one.

    The asking clip's time t is the stored clip's `offset_s + speed * t`. `shared_s` seconds of sound are the same,
    `share` of the shorter clip; `whole` says that this is enough to call them the same audio.
    """

    key: int
    coherence: float
    offset_s: float
    speed: float
    shared_s: float
    share: float

    @property
    def whole(self) -> bool:
        return self.share >= SAME_SHARE


@dataclass
class NearIndex:
    """Clips to be found. `stretch(key, start_s, stop_s)` gives 8 kHz sound of a stored clip again when it must be
    compared.
    """

    stretch: Stretch
    threshold: float = THRESHOLD
    index: FingerprintIndex = field(default_factory=FingerprintIndex)
    seconds: dict[int, float] = field(default_factory=dict)
    by_size: dict[int, list[int]] = field(default_factory=dict)

    def add(self, key: int, wave8k: Wave) -> Fingerprint:
        """Store a clip; gives back the fingerprint that `add_print` takes another time."""
        stored = fingerprint(wave8k, query=False)
        self.add_print(key, stored, wave8k.size)
        return stored

    def add_print(self, key: int, stored: Fingerprint, samples: int) -> None:
        self.index.add(key, stored)
        self.seconds[key] = samples / FP_RATE
        self.by_size.setdefault(samples, []).append(key)

    def matches(self, wave8k: Wave, skip: frozenset[int] = frozenset()) -> list[Match]:
        """Stored clips that share sound with this one, one match a clip, highest coherence first."""
        found: dict[int, Match] = {}
        tried: dict[int, int] = {}
        for place in [*self.index.find(fingerprint(wave8k), skip), *self._of_one_size(wave8k.size, skip)]:
            if place.key in found or tried.get(place.key, 0) >= TRIED:
                continue
            tried[place.key] = tried.get(place.key, 0) + 1
            match = self._match(wave8k, place)
            if match:
                found[place.key] = match
        return sorted(found.values(), key=lambda m: (-m.coherence, m.key))

    def _of_one_size(self, size: int, skip: frozenset[int]) -> list[Candidate]:
        """Clips of the same length to the sample: noise and distortion leave that, and it is rare by chance."""
        keys = [key for key in self.by_size.get(size, []) if key not in skip]
        seconds = size / FP_RATE
        return [Candidate(key, 0.0, 1.0, 0, 1.0, 0.0, seconds) for key in keys] if len(keys) <= MANY_OF_ONE_SIZE else []

    def _match(self, wave: Wave, place: Candidate) -> Match | None:
        """The match at a place, by the sound around its votes; where that is not enough, by the sound at the votes
        alone.
        """
        first, last = place.first_s, place.last_s + SPAN * HOP_S
        middle, seconds = (first + last) / 2, wave.size / FP_RATE
        long = min(seconds, self.seconds[place.key]) > NARROW_S
        threshold = self.threshold if long else max(self.threshold, SHORT_THRESHOLD)
        found = self._look(wave, place, middle, LOOK_S, threshold)
        narrow = place.bit_errors <= MAX_SPEED_BIT_ERRORS and long
        if found is None and narrow:
            short = max(NARROW_S, min(last - first, LOOK_S))
            found = self._look(wave, place, middle, short, NARROW_THRESHOLD, one_speed=True)
        if found is None:
            return None
        agreed, offset = found
        shared = self._follow(wave, place.key, offset, agreed.speed, middle)
        shorter = min(seconds * agreed.speed, self.seconds[place.key])
        share = min(1.0, shared / max(min(shorter, WHOLE_S), 1e-9))
        return Match(place.key, agreed.coherence, offset, agreed.speed, shared, share)

    def _look(
        self, wave: Wave, place: Candidate, middle: float, look_s: float, threshold: float, one_speed: bool = False
    ) -> tuple[Agreement, float] | None:
        """Agreement over `look_s` around a time of the asking clip, and the offset it means; None below the
        threshold.
        """
        first = max(0.0, -place.start_s / place.speed)  # where both clips are, in the asking one's time
        last = min(wave.size / FP_RATE, (self.seconds[place.key] - place.start_s) / place.speed)
        begin = max(first, min(middle - look_s / 2, last - look_s))
        ours = wave[round(begin * FP_RATE) : round(min(begin + look_s, last) * FP_RATE)]
        theirs_at = max(0.0, place.start_s + place.speed * begin - SLACK_S)
        theirs = self.sound(place.key, theirs_at, theirs_at + place.speed * ours.size / FP_RATE + 2 * SLACK_S)
        if min(ours.size, theirs.size) < LEAST_SHARED_S * FP_RATE:
            return None
        agreed = _agree(ours, theirs, place, threshold, one_speed)
        if agreed is None or agreed.shared_s < LEAST_SHARED_S:
            return None
        # ours(t), slowed by speed, is theirs(t - lag): asking time begin + t / speed is stored time theirs_at + t - lag
        return agreed, theirs_at - agreed.lag_s - agreed.speed * begin

    def _follow(self, wave: Wave, key: int, offset: float, speed: float, middle: float) -> float:
        """Seconds (of the stored clip) over which both are the same sound, looked at second by second around
        `middle`.
        """
        start = max(0.0, -offset / speed, middle - WHOLE_S / 2)
        stop = min(wave.size / FP_RATE, (self.seconds[key] - offset) / speed, start + WHOLE_S)
        if stop - start < LEAST_SHARED_S:
            return 0.0
        ours = wave[round(start * FP_RATE) : round(stop * FP_RATE)]
        if speed != 1.0:
            ours = np.asarray(soxr.resample(ours, FP_RATE, FP_RATE * speed), dtype=np.float32)
        theirs = self.sound(key, offset + speed * start, offset + speed * stop)
        size = min(ours.size, theirs.size)
        return _same_seconds(ours[:size], theirs[:size]) if size else 0.0

    def sound(self, key: int, start_s: float, stop_s: float) -> Wave:
        """Sound of a stored clip between two times, as far as the clip goes."""
        start_s, stop_s = max(0.0, start_s), min(self.seconds[key], stop_s)
        return self.stretch(key, start_s, stop_s) if stop_s > start_s else np.zeros(0, np.float32)


def _agree(ours: Wave, theirs: Wave, place: Candidate, threshold: float, one_speed: bool) -> Agreement | None:
    """The agreement that passes the threshold: at equal speed first, then at the speed that the words suggest."""
    if abs(place.speed - 1) < 0.03:
        plain = compare(ours, theirs, REACH_S)
        if plain.coherence >= threshold:
            return plain
    if one_speed or place.bit_errors > MAX_SPEED_BIT_ERRORS:
        return None
    moved = compare_speed(ours, theirs, place.speed, REACH_S)
    return moved if moved.coherence >= threshold else None


def _same_seconds(a: Wave, b: Wave) -> float:
    """Seconds of two aligned stretches that are the same sound; a pause belongs to whatever the sound around it is."""
    count = max(1, round(a.size / (CHUNK_S * FP_RATE)))
    spans = list(pairwise(np.linspace(0, a.size, count + 1).astype(int)))
    energy = np.array([float(b[i:j] @ b[i:j]) for i, j in spans])
    same = np.array([coherence_at(a[i:j], b[i:j]) >= CHUNK_COHERENCE for i, j in spans])
    total = float(energy.sum())
    return a.size / FP_RATE * float(energy[same].sum()) / total if total > 0 else 0.0


def calibrated_threshold(pairs: Iterable[tuple[Wave, Wave]]) -> tuple[float, float]:
    """The threshold for a corpus from pairs (8 kHz) said to differ: (threshold, highest coherence seen).

    The highest coherence plus 40 %, at least 0.35. A rare pair that is plainly a copy after all (a leak under
    another text) is not counted; where they are many, phase cannot tell this corpus apart (steady tones, say) and
    the threshold is over 0.55.
    """
    heights = sorted(compare(a, b).coherence for a, b in pairs if a.size and b.size)
    copies = sum(height >= COPY for height in heights)
    differing = heights[: len(heights) - copies] if copies <= MOST_COPIES * len(heights) else heights
    highest = max(differing, default=0.0)
    return max(LEAST_THRESHOLD, MARGIN * highest), highest
