"""Two systems on the same clips, summed by block (speaker or recording): the input of every paired comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score.transcripts import Tally, TranscriptScore, unique
from tools.text.profile import Profile

METRICS = ("unit", "wer", "mer", "cer")
BLOCK_FIELDS = ("speaker", "recording", "id")


@dataclass(frozen=True)
class Blocks:
    """Errors of systems a and b and reference units by block, blocks sorted by name; arrays [blocks] of int.

    `changes`: errors b - a of a clip -> how many clips, ascending. `rows` [blocks]: clips of each.
    """

    names: tuple[str, ...]
    errors_a: NDArray[np.int64]
    errors_b: NDArray[np.int64]
    units: NDArray[np.int64]
    by: str
    score_a: TranscriptScore
    score_b: TranscriptScore
    metric: str = "unit"
    changes: Mapping[int, int] = field(default_factory=dict)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def table(self) -> NDArray[np.float64]:
        """[blocks, 3]: errors of a, errors of b, reference units."""
        return np.stack([self.errors_a, self.errors_b, self.units], axis=1).astype(np.float64)


def paired(a: Iterable[ScoredRow], b: Iterable[ScoredRow]) -> list[tuple[ScoredRow, ScoredRow]]:
    """Rows of both systems by id, sorted. Raises CheckError unless both hold the same ids with the same references."""
    left = {row.id: row for row in unique(a)}
    right = {row.id: row for row in unique(b)}
    if left.keys() != right.keys():
        odd = min(left.keys() ^ right.keys())
        has, lacks = ("first", "second") if odd in left else ("second", "first")
        raise CheckError(
            f"Row id {odd!r} is in the {has} system and not in the {lacks}: compare systems on the same clips."
        )
    out = [(left[key], right[key]) for key in sorted(left)]
    for one, two in out:
        if one.ref != two.ref:
            raise CheckError(f"Row id {one.id!r} has two different references: compare systems on the same references.")
    return out


def choose_block(rows: Sequence[ScoredRow], by: str) -> str:
    """`by`, or the next coarser thing that every row has: a missing speaker is never taken for one speaker."""
    if by not in BLOCK_FIELDS:
        raise UsageError(f"Blocks cannot be made by {by!r}: choose one of {', '.join(BLOCK_FIELDS)}.")
    for name in BLOCK_FIELDS[BLOCK_FIELDS.index(by) :]:
        if all(getattr(row, name) for row in rows):
            return name
    return "id"


def make_blocks(
    a: Iterable[ScoredRow], b: Iterable[ScoredRow], profile: Profile, by: str = "speaker", metric: str = "unit"
) -> Blocks:
    """Pair, score and sum. `metric`: "unit" (the profile's; wer and mer mean the same) or "cer" (code points).

    Raises CheckError for unequal ids or references, or for no rows at all; UsageError for another metric.
    """
    rows = paired(a, b)
    return sum_blocks(rows, profile, choose_block([one for one, _ in rows], by), metric)


def sum_blocks(pairs: Iterable[tuple[ScoredRow, ScoredRow]], profile: Profile, by: str, metric: str = "unit") -> Blocks:
    """`make_blocks` on pairs that were joined already, one at a time; every row must have the field `by`."""
    whole = sum_slices(pairs, profile, by, lambda row: "", metric)
    if not whole:
        raise CheckError("There are no rows to compare: decode the split first.")
    return whole[""]


def sum_slices(
    pairs: Iterable[tuple[ScoredRow, ScoredRow]],
    profile: Profile,
    by: str,
    key: Callable[[ScoredRow], str | None],
    metric: str = "unit",
) -> dict[str, Blocks]:
    """Blocks of each slice of the pairs, sorted by name; `key` of the first row names the slice ("" where unknown)."""
    if metric not in METRICS:
        raise UsageError(f"A comparison cannot be made of the metric {metric!r}: choose one of {', '.join(METRICS)}.")
    sums: dict[str, _Sums] = {}
    for one, two in primed_pairs(pairs, profile):
        name = key(one) or ""
        if name not in sums:
            sums[name] = _Sums(profile, by, metric)
        sums[name].add(one, two)
    return {name: sums[name].blocks() for name in sorted(sums)}


class _Sums:
    """Adds pairs up by block."""

    def __init__(self, profile: Profile, by: str, metric: str) -> None:
        self.by, self.metric = by, metric
        self._a, self._b = Tally(profile), Tally(profile)
        self._sums: dict[str, list[int]] = {}
        self._changes: Counter[int] = Counter()

    def add(self, one: ScoredRow, two: ScoredRow) -> None:
        first, second = (
            m.characters if self.metric == "cer" else m.words for m in (self._a.add(one), self._b.add(two))
        )
        block = self._sums.setdefault(getattr(one, self.by), [0, 0, 0, 0])
        for i, more in enumerate((first.total, second.total, first.reference, 1)):
            block[i] += more
        self._changes[second.total - first.total] += 1

    def blocks(self) -> Blocks:
        names = tuple(sorted(self._sums))
        table = np.array([self._sums[name] for name in names], dtype=np.int64)
        scores = self._a.result(), self._b.result()
        changes = dict(sorted(self._changes.items()))
        return Blocks(names, table[:, 0], table[:, 1], table[:, 2], self.by, *scores, self.metric, changes, table[:, 3])


def primed_pairs(
    pairs: Iterable[tuple[ScoredRow, ScoredRow]], profile: Profile
) -> Iterator[tuple[ScoredRow, ScoredRow]]:
    """The pairs, each batch of texts shown to a profile that is a program before it is asked for one by one."""
    if not profile.primes:
        yield from pairs
        return
    each = iter(pairs)
    while batch := list(islice(each, 1_000)):
        profile.prime([text for pair in batch for row in pair for text in (row.ref, row.hyp)])
        yield from batch
