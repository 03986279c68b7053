"""Laws of every profile: idempotent, deterministic, no hidden error by a deleted mark; names, digests, variants."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.text.alphabets import ALPHABETS, ENGLISH_WORDS
from tools.errors import UsageError
from tools.text import names, profile
from tools.text.equivalents import with_equivalents

LANGS = [None, "en", "de", "tr", "vi", "hi", "ar", "fa", "he", "hy", "zh", "ja", "ko", "th", "ml", "mix", "zap", "haw"]
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
script_text = st.sampled_from(sorted(ALPHABETS)).flatmap(
    lambda name: st.text(st.sampled_from(ALPHABETS[name] + "  '’-.,0123"), max_size=40)
)
english_text = st.lists(st.sampled_from(ENGLISH_WORDS), max_size=12).map(" ".join)
DIGESTS = json.loads((Path(__file__).parent / "digests.json").read_text())


@pytest.mark.parametrize("name", names())
@settings(max_examples=50, deadline=None, derandomize=True)
@given(text=any_text | script_text | english_text, lang=st.sampled_from(LANGS))
def test_idempotent(name: str, text: str, lang: str | None) -> None:
    once = profile(name).normalise(text, lang)
    assert profile(name).normalise(once, lang) == once


@settings(max_examples=300, deadline=None, derandomize=True)
@given(text=english_text)
def test_english_numbers_are_idempotent(text: str) -> None:
    once = profile("english").normalise(text)
    assert profile("english").normalise(once) == once


@pytest.mark.parametrize("name", names())
@settings(max_examples=50, deadline=None, derandomize=True)
@given(text=any_text | script_text, lang=st.sampled_from(LANGS))
def test_units_hold_no_white_space_and_all_of_the_text(name: str, text: str, lang: str | None) -> None:
    units = profile(name).units(text, lang)
    assert all(unit and unit.split() == [unit] for unit in units)
    assert "".join(units) == "".join(profile(name).normalise(text, lang).split())


MARKED = "".join(c for alphabet in ALPHABETS.values() for c in alphabet if unicodedata.category(c) in ("Mn", "Mc"))
FOLDS_MARKS = {"english", "arabic"}  # english: Latin accents; arabic: short vowels, declared (F24)


@pytest.mark.parametrize("name", sorted(set(names()) - FOLDS_MARKS))
@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    word=st.sampled_from(sorted(ALPHABETS)).flatmap(
        lambda n: st.text(st.sampled_from(ALPHABETS[n]), min_size=1, max_size=8)
    ),
    mark=st.sampled_from(sorted(set(MARKED))),
    at=st.integers(1, 8),
    lang=st.sampled_from([None, "en", "hi", "vi", "yo", "th", "mix"]),
)
def test_a_missing_mark_stays_an_error(name: str, word: str, mark: str, at: int, lang: str | None) -> None:
    """No profile but english makes two words equal by deleting a mark (arabic: its own short vowels, on purpose)."""
    if name == "multilingual" and lang == "en":
        return
    marked = word[:at] + mark + word[at:]
    a, b = (unicodedata.normalize("NFC", text) for text in (word, marked))
    if a.lower() == b.lower() or not a[0].isalpha():
        return
    ref, hyp = profile(name).normalise(a, lang), profile(name).normalise(b, lang)
    assert ref != hyp


def test_the_exceptions_fold_marks_and_say_so() -> None:
    assert profile("english").normalise("café") == "cafe"
    assert profile("arabic").normalise("كَتَبَ") == "كتب"
    assert any(rule.name == "accents" for rule in profile("english").rules)
    assert any(rule.name == "short vowels" for rule in profile("arabic").rules)


def test_digests_are_pinned() -> None:
    """A change of behaviour changes a digest: raise the profile's version and write the new digest here."""
    assert {name: [profile(name).version, profile(name).digest] for name in names()} == DIGESTS


def test_every_rule_has_a_name_and_a_sentence() -> None:
    for name in names():
        rules = profile(name).rules
        assert len({rule.name for rule in rules}) == len(rules)
        assert all(rule.does for rule in rules)


def test_aliases_and_unknown_names() -> None:
    assert profile("hi") is not None and profile("hi").name == profile("hindi").name == "indic"
    with pytest.raises(UsageError, match=r"no text profile 'klingon'.*basic"):
        profile("klingon")
    with pytest.raises(UsageError, match="no text profile"):
        profile("basic+nonsense")


def test_compounds_are_declared_and_pairwise() -> None:
    """F26: 0.5 strict, 0 with the compound rule; other words are not joined."""
    strict, joined = profile("basic"), profile("basic+compounds")
    from tools.score import score_pairs

    refs, hyps = ["every day we meet"], ["everyday we meet"]
    assert score_pairs(refs, hyps, strict).value == 0.5
    assert score_pairs(refs, hyps, joined).value == 0.0
    assert joined.digest != strict.digest
    assert joined.pair("every day every one", "everyday every one")[0] == ["everyday", "every", "one"]
    assert joined.pair("a b c", "ab d")[:2] == (["ab", "c"], ["ab", "d"])


def test_equivalents() -> None:
    """F26: 커피 and coffee are an error unless the customer lists them."""
    base = profile("basic")
    ours = with_equivalents(base, [["coffee", "커피"], ["every day", "everyday"]])
    assert base.pair("커피 한잔", "coffee 한잔")[0] != base.pair("커피 한잔", "coffee 한잔")[1]
    assert ours.normalise("커피 한잔 Everyday") == "coffee 한잔 every day"
    assert ours.normalise("everydays 커피를") == "everydays 커피를"
    assert ours.digest != base.digest and ours.name == "basic+equivalents"
    assert ours.normalise(ours.normalise("커피")) == "coffee"


@pytest.mark.parametrize("groups", [[["a", "b"], ["b", "c"]], [["a"]], [["a", "..."]], [["a", "b"], ["c", "a"]]])
def test_bad_equivalents_are_refused(groups: list[list[str]]) -> None:
    with pytest.raises(UsageError):
        with_equivalents(profile("basic"), groups)
