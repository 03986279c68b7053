"""The rules of the profile `basic`: case and punctuation. Every letter, mark, tone and glottal stop stays.

Apostrophes are one class. Between two letters each of them becomes U+0027. At the edge of a word an unambiguous letter
(okina, modifier apostrophe, saltillo) stays as U+02BC; an ambiguous sign (U+0027, U+2018, U+2019, U+0060 and so on) is
a quotation mark where it is paired or where the language has no glottal stop there, else it stays as U+02BC as well.
"""

from __future__ import annotations

import re

import regex

from tools.text.clean import tidy
from tools.text.langs import base_lang

LETTER_APOSTROPHES = "\u02bb\u02bc\u02bd\u02be\u02bf\ua78b\ua78c"
SIGN_APOSTROPHES = "'\u2018\u2019\u201b\u2032\u00b4`\uff07"
EDGE = "\u02bc"

# Languages in which a sign at the edge of a word is a quotation mark, an elision or a genitive, never a consonant.
QUOTE_LANGS = frozenset(
    "en de fr es it pt nl sv da nb nn no fi et lv lt pl cs sk sl hr bs sr bg mk ru uk be ro hu el tr az ca gl eu ga cy "
    "is af sq hi bn ta te mr gu pa ml kn ur fa ar he hy ka zh yue ja ko th vi id ms tl".split()
)

_MID = regex.compile(rf"(?<=[\p{{L}}\p{{M}}])[{LETTER_APOSTROPHES}{SIGN_APOSTROPHES}](?=\p{{L}})")
_DOUBLED = regex.compile(rf"[{LETTER_APOSTROPHES}{SIGN_APOSTROPHES}]{{2,}}")  # '' is a quotation mark
_LETTER_EDGE = regex.compile(rf"[{LETTER_APOSTROPHES}]")
_SIGN = regex.compile(rf"[{SIGN_APOSTROPHES}]")
_ANY = regex.compile(rf"[{LETTER_APOSTROPHES}{SIGN_APOSTROPHES}]")

# Punctuation inside a word that is written but not a boundary: Armenian stress and question signs, Hebrew geresh and
# gershayim (also typed as a double quote), the Devanagari abbreviation sign. Deleted without a gap.
_INNER = regex.compile(r"[\u055A-\u055F\u05F3\u05F4\u0970]|(?<=\p{Hebrew})\"(?=\p{Hebrew})")
# Spoken signs stay as words of their own; so do the marks a writing system uses as letters.
_SPOKEN = r"\p{Sc}%‰&@°+=×÷±√٪"
_SPOKEN_GAP = regex.compile(rf"\s*([{_SPOKEN}])\s*")
_KEPT = rf"{_SPOKEN}\u02BC\uFFFD\u02C2-\u02DF\u02E5-\u02FF\uA700-\uA721\uA789\uA78A"
_SEPARATOR = regex.compile(r"(?<=\p{Nd})[.,:/٫٬](?=\p{Nd})")
_HELD = {".": "\ufdd0", ",": "\ufdd1", ":": "\ufdd2", "/": "\ufdd3", "٫": "\ufdd4", "٬": "\ufdd5"}  # noncharacters
_RELEASE = {ord(v): k for k, v in _HELD.items()}
_DROP = regex.compile(rf"(?V1)[[\p{{P}}\p{{S}}]--[{_KEPT}'·]]|(?<!\p{{L}})·|·(?!\p{{L}})")
_WORD_MID = regex.compile(r"(?<![\p{L}\p{M}])'|'(?!\p{L})")

# The same for ASCII texts, by the faster tools that suffice there.
_ASCII_DROP = str.maketrans(dict.fromkeys('!"#()*-;<>?[\\]^_`{|}~', " "))
_ASCII_DROP_ALL = _ASCII_DROP | str.maketrans(dict.fromkeys(".,:/", " "))
_ASCII_DIGIT = re.compile("[0-9]")
_ASCII_SEPARATOR = re.compile(r"(?<![0-9])[.,:/]|[.,:/](?![0-9])")
_ASCII_EDGE = re.compile(r"(?<![a-zA-Z])'|'(?![a-zA-Z])")


def lower(text: str, lang: str | None = None) -> str:
    """Lower case with care for Turkish and Azeri dotted I; no folding of letters (the German sharp s stays)."""
    if text.isascii() and lang is None:
        return text.lower()
    if base_lang(lang) in ("tr", "az"):
        text = text.replace("İ", "i").replace("I", "ı")
    return tidy(text.lower())


def apostrophes(text: str, lang: str | None = None) -> str:
    """One apostrophe class; quotation marks go, glottal stops stay (see the module)."""
    if text.isascii():
        if "`" not in text and ("'" not in text or base_lang(lang) in QUOTE_LANGS):
            return text  # `punctuation` drops what is not between two letters
    elif not _ANY.search(text):
        return text
    text = _DOUBLED.sub(lambda m: " " if _SIGN.match(m[0]) else EDGE, text)
    text = _MID.sub("'", text)
    text = _LETTER_EDGE.sub(EDGE, text)
    if base_lang(lang) in QUOTE_LANGS:
        return tidy(_WORD_MID.sub(" ", _SIGN.sub(lambda m: "'" if m[0] == "'" else " ", text)))
    return tidy(_unpaired(text))


def _unpaired(text: str) -> str:
    """Signs at word edges: pairs are quotation marks and go, single ones are letters and become U+02BC."""
    open_at: list[int] = []
    verdict: dict[int, str] = {}
    for match in _SIGN.finditer(text):
        at = match.start()
        before = text[at - 1] if at else " "
        after = text[at + 1] if at + 1 < len(text) else " "
        left, right = _joins(before), _joins(after)
        if left and right and match[0] == "'":
            continue
        if right and not left:
            open_at.append(at)
            verdict[at] = EDGE
        elif left and open_at:
            verdict[open_at.pop()] = " "
            verdict[at] = " "
        else:
            verdict[at] = EDGE if left else " "
    return "".join(verdict.get(i, c) for i, c in enumerate(text)) if verdict else text


def _joins(char: str) -> bool:
    return char.isalpha() or regex.match(r"\p{M}", char) is not None


def punctuation(text: str, lang: str | None = None) -> str:
    """Punctuation and unspoken symbols to spaces; signs that are spoken (% & @ + = and currencies) are words; `3.5`,
    `10:30` and `1,000` keep their inner sign."""
    if text.isascii():
        return _ascii_punctuation(text)
    text = _INNER.sub("", text)
    text = _SEPARATOR.sub(lambda m: _HELD[m[0]], text)
    text = _WORD_MID.sub(" ", _DROP.sub(" ", text))
    return tidy(_SPOKEN_GAP.sub(r" \1 ", text).translate(_RELEASE))


def _ascii_punctuation(text: str) -> str:
    if _ASCII_DIGIT.search(text):
        text = _ASCII_SEPARATOR.sub(" ", text.translate(_ASCII_DROP))
    else:
        text = text.translate(_ASCII_DROP_ALL)
    if "'" in text:
        text = _ASCII_EDGE.sub(" ", text)
    for sign in "$%&@+=":
        if sign in text:
            text = text.replace(sign, f" {sign} ")
    return " ".join(text.split())
