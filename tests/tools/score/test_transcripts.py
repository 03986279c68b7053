"""Transcript scores on the field cases F17, F19, F20, F26, F29, and the rules of row ids."""

from __future__ import annotations

import pytest

from tools.errors import CheckError
from tools.rows import ScoredRow
from tools.score import score_by, score_pairs, score_rows
from tools.score.transcripts import same_terms
from tools.text import profile

BASIC = profile("basic")


def rows(*pairs: tuple[str, str], **fields: str) -> list[ScoredRow]:
    return [ScoredRow(id=f"r{i:03}", ref=r, hyp=h, **fields) for i, (r, h) in enumerate(pairs)]  # type: ignore[arg-type]


def test_empty_reference_is_a_hallucination_and_not_a_divisor() -> None:
    """F17."""
    score = score_pairs(["", "a b c"], ["x", "a b c"], BASIC)
    assert score.value == 1 / 3
    assert (score.insertions, score.reference_units, score.empty_references, score.hallucinated_units) == (1, 3, 1, 1)
    assert score_pairs([""], [""], BASIC).errors == 0
    alone = score_pairs([""], ["peaceful silence"], BASIC)
    assert alone.value is None and alone.cer is None and alone.hallucinated_units == 2


@pytest.mark.parametrize(
    ("ref", "hyp", "rate"),
    [("fries", "no fry", 2.0), ("Hello", "Hi World vka", 3.0), ("hello", "hello how are you", 3.0)],
)
def test_more_than_hundred_percent_is_shown(ref: str, hyp: str, rate: float) -> None:
    """F19."""
    assert score_pairs([ref], [hyp], BASIC).value == rate


def test_corpus_rate_and_not_a_mean_of_clips() -> None:
    """F20."""
    long = " ".join(f"word{i}" for i in range(20))
    assert score_pairs(["yes", long], ["no", long], BASIC).value == pytest.approx(1 / 21)


def test_ties_of_alignment() -> None:
    """F20: two substitutions beat one substitution, one deletion and one insertion."""
    ref = "the cat went to the store"
    assert score_pairs([ref], ["the car went to store front"], BASIC).value == 0.5
    score = score_pairs([ref], ["the car went to green store"], BASIC)
    assert (score.value, score.substitutions, score.insertions) == (pytest.approx(1 / 3), 2, 0)


def test_code_switching() -> None:
    """F26."""
    ref = "我们 去 coffee shop 吧"
    assert score_pairs([ref], ["我们去 coffee shop 吧"], BASIC).value == 0.0
    score = score_pairs([ref], ["我们区 coffe shop 吧"], BASIC)
    assert (score.metric, score.value) == ("mer", pytest.approx(2 / 6))
    assert score_pairs([ref], ["我们去 coffee shop 吧"], profile("exact")).value == pytest.approx(0.4)


def test_metric_names() -> None:
    assert score_pairs(["a b"], ["a b"], BASIC, "en").metric == "wer"
    assert score_pairs(["我们"], ["我们"], BASIC, "zh").metric == "cer"
    assert score_pairs(["我们", "a b"], ["我们", "a"], BASIC, ["zh", "en"]).metric == "mer"


def test_same_result_for_any_share_of_the_work() -> None:
    """F29: every id once; one, two or four ranks give 3/50; a padded batch is refused."""
    clips = rows(*[("a b c d e f g h i j",) * 2] * 5)
    clips[0] = ScoredRow(id="r000", ref=clips[0].ref, hyp="x y z d e f g h i j")
    ids = [row.id for row in clips]
    for ranks in (1, 2, 4):
        parts = [row for rank in range(ranks) for row in clips[rank::ranks]]
        assert score_rows(parts, BASIC, ids=ids).value == 3 / 50
    padded = [*clips[::2], *clips[1::2], clips[0]]
    with pytest.raises(CheckError, match="'r000' comes twice"):
        score_rows(padded, BASIC)


