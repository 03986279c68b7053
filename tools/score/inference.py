"""Tests beside the interval: sign flips over blocks, MAPSSWE, non-inferiority, Holm's correction, the noise floor."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score.align import count, edits
from tools.score.blocks import Blocks, make_blocks, paired
from tools.score.intervals import LEVEL, effective_blocks, statistics, widened_tail
from tools.score.resample import quantile, resampled_sums, uniform32
from tools.text.profile import Profile

K = TypeVar("K")


def sign_flip_p(difference: NDArray[np.float64], resamples: int, seed: int) -> float:
    """Two-sided permutation test: swap the systems within blocks at random; `difference` = errors b - a by block.

    All 2**B swaps where B <= 13, else `resamples` seeded ones (the top bit of the same stream's draws).
    """
    observed = abs(float(difference.sum()))
    n = len(difference)
    if n <= 13:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ difference) >= observed - 1e-9))
    hits, step = 0, max(1, (1 << 20) // n)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        bits = (uniform32(seed + 1, first * n, rows * n) >> np.uint64(31)).reshape(rows, n)
        total = np.abs((1.0 - 2.0 * bits.astype(np.float64)) @ difference)
        hits += int(np.sum(total >= observed - 1e-9))
    return (hits + 1) / (resamples + 1)


@dataclass(frozen=True)
class Mapsswe:
    """Matched pairs sentence-segment word error test (Gillick and Cox 1989): a negative mean difference favours b.

    Segments are stretches that hold an error of either system, bounded by two words that both have right. For reference
    beside the blocked interval: it takes segments for independent, which those of one speaker are not.
    """

    segments: int
    mean_difference: float
    z: float | None
    p: float | None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def mapsswe(a: Iterable[ScoredRow], b: Iterable[ScoredRow], profile: Profile, buffer: int = 2) -> Mapsswe:
    """The test on two systems' rows; `buffer` words right in both end a segment. Raises CheckError for unequal ids."""
    return mapsswe_pairs(paired(a, b), profile, buffer)


def mapsswe_pairs(pairs: Iterable[tuple[ScoredRow, ScoredRow]], profile: Profile, buffer: int = 2) -> Mapsswe:
    """`mapsswe` on pairs that were joined already."""
    differences = array("i")
    for one, two in pairs:
        ref, hyp_a, _ = profile.pair(one.ref, one.hyp, one.lang)
        _, hyp_b, _ = profile.pair(two.ref, two.hyp, two.lang)
        differences.extend(segment_differences(errors_at(ref, hyp_a), errors_at(ref, hyp_b), buffer))
    n = len(differences)
    mean = float(np.mean(differences)) if n else 0.0
    deviation = float(np.std(differences, ddof=1)) if n > 1 else 0.0
    if not deviation:
        return Mapsswe(n, mean, None, None)
    z = mean / (deviation / n**0.5)
    return Mapsswe(n, mean, z, math.erfc(abs(z) / 2**0.5))


def errors_at(ref: Sequence[str], hyp: Sequence[str]) -> list[int]:
    """Errors by reference position, len(ref) + 1 of them: an insertion counts before the word it precedes."""
    out = [0] * (len(ref) + 1)
    for _, at, _ in edits(ref, hyp):
        out[at] += 1
    return out


def segment_differences(a: Sequence[int], b: Sequence[int], buffer: int) -> list[int]:
    """Errors of b less errors of a in each segment."""
    out: list[int] = []
    good, held, is_open = buffer, 0, False
    for x, y in zip(a, b):
        if x or y:
            held += y - x
            good, is_open = 0, True
            continue
        good += 1
        if is_open and good >= buffer:
            out.append(held)
            held, is_open = 0, False
    return [*out, held] if is_open else out


@dataclass(frozen=True)
class NonInferiority:
    """Is b worse than a by no more than `margin` (absolute, of the error rate), declared beforehand?

    `within`: the measured delta keeps the margin. `shown`: the one-sided upper limit keeps it as well (None under ten
    blocks: not shown, not refuted).
    """

    delta: float | None
    upper: float | None
    margin: float
    within: bool
    shown: bool | None
    blocks: int
    block_by: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def non_inferior(
    a: Sequence[ScoredRow],
    b: Sequence[ScoredRow],
    profile: Profile,
    margin: float,
    by: str = "speaker",
    resamples: int = 10_000,
    seed: int = 0,
    metric: str = "unit",
) -> NonInferiority:
    """Non-inferiority of b on retention rows. Raises UsageError for a negative margin."""
    if not margin >= 0:
        raise UsageError(f"The retention margin is {margin!r}: give a number from 0.")
    return non_inferior_blocks(make_blocks(a, b, profile, by, metric), margin, resamples, seed)


def non_inferior_blocks(blocks: Blocks, margin: float, resamples: int = 10_000, seed: int = 0) -> NonInferiority:
    """`non_inferior` on sums by block. Where no block differs the limit is that of no event in all units (3 / units)."""
    table, n = blocks.table(), len(blocks.names)
    total = table.sum(axis=0)
    delta = float((total[1] - total[0]) / total[2]) if total[2] > 0 else None
    upper = None
    if n >= 10 and delta is not None:
        ordered = np.sort(statistics(resampled_sums(table, resamples, seed))[0])
        upper = quantile(ordered, 1.0 - widened_tail(effective_blocks(table), 2 * LEVEL - 1.0))
        if not np.any(table[:, 0] - table[:, 1]):  # nothing to resample: no event in that many units, not certainty
            upper = max(upper, -math.log(1.0 - LEVEL) / float(total[2]))
    within = delta is not None and delta <= margin
    return NonInferiority(delta, upper, margin, within, None if upper is None else upper <= margin, n, blocks.by)


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """Holm's step-down adjusted p-values, keyed like the input: compare each with the family's level."""
    order = sorted(p_values, key=lambda name: (p_values[name], str(name)))
    out: dict[K, float] = {}
    highest = 0.0
    for rank, name in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[name]))
        out[name] = highest
    return {name: out[name] for name in p_values}


@dataclass(frozen=True)
class NoiseFloor:
    """What one system differs from itself, decoded twice (another batch shape): a gain under `delta` is "not shown"."""

    delta: float
    differing: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def noise_floor(first: Sequence[ScoredRow], again: Sequence[ScoredRow], profile: Profile) -> NoiseFloor:
    """The noise floor from two decodes of one system: |delta|, and how many answers differ as normalised.

    Raises CheckError for unequal ids, or where no reference has a word.
    """
    return noise_floor_pairs(paired(first, again), profile)


def noise_floor_pairs(pairs: Iterable[tuple[ScoredRow, ScoredRow]], profile: Profile) -> NoiseFloor:
    """`noise_floor` on pairs that were joined already."""
    change = units = differing = rows = 0
    for one, two in pairs:
        ref, hyp, _ = profile.pair(one.ref, one.hyp, one.lang)
        same_ref, again, _ = profile.pair(two.ref, two.hyp, two.lang)
        change += count(same_ref, again).total - count(ref, hyp).total
        units += len(ref)
        differing += profile.normalise(one.hyp, one.lang) != profile.normalise(two.hyp, two.lang)
        rows += 1
    if not units:
        raise CheckError("No reference has a word: a noise floor needs some.")
    return NoiseFloor(abs(change) / units, differing, rows)
