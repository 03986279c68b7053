"""Our totals are jiwer's on the same normalised text, the split of errors included (figure of the scoring room)."""

from __future__ import annotations

import jiwer
import pytest

from tests.tools.score.randomtexts import SCRIPTS, random_pairs
from tools.score import score_pairs
from tools.score.transcripts import word_totals
from tools.text import profile


def agree(count: int, name: str, seed: int) -> int:
    """Compare on `count` pairs pooled and one by one; returns how many pairs were looked at."""
    chosen = profile(name)
    refs, hyps, langs = (list(column) for column in zip(*random_pairs(count, seed)))
    cut = [chosen.pair(r, h, lang) for r, h, lang in zip(refs, hyps, langs)]
    spaced_refs, spaced_hyps = [" ".join(c[0]) for c in cut], [" ".join(c[1]) for c in cut]
    ours, theirs = score_pairs(refs, hyps, chosen, langs), jiwer.process_words(spaced_refs, spaced_hyps)
    split = (theirs.insertions, theirs.deletions, theirs.substitutions)
    assert (ours.insertions, ours.deletions, ours.substitutions) == split
    assert ours.value == theirs.wer
    letters = [["".join(c[i]) if c[2] != "word" else " ".join(c[i]) for c in cut] for i in (0, 1)]
    chars = jiwer.process_characters(letters[0], letters[1])
    got = ours.characters
    assert (got.insertions, got.deletions, got.substitutions) == (
        chars.insertions,
        chars.deletions,
        chars.substitutions,
    )
    for i in range(0, count, 17):
        one, other = (
            score_pairs([refs[i]], [hyps[i]], chosen, langs[i]),
            jiwer.process_words(spaced_refs[i], spaced_hyps[i]),
        )
        assert (one.insertions, one.deletions, one.substitutions) == (
            other.insertions,
            other.deletions,
            other.substitutions,
        )
        if spaced_refs[i]:
            assert one.value == other.wer
    return count


def test_at_least_twelve_scripts() -> None:
    assert len(SCRIPTS) >= 12
    assert {lang for _, _, lang in random_pairs(100)} == set(SCRIPTS.values())


@pytest.mark.parametrize("name", ["exact", "basic", "multilingual"])
def test_totals_and_split_are_jiwers(name: str) -> None:
    assert agree(3_000, name, seed=len(name)) == 3_000


def test_word_totals_are_jiwers() -> None:
    refs, hyps, _ = (list(column) for column in zip(*random_pairs(2_000, 5)))
    ours, theirs = word_totals(refs, hyps, profile("exact")), jiwer.process_words(refs, hyps)
    assert (ours.insertions, ours.deletions, ours.substitutions) == (
        theirs.insertions,
        theirs.deletions,
        theirs.substitutions,
    )


@pytest.mark.figures
@pytest.mark.parametrize("name", ["exact", "basic", "multilingual"])
def test_hundred_thousand_pairs(name: str) -> None:
    """`pytest -m figures tests/tools/score/test_differential.py`: 120,000 pairs a profile."""
    assert sum(agree(20_000, name, seed) for seed in range(100, 106)) == 120_000


def test_where_we_differ_on_purpose() -> None:
    """An empty corpus reference: jiwer calls the count of insertions a rate, we give no rate and the count apart."""
    theirs = jiwer.process_words([""], ["hello world"])
    ours = score_pairs([""], ["hello world"], profile("exact"))
    assert theirs.wer == 2 and ours.value is None
    assert ours.insertions == theirs.insertions == ours.hallucinated_units == 2
