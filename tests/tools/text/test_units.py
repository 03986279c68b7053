"""Units by language: words, characters, and both for code switching (F26)."""

from __future__ import annotations

import pytest

from tools.text import profile
from tools.text.units import unit_of

BASIC = profile("basic")


@pytest.mark.parametrize(
    ("lang", "unit"),
    [("en", "word"), ("zh", "mixed"), ("zh-TW", "mixed"), ("zh_Hans_CN", "mixed"), ("en-zh", "mixed"), ("th", "mixed"),
     ("en-MY", "word"), ("ko", "word"), ("hi-IN", "word"), ("ja-JP", "mixed"), ("en+zh", "mixed"),
     ("jpn", "mixed"), ("Japanese", "mixed"), ("zho-Hans", "mixed"), ("tha", "mixed"), ("eng", "word"), ("kor", "word")],
)  # fmt: skip
def test_unit_of_a_language(lang: str, unit: str) -> None:
    assert unit_of(lang) == unit


@pytest.mark.parametrize("lang", ["zh", "zh-en", None])
def test_code_switching_is_cut_in_characters_and_words(lang: str | None) -> None:
    """F26: spaces around Han characters mean nothing; Latin words stay words."""
    ref, hyp, kind = BASIC.pair("我们 去 coffee shop 吧", "我们去 coffee shop 吧", lang)
    assert ref == hyp == ["我", "们", "去", "coffee", "shop", "吧"]
    assert kind == "mixed"


def test_a_text_in_one_spaceless_script_is_characters() -> None:
    assert BASIC.pair("我们去", "我们 去", "zh") == (list("我们去"), list("我们去"), "char")
    assert BASIC.pair("สวัสดี", "สวัสดี", "th")[2] == "char"


def test_the_reference_decides_where_no_language_is_given() -> None:
    ref, hyp, kind = BASIC.pair("hello there", "我们去")
    assert (ref, hyp, kind) == (["hello", "there"], ["我们去"], "word")


def test_exact_without_a_language_is_white_space_words() -> None:
    assert profile("exact").units("我们 去 coffee") == ["我们", "去", "coffee"]
    assert profile("exact").units("我们 去 coffee", "zh") == ["我", "们", "去", "coffee"]


def test_characters_count_spaces_of_spaced_languages_only() -> None:
    assert BASIC.characters("Two words.") == "two words"
    assert BASIC.characters("我们 去") == "我们去"
