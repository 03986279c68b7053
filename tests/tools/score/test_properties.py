"""Laws of the score: swaps, bounds, concatenation, order, batches."""

from __future__ import annotations

import random

import jiwer
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.rows import ScoredRow
from tools.score import score_pairs, score_rows
from tools.score.align import count, pairs
from tools.text import profile

BASIC = profile("basic")
LAWS = settings(max_examples=80, deadline=None, derandomize=True)
unit = st.sampled_from(["a", "b", "c", "dd", "eé", "我", "न", "ก"])
units = st.lists(unit, max_size=12)
text = units.map(" ".join)


@LAWS
@given(ref=units, hyp=units)
def test_swapping_the_sides_swaps_insertions_and_deletions(ref: list[str], hyp: list[str]) -> None:
    there, back = count(ref, hyp), count(hyp, ref)
    assert there.total == back.total
    assert there.insertions - there.deletions == back.deletions - back.insertions == len(hyp) - len(ref)


@LAWS
@given(ref=units, hyp=units)
def test_bounds(ref: list[str], hyp: list[str]) -> None:
    errors = count(ref, hyp)
    assert abs(len(ref) - len(hyp)) <= errors.total <= max(len(ref), len(hyp))
    assert (errors.total == 0) == (ref == hyp)
    assert min(errors[:3]) >= 0 and errors.deletions + errors.substitutions <= len(ref)


@LAWS
@given(ref=units, hyp=units)
def test_the_listed_edits_are_the_counted_ones(ref: list[str], hyp: list[str]) -> None:
    errors, listed = count(ref, hyp), list(pairs(ref, hyp))
    assert errors.insertions == sum(said is None for said, _ in listed)
    assert errors.deletions == sum(heard is None for _, heard in listed)
    assert errors.total == len(listed)


@LAWS
@given(ref=units, hyp=units)
def test_the_split_is_jiwers(ref: list[str], hyp: list[str]) -> None:
    ours, theirs = count(ref, hyp), jiwer.process_words(" ".join(ref), " ".join(hyp))
    assert ours[:3] == (theirs.insertions, theirs.deletions, theirs.substitutions)


@LAWS
@given(a=units, b=units, c=units)
def test_triangle(a: list[str], b: list[str], c: list[str]) -> None:
    assert count(a, c).total <= count(a, b).total + count(b, c).total


@LAWS
@given(first=st.tuples(text, text), second=st.tuples(text, text))
def test_concatenation_never_adds_errors(first: tuple[str, str], second: tuple[str, str]) -> None:
    joined = score_pairs([f"{first[0]} {second[0]}"], [f"{first[1]} {second[1]}"], BASIC, "en")
    apart = score_pairs([first[0], second[0]], [first[1], second[1]], BASIC, "en")
    assert joined.errors <= apart.errors
    assert joined.reference_units == apart.reference_units


@LAWS
@given(corpus=st.lists(st.tuples(text, text), max_size=12), seed=st.integers(0, 999), size=st.integers(1, 5))
def test_order_and_batches_do_not_matter(corpus: list[tuple[str, str]], seed: int, size: int) -> None:
    rows = [ScoredRow(id=f"{i:02}", ref=r, hyp=h) for i, (r, h) in enumerate(corpus)]
    whole = score_rows(rows, BASIC)
    shuffled = rows[:]
    random.Random(seed).shuffle(shuffled)
    assert score_rows(shuffled, BASIC) == whole
    parts = [score_rows(rows[i : i + size], BASIC) for i in range(0, len(rows), size)]
    assert sum(p.errors for p in parts) == whole.errors
    assert sum(p.reference_units for p in parts) == whole.reference_units
    assert sum(p.hallucinated_units for p in parts) == whole.hallucinated_units


@LAWS
@given(ref=text, hyp=text)
def test_scoring_normalised_texts_changes_nothing(ref: str, hyp: str) -> None:
    raw = score_pairs([ref], [hyp], BASIC)
    again = score_pairs([BASIC.normalise(ref)], [BASIC.normalise(hyp)], BASIC)
    assert raw == again
