"""Languages of Mexico (Nahuatl, Maya, Mixtec, Zapotec, Otomi, Mazatec, Chinantec, Triqui and others).

Every sign that tells words apart stays: tone accents, tone numbers, the macron below, the saltillo, the vowel length
mark. Folded is only how they were typed: the saltillo (U+A78C, an apostrophe, U+02BC, an okina) is one letter at any
place in the word; tone numbers are plain digits, raised or not; the length mark and the macron below are one sign each.
Only a pair of curly quotation marks is taken for a quotation.

The rules apply to every row but those of the languages in `basic.QUOTE_LANGS` (Spanish, English and so on): there are
hundreds of languages meant here, with more codes than a list can hold.
"""

from __future__ import annotations

from collections.abc import Callable

import regex

from tools.text.basic import LETTER_APOSTROPHES, QUOTE_LANGS, SIGN_APOSTROPHES, apostrophes
from tools.text.clean import tidy
from tools.text.langs import base_lang
from tools.text.languages import TextRule
from tools.text.profile import Rule

SALTILLO = "\ua78c"
_QUOTED = regex.compile(r"(?<![\p{L}\p{M}])‘(?=\p{L})([^‘’]*[^\s‘’])’(?![\p{L}\p{M}])")
_STOP = regex.compile(
    rf"(?<=[\p{{L}}\p{{M}}])[{LETTER_APOSTROPHES}{SIGN_APOSTROPHES}]|[{LETTER_APOSTROPHES}{SIGN_APOSTROPHES}](?=\p{{L}})"
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789")
_TONE = regex.compile(r"(?<=[\p{L}\p{M}])[⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉]+")
_MACRON_BELOW = {0x0332: "\u0331", 0x0320: "\u0331"}  # low line and minus below are typed for the macron below
_LENGTH = regex.compile(r"(?<=[\p{L}\p{M}])[:\u02D0\uA789](?=[\p{L}])")


def length(text: str) -> str:
    """A colon between letters is the length mark (before punctuation is removed)."""
    return _LENGTH.sub("\u02d0", text)


def saltillo(text: str) -> str:
    """Runs in place of the basic apostrophe rule. A paired word or phrase in single quotes is a quotation."""
    return tidy(_STOP.sub(SALTILLO, _QUOTED.sub(r" \1 ", text)))


def tones(text: str) -> str:
    """Raised tone numbers behind a letter to plain digits."""
    return _TONE.sub(lambda m: m[0].translate(_RAISED), text)


def macron_below(text: str) -> str:
    """One macron below, however it was typed."""
    return text if text.isascii() else tidy(text.translate(_MACRON_BELOW))


def _rule(apply: Callable[[str], str], otherwise: TextRule | None = None) -> TextRule:
    def rule(text: str, lang: str | None = None) -> str:
        if base_lang(lang) in QUOTE_LANGS:
            return otherwise(text, lang) if otherwise else text
        return apply(text)

    return rule


FIRST = (Rule("length mark", _rule(length), "one sign for vowel length"),)
APOSTROPHES = Rule("saltillo", _rule(saltillo, apostrophes), "one letter for the glottal stop at any place")
RULES = (
    Rule("tone numbers", _rule(tones), "raised tone numbers to plain digits"),
    Rule("macron below", _rule(macron_below), "low line and minus below to the macron below"),
)
