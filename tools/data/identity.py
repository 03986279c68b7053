"""Which rows are the same audio: exactly, by digests of decoded samples, and nearly, by fingerprint and phase.

Works on distinct stretches of audio, not on rows: a thousand rows that name one stretch are one. Evaluation splits
are stored (they are small), everything asks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tools.audio.fingerprint import FP_RATE, narrow
from tools.audio.identity import to_int16
from tools.audio.near import LOOK_S, MOST_THRESHOLD, THRESHOLD, Match, NearIndex, calibrated_threshold
from tools.audio.read import AudioError, Wave, read_clip
from tools.data.cache import Print
from tools.data.splits import role
from tools.data.table import RowTable
from tools.rows import Clip

LEAST_S = 0.6  # clips shorter than this are compared exactly only: other speech comes near by chance
POOL_S = 50 * 3600.0  # rows of one split are compared with each other up to this much audio
SPOOL_S = 2 * 3600.0  # seconds of stored sound kept on disk for comparing; beyond, files are read again
PAIRS = 64  # pairs known to differ that calibrate the threshold
OWN, OTHER = 0, 1


@dataclass
class Digests:
    """Digests of stretches as 64-bit numbers. An own digest is what rows use; others are what their file also holds."""

    value: list[int] = field(default_factory=list)
    stretch: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)

    def add(self, digest: str, stretch: int, kind: int) -> None:
        self.value.append(int(digest[:16], 16))
        self.stretch.append(stretch)
        self.kind.append(kind)

    def same(self) -> list[npt.NDArray[np.int64]]:
        """Groups of stretches with one digest, at least one of them using it: [stretches], own ones first."""
        value = np.array(self.value, dtype=np.uint64)
        stretch, kind = np.array(self.stretch, dtype=np.int64), np.array(self.kind)
        order = np.lexsort((stretch, kind, value))
        edges = np.flatnonzero(np.diff(value[order])) + 1
        out = []
        for group in np.split(order, edges):
            members = np.array(list(dict.fromkeys(stretch[group].tolist())))
            if len(members) > 1 and kind[group[0]] == OWN:
                out.append(members)
        return out


@dataclass(frozen=True, slots=True)
class Pair:
    """Two stretches that share sound: `match` is what `a` found in `b`."""

    a: int
    b: int
    match: Match

    def facing(self, first: bool) -> Pair:
        """The pair as it is, or seen from the other side."""
        m = self.match
        back = replace(m, offset_s=-m.offset_s / m.speed, speed=1 / m.speed)
        return self if first else Pair(self.b, self.a, back)


class SoundStore:
    """8 kHz sound of stored stretches: a little of it on disk as int16, the rest read from its file again."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the store
        self._places: dict[int, tuple[int, int]] = {}
        self._clips: dict[int, Clip] = {}
        self._end = 0

    def put(self, key: int, clip: Clip, wave8k: Wave | None = None) -> None:
        """Take a stretch; without its sound the file is read when it is asked for."""
        self._clips[key] = clip
        if wave8k is not None and self._end <= SPOOL_S * FP_RATE * 2:
            data = to_int16(wave8k).tobytes()
            self._file.seek(self._end)
            self._file.write(data)
            self._places[key] = (self._end, len(data))
            self._end += len(data)

    def stretch(self, key: int, start_s: float, stop_s: float) -> Wave:
        """float32 at 8 kHz between two times of the stored stretch; empty where the file cannot be read any more."""
        first, last = max(0, round(start_s * FP_RATE)), max(0, round(stop_s * FP_RATE))
        if key in self._places:
            begin, size = self._places[key]
            self._file.seek(begin + min(2 * first, size))
            data = self._file.read(max(0, min(2 * last, size) - 2 * first))
            return np.asarray(np.frombuffer(data, dtype="<i2") / np.float32(32768), dtype=np.float32)
        clip = self._clips[key]
        try:
            part = replace(clip, offset_s=clip.offset_s + first / FP_RATE, duration_s=max(last - first, 1) / FP_RATE)
            return _rounded(narrow(read_clip(part)))
        except AudioError:
            return np.zeros(0, np.float32)

    def whole(self, key: int, seconds: float) -> Wave:
        return self.stretch(key, 0.0, seconds)


