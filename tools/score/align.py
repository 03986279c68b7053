"""The one aligner behind every insertion, deletion and substitution that Rehear prints.

It is rapidfuzz's Levenshtein alignment (unit costs), whose choice among equally short alignments is also jiwer's. Other
libraries give the same total and another split (kaldialign, meeteval, sclite): compare splits only from one aligner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from rapidfuzz.distance import Levenshtein

ALIGNER = "rapidfuzz-levenshtein"


class Errors(NamedTuple):
    """Counts of one alignment; `reference` and `hypothesis` are unit counts."""

    insertions: int
    deletions: int
    substitutions: int
    reference: int
    hypothesis: int

    @property
    def total(self) -> int:
        return self.insertions + self.deletions + self.substitutions


def count(ref: Sequence[str], hyp: Sequence[str]) -> Errors:
    """Errors of one pair of unit sequences (or of two strings: code points)."""
    n_ref, n_hyp = len(ref), len(hyp)
    if ref == hyp:
        return Errors(0, 0, 0, n_ref, n_hyp)
    if not n_ref or not n_hyp:
        return Errors(n_hyp, n_ref, 0, n_ref, n_hyp)
    ops = edits(ref, hyp)
    substitutions = [op[0] for op in ops].count("replace")
    deletions = (len(ops) - substitutions + n_ref - n_hyp) // 2
    return Errors(deletions + n_hyp - n_ref, deletions, substitutions, n_ref, n_hyp)


def edits(ref: Sequence[str], hyp: Sequence[str]) -> list[tuple[str, int, int]]:
    """The pinned alignment's edits: ("replace" | "delete" | "insert", position in ref, position in hyp)."""
    return cast(list[tuple[str, int, int]], Levenshtein.editops(ref, hyp).as_list())


def pairs(ref: Sequence[str], hyp: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """The aligned pairs (reference unit, hypothesis unit) that differ: None marks an insertion or a deletion."""
    for tag, at, to in edits(ref, hyp):
        yield None if tag == "insert" else ref[at], None if tag == "delete" else hyp[to]


def wrong_positions(ref: Sequence[str], hyp: Sequence[str]) -> set[int]:
    """Positions of the reference that the alignment substitutes or deletes."""
    return {at for tag, at, _ in edits(ref, hyp) if tag != "insert"}