def test_missing_and_foreign_ids_are_errors() -> None:
    clips = rows(("a", "a"), ("b", "b"))
    with pytest.raises(CheckError, match="1 clips have no row, the first is 'r002'"):
        score_rows(clips, BASIC, ids=["r000", "r001", "r002"])
    with pytest.raises(CheckError, match="'r001' is not in the split"):
        score_rows(clips, BASIC, ids=["r000"])


def test_ordered_rows_are_held_to_their_order() -> None:
    clips = rows(("a", "a"), ("b", "b"))
    assert score_rows(iter(clips), BASIC, ordered=True).rows == 2
    with pytest.raises(CheckError, match="sort the rows"):
        score_rows(reversed(clips), BASIC, ordered=True)
    with pytest.raises(CheckError, match="twice"):
        score_rows([clips[0], clips[0]], BASIC, ordered=True)


@pytest.mark.parametrize(("refs", "hyps", "langs"), [(["a"], [], None), ([], ["a"], None), (["a"], ["a"], [])])
def test_pairs_must_be_pairs(refs: list[str], hyps: list[str], langs: list[str] | None) -> None:
    with pytest.raises(CheckError):
        score_pairs(refs, hyps, BASIC, langs)


def test_diagnostics_are_counted() -> None:
    clips = [
        ScoredRow(id="1", ref="thank you", hyp=""),
        ScoredRow(id="2", ref="thank you", hyp="thank you " * 20),
        ScoredRow(id="3", ref="thank you all", hyp="thank you", finish="length"),
        ScoredRow(id="4", ref="thank you", hyp="спасибо вам"),
        ScoredRow(id="5", ref="thank you", hyp="thank you\ufffd"),
        ScoredRow(id="6", ref="thank you", hyp="<|en|> thank you"),
        ScoredRow(id="7", ref="thank you", hyp="please transcribe the following audio thank you"),
        ScoredRow(id="8", ref="thank you", hyp="thank you"),
    ]
    found = score_rows(clips, BASIC, prompt="Please transcribe the following audio.").diagnostics
    ratio = found.pop("length_ratio")
    assert found == {
        "empty": 1,
        "loops": 1,
        "truncated": 1,
        "wrong_script": 1,
        "replacement_characters": 1,
        "special_tokens": 1,
        "prompt_leaks": 1,
        "length_outliers": 3,
    }
    assert ratio == pytest.approx((0 + 40 + 2 + 2 + 2 + 3 + 7 + 2) / 17)


def test_slices() -> None:
    clips = [*rows(("a b", "a b"), ("a b", "a c"), speaker="s1"), ScoredRow(id="x", ref="a", hyp="b", speaker="s2")]
    by = score_by(clips, "speaker", BASIC)
    assert {name: s.value for name, s in by.items()} == {"s1": 0.25, "s2": 1.0}
    assert sum(s.errors for s in by.values()) == score_rows(clips, BASIC).errors
    assert set(score_by(clips, lambda row: row.lang, BASIC)) == {""}


def test_json_names() -> None:
    out = score_pairs(["a b"], ["a"], BASIC).to_json()
    assert out["metric"] == "wer" and out["value"] == 0.5 and out["deletions"] == 1
    assert out["profile"] == {"name": "basic", "version": BASIC.version, "digest": BASIC.digest}
    assert out["scorer"]["aligner"] == "rapidfuzz-levenshtein"


def test_scores_made_in_different_ways_are_not_compared() -> None:
    """F28."""
    a, b = (score_pairs(["a b"], ["a"], profile(name)).to_json() for name in ("basic", "english"))
    same_terms(a, a)
    with pytest.raises(CheckError, match="different profiles"):
        same_terms(a, b)
    with pytest.raises(CheckError, match="different scorers"):
        same_terms(a, {**a, "scorer": {**a["scorer"], "version": "0"}})
