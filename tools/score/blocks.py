"""Two systems on the same clips, summed by block (speaker or recording): the input of every paired comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
    """Errors of systems a and b and reference units by block, blocks sorted by name; arrays [blocks] of int."""

    names: tuple[str, ...]
    errors_a: NDArray[np.int64]
    errors_b: NDArray[np.int64]
    units: NDArray[np.int64]
    by: str
    score_a: TranscriptScore
    score_b: TranscriptScore
    metric: str = "unit"

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
    if metric not in METRICS:
        raise UsageError(f"A comparison cannot be made of the metric {metric!r}: choose one of {', '.join(METRICS)}.")
    rows = paired(a, b)
    if not rows:
        raise CheckError("There are no rows to compare: decode the split first.")
    by = choose_block([one for one, _ in rows], by)
    tally_a, tally_b = Tally(profile), Tally(profile)
    sums: dict[str, list[int]] = {}
    if profile.primes:
        profile.prime([text for pair in rows for row in pair for text in (row.ref, row.hyp)])
    for one, two in rows:
        first, second = tally_a.add(one), tally_b.add(two)
        block = sums.setdefault(getattr(one, by), [0, 0, 0])
        one_sum, two_sum = (m.characters if metric == "cer" else m.words for m in (first, second))
        block[0] += one_sum.total
        block[1] += two_sum.total
        block[2] += one_sum.reference
    names = tuple(sorted(sums))
    table = np.array([sums[name] for name in names], dtype=np.int64)
    return Blocks(names, table[:, 0], table[:, 1], table[:, 2], by, tally_a.result(), tally_b.result(), metric)
