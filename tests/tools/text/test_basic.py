"""The profiles exact and basic: spaces, Unicode forms, apostrophes, punctuation (field cases F14, F23, F24)."""

from __future__ import annotations

import pytest

from tools.text import profile

EXACT, BASIC = profile("exact"), profile("basic")


@pytest.mark.parametrize("odd", ["\u00a0", "\t", "\u3000", "\r\n", "\u2028", " \u2009 ", "\x1c", "\u0085"])
def test_odd_spaces_are_spaces(odd: str) -> None:
    """F14: a no-break space or a tab between two words is no error."""
    assert EXACT.normalise(f"good{odd}morning{odd}") == "good morning"


@pytest.mark.parametrize("invisible", ["\u200b", "\ufeff", "\u2060"])
def test_zero_width_characters_vanish(invisible: str) -> None:
    assert EXACT.normalise(f"{invisible}go{invisible}od") == "good"


def test_exact_keeps_case_and_punctuation() -> None:
    assert EXACT.normalise("  Hello,  World! ") == "Hello, World!"


def test_vietnamese_in_both_unicode_forms_is_one_text() -> None:
    """F24."""
    nfd = "Tie\u0302\u0301ng Vie\u0323\u0302t"
    assert EXACT.normalise(nfd) == EXACT.normalise("Tiếng Việt")
    assert len(EXACT.normalise(nfd)) == 10


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Hello, WORLD! (again)", None, "hello world again"),
        ("don’t don't don`t donʼt", "en", "don't don't don't don't"),
        ("'quoted words' and “more”", "en", "quoted words and more"),
        ("‘quoted words’ here", None, "quoted words here"),
        ("the dogs' bowl", "en", "the dogs bowl"),
        ("l’été d'accord", "fr", "l'été d'accord"),
        ("Hawaiʻi Hawai‘i Hawai'i", None, "hawai'i hawai'i hawai'i"),
        ("ka' kaʼ kaꞌ", None, "kaʼ kaʼ kaʼ"),
        ("ʻokina", "haw", "ʼokina"),
        ("3.5 10:30 1,000 1/2", None, "3.5 10:30 1,000 1/2"),
        ("5% & $5", None, "5 % & $ 5"),
        ("well-known state–of—the art", None, "well known state of the art"),
        ("snake_case #tag *bold*", None, "snake case tag bold"),
        ("İSTANBUL IŞIK", "tr", "istanbul ışık"),
        ("STRASSE straße", "de", "strasse straße"),
        ("ինչո՞ւ", "hy", "ինչու"),
        ('צה"ל צה״ל', "he", "צהל צהל"),
        ("col·lecció", "ca", "col·lecció"),
        ("soft\u00adhyphen \u200fmark", None, "softhyphen mark"),
        ("می\u200cخواهم", "fa", "می\u200cخواهم"),
        ("♪ 😀 \u200d word", None, "word"),
        ("hello\ufffd", None, "hello\ufffd"),
        ("ka³ ˥˩ ʔa", None, "ka³ ˥˩ ʔa"),
        ("ﬁne ﬂow ĳs ŉ ſo Ǆep µ", None, "fine flow ijs ʼn so džep μ"),
        ("ＡＢＣ１２３，ｶﾞ⼈", None, "abc123 ガ人"),
        ("ﻻ ﷲ", None, "لا الله"),
        ("½ ② Ⅳ ka³", None, "½ ② ⅳ ka³"),
        ("IŞIK", "tur", "ışık"),
        ("the dogs' bowl", "English", "the dogs bowl"),
        ("", None, ""),
        ("... !?", None, ""),
    ],
)
def test_basic(text: str, lang: str | None, expected: str) -> None:
    assert BASIC.normalise(text, lang) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("नमस्ते दुनिया", 2),
        ("வணக்கம் உலகம்", 2),
        ("আমি বাংলায় গান গাই", 4),
        ("كَتَبَ الوَلَدُ", 2),
        ("ọ̀rọ̀ Yorùbá", 2),
        ("kích thước", 2),
        ("don’t o’clock", 2),
    ],
)
def test_marks_do_not_break_words(text: str, words: int) -> None:
    """A `[^\\w\\s]` rule shatters these; here the number of words stays."""
    assert len(BASIC.units(text, "xx")) == words


def test_hindi_vowel_signs_count() -> None:
    """F23: two of four words differ by a vowel sign; both errors stay."""
    ref, hyp, _ = BASIC.pair("वह कल दिल्ली जाएगा", "वह कल दिल्लि जाएगी", "hi")
    assert [a == b for a, b in zip(ref, hyp)] == [True, True, False, False]


def test_tones_count() -> None:
    assert BASIC.normalise("ọ̀rọ̀") != BASIC.normalise("ọrọ")
    assert BASIC.normalise("Việt") != BASIC.normalise("Viet")