def _rounded(wave: Wave) -> Wave:
    """As it would come back from the spool."""
    return np.asarray(to_int16(wave) / np.float32(32768), dtype=np.float32)


def stored_splits(splits: Sequence[str]) -> set[str]:
    """Splits whose clips are stored: all but train; the only one where there is one; all but the first without a
    train.
    """
    if len(splits) <= 1:
        return set(splits)
    others = {split for split in splits if role(split) != "train"}
    return others if len(others) < len(splits) else set(splits[1:])


@dataclass
class NearSearch:
    """Stores stretches, then lets stretches ask. Keys are 64 * stretch + channel, so that each channel may be found."""

    store: SoundStore = field(default_factory=SoundStore)
    highest: float = 0.0
    calibrated_on: int = 0

    def __post_init__(self) -> None:
        self.index = NearIndex(self.store.stretch)

    def add(self, stretch: int, clip: Clip, waves: Sequence[tuple[int, Wave]]) -> list[Print]:
        """Store a stretch; gives its fingerprints."""
        out = []
        for channel, wave in waves:
            if wave.size >= LEAST_S * FP_RATE:
                key = 64 * stretch + channel
                self.store.put(key, replace(clip, channel=channel if len(waves) > 1 else clip.channel), wave)
                out.append(Print(channel, wave.size, self.index.add(key, wave)))
        return out

    def add_prints(self, stretch: int, clip: Clip, prints: Sequence[Print]) -> None:
        """Store a stretch by fingerprints made before."""
        for one in prints:
            key = 64 * stretch + one.channel
            self.store.put(key, replace(clip, channel=one.channel if len(prints) > 1 else clip.channel))
            self.index.add_print(key, one.words, one.samples)

    def calibrate(self, different: Sequence[tuple[int, int]]) -> None:
        """Set the threshold from stored stretches known to differ."""
        keys = {key // 64: key for key in self.index.seconds}
        pairs = [(keys[a], keys[b]) for a, b in different if a in keys and b in keys]
        waves = ((self.index.sound(a, 0, LOOK_S), self.index.sound(b, 0, LOOK_S)) for a, b in pairs)
        threshold, self.highest = calibrated_threshold(waves)
        self.calibrated_on = len(pairs)
        self.index.threshold = max(THRESHOLD, threshold)

    @property
    def trusted(self) -> bool:
        """Whether phase tells this corpus apart at all."""
        return self.index.threshold <= MOST_THRESHOLD

    def ask(self, stretch: int, waves: Sequence[tuple[int, Wave]]) -> list[Pair]:
        """Stored stretches that share sound with this one."""
        out: list[Pair] = []
        skip = frozenset(
            64 * stretch + channel for channel in range(64) if 64 * stretch + channel in self.index.seconds
        )
        for _, wave in waves:
            if wave.size >= LEAST_S * FP_RATE:
                out += [Pair(stretch, match.key // 64, match) for match in self.index.matches(wave, skip)]
        return out

    def ask_stored(self, skip_stretches: frozenset[int] = frozenset()) -> list[Pair]:
        """Every stored stretch asks the others."""
        out: list[Pair] = []
        for key, seconds in list(self.index.seconds.items()):
            if key // 64 not in skip_stretches:
                out += self.ask(key // 64, [(key % 64, self.store.whole(key, seconds))])
        return out


def split_masks(table: RowTable, rows: npt.NDArray[np.int64], group: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """For each stretch the splits that name it, as bits."""
    masks = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.uint64)
    np.bitwise_or.at(masks, group, np.uint64(1) << table["split"][rows].astype(np.uint64))
    return masks
