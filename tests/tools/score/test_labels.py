"""Label scores: strict and parsed apart, hedging never rewarded (F43), the comparator fitted on dev only."""

from __future__ import annotations

import pytest

from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score.comparator import fit_comparator
from tools.score.labels import INVALID, label_set, score_labels, variants
from tools.text import profile

BASIC = profile("basic")
YES_NO = label_set(BASIC, ["yes", "no"], {"yeah": "yes"})
MOODS = label_set(BASIC, ["angry", "happy", "very happy"])


def answers(*pairs: tuple[str, str]) -> list[ScoredRow]:
    return [ScoredRow(id=f"{i:03}", ref=r, hyp=h) for i, (r, h) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("answer", "strict", "parsed"),
    [
        ("yes", "yes", "yes"),
        ("Yes.\r\n", "yes", "yes"),
        ("yeah", INVALID, "yes"),
        ("the answer is yes", INVALID, "yes"),
        ("yes yes yes", INVALID, "yes"),
        ("", INVALID, INVALID),
        ("yes and no", INVALID, INVALID),
        ("yes or no", INVALID, INVALID),
        ("maybe yes", INVALID, INVALID),
        ("not yes", INVALID, INVALID),
        ("no, not yes", INVALID, INVALID),
        ("yesterday", INVALID, INVALID),
    ],
)
def test_reading_an_answer(answer: str, strict: str, parsed: str) -> None:
    assert (YES_NO.strict(answer), YES_NO.parse(answer)) == (strict, parsed)


@pytest.mark.parametrize(
    "answer",
    ["probably yes", "I think yes", "could be yes", "can't say yes", "don’t know, yes", "cannot say yes", "hardly yes",
     "yes, but it depends", "yes 50%", "it isn't yes", "peut-être yes", "talvez yes", "möglicherweise yes", "нет yes",
     "возможно yes", "शायद yes", "ربما yes", "可能 yes", "không yes", "아마 yes", "un-yes", "yes unless asked",
     "unknown, yes", "değil yes", "belki yes"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["basic", "english", "exact", "multilingual"])
def test_a_hedge_in_any_tongue_names_no_label(name: str, answer: str) -> None:
    labels = label_set(profile(name), ["yes", "no"])
    assert labels.parse(answer) == INVALID and labels.hedges(answer)


def test_a_doubt_that_is_a_label_is_that_label() -> None:
    labels = label_set(BASIC, ["likely", "not likely", "unknown"])
    assert [labels.parse(a) for a in ("it is likely", "it is not likely", "the answer is unknown")] == [
        "likely", "not likely", "unknown",
    ]  # fmt: skip


def test_the_comparator_learns_nothing_from_i_do_not_know() -> None:
    dev = answers(*[("yes", "I don't know")] * 5, *[("no", "no")] * 3)
    comparator = fit_comparator(dev, YES_NO)
    assert comparator.aliases == {} and comparator.read("I don't know") == INVALID


def test_the_longest_label_is_the_one_named() -> None:
    assert MOODS.parse("the speaker sounds very happy") == "very happy"
    assert MOODS.parse("not angry") == INVALID
    assert MOODS.parse("happy, very happy") == INVALID


def test_f43() -> None:
    score = score_labels(answers(("yes", ""), ("yes", "yes"), ("yes", "no"), ("yes", "yes and no")), YES_NO)
    assert (score.strict.correct, score.parsed.correct, score.empty) == (1, 1, 1)
    assert score.strict.invalid_rate == 0.5


def test_recall_confusion_and_rates() -> None:
    score = score_labels(
        answers(("yes", "yes"), ("yes", "it is yes"), ("yes", "no"), ("no", "no"), ("no", "eh")), YES_NO
    )
    assert score.strict.recall == {"no": 0.5, "yes": pytest.approx(1 / 3)}
    assert score.parsed.recall == {"no": 0.5, "yes": pytest.approx(2 / 3)}
    assert score.parsed.macro_recall == pytest.approx((0.5 + 2 / 3) / 2)
    assert score.parsed.confusion["no"] == {"no": 1, "yes": 0, INVALID: 1}
    assert score.parsed.precision == {"no": 0.5, "yes": 1.0}
    assert score.to_json()["strict"]["invalid_rate"] == pytest.approx(2 / 5)


def test_recall_is_over_classes_that_have_rows() -> None:
    assert score_labels(answers(("yes", "yes")), YES_NO).strict.macro_recall == 1.0


def test_references_must_be_labels_and_ids_unique() -> None:
    with pytest.raises(CheckError, match="'perhaps', which is no label"):
        score_labels(answers(("perhaps", "yes")), YES_NO)
    with pytest.raises(CheckError, match="twice"):
        score_labels(answers(("yes", "yes")) * 2, YES_NO)
    with pytest.raises(CheckError, match="no rows"):
        score_labels([], YES_NO)


@pytest.mark.parametrize(
    ("labels", "aliases"),
    [(["c", "c#"], {}), (["..."], {}), (["a", "b"], {"x": "c"}), (["a", "b"], {"a": "b"}), (["a", "b"], {"": "a"})],
)
def test_labels_and_aliases_that_cannot_serve(labels: list[str], aliases: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        label_set(BASIC, labels, aliases)


def test_blanks_and_case_are_one_class_with_a_warning() -> None:
    """F14."""
    spellings = ["yes", "yes ", "Yes", "yes\r"]
    assert label_set(BASIC, spellings).labels == ("yes",)
    assert variants([*spellings, "no"]) == {"yes": spellings}


DEV = answers(
    *[("yes", "affirmative")] * 4,
    *[("no", "no")] * 3,
    *[("yes", "yes and no")] * 5,
    *[("no", "yes")] * 4,
    ("yes", "yes"),
)


def test_the_comparator_learns_aliases_priors_and_remaps_on_dev() -> None:
    comparator = fit_comparator(DEV, YES_NO)
    assert comparator.aliases == {"affirmative": "yes"}
    assert comparator.remap == {"yes": "no"}
    assert comparator.fallback == "yes"
    assert comparator.read("Affirmative!") == "yes"
    assert comparator.read("gibberish") == "yes"


@pytest.mark.parametrize("hedge", ["", "yes and no", "not yes", "maybe no"])
def test_the_comparator_rewards_no_hedging(hedge: str) -> None:
    assert fit_comparator(DEV, YES_NO).read(hedge) == INVALID


def test_the_comparator_is_fitted_on_dev_only_and_then_fixed() -> None:
    with pytest.raises(CheckError, match="dev only"):
        fit_comparator(DEV, YES_NO, split="test")
    with pytest.raises(CheckError, match="no development rows"):
        fit_comparator([], YES_NO)
    comparator = fit_comparator(DEV, YES_NO)
    before = comparator.to_json()
    score = comparator.score(answers(("yes", "affirmative"), ("no", "yes"), ("yes", "")))
    assert (score.correct, score.invalid) == (2, 1)
    assert comparator.to_json() == before and before["fitted_on"] == len(DEV)
