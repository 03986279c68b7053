"""Signs that are spoken, dotted abbreviations, accents."""

from __future__ import annotations

import re
import unicodedata

import regex

from tools.text import basic
from tools.text.english.guard import is_english

_DOTTED = regex.compile(r"(?<![\p{L}\p{N}.])(?:\p{L}\.){2,}(?:\p{L}(?![\p{L}\p{N}']))?")
_DIGIT = re.compile("[0-9]")
# a cheap look for what `written` is about
_BESIDE = re.compile(r"[-−.][.$£€]?[0-9]|[0-9](?:[½'’ʼkmbt]| ?[ap]\.?m)")
_NUMBER = r"(?<![\d.,:/])\d+(?:,\d{3})*(?:\.\d+)?(?![\d.,:/\p{L}])"
_SCALE = r"(?: (?:thousand|million|billion|trillion)\b)?"
_MONEY = regex.compile(rf"([$£€¥₹]) ({_NUMBER}{_SCALE})|({_NUMBER}{_SCALE}) ([$£€¥₹¢])")
_NAMES = {
    "$": ("dollar", "cent"),
    "£": ("pound", "penny"),
    "€": ("euro", "cent"),
    "¥": ("yen", ""),
    "₹": ("rupee", ""),
    "¢": ("cent", ""),
}
_PLURALS = {"yen": "yen", "penny": "pence"}
_WORDS = {
    "%": "percent",
    "&": "and",
    "@": "at",
    "+": "plus",
    "=": "equals",
    "°": "degrees",
    "×": "times",
    "÷": "divided by",
    "±": "plus or minus",
}
_WORDS |= {sign: _PLURALS.get(name, f"{name}s") for sign, (name, _) in _NAMES.items()}
_SIGNS = re.compile(r"[%&@+=°×÷±$£€¥₹¢]")
_FREE, _ENDS = r"(?<![\p{L}\p{N}])(?<!\p{N}[.:])", r"(?![\p{L}\p{N}]|\.\d)"
_WRITTEN: tuple[tuple[regex.Pattern[str], str], ...] = (
    (regex.compile(r"(?<!\S)[-−](?=[.\d$£€])"), "minus "),
    (regex.compile(rf"{_FREE}(?:\((\d{{3}})\)[- ]?|(\d{{3}})-)(\d{{3}})-(\d{{4}}){_ENDS}"), r"\1\2\3\4"),
    (regex.compile(rf"{_FREE}(\d{{3}})\.(\d{{3}})\.(\d{{4}}){_ENDS}"), r"\1\2\3"),
    (regex.compile(r"(?<![\w.])\.(?=\d)"), "0."),
    (regex.compile(r"(?<=\d)½(?!½)"), ".5"),
    (regex.compile(r"(?<=\d)['’ʼ]s\b"), "s"),
)
_CLOCK = regex.compile(rf"{_FREE}(\d{{1,2}})(?:\.(\d\d)(?=[ap])|:(\d\d))? ?([ap])(?:m|\.m\b\.?)(?![\p{{L}}\p{{N}}])")
_SHORT_MONEY = regex.compile(r"([$£€¥₹]\d[\d,]*(?:\.\d+)?)(k|mn?|bn?|tn)\b")
_SHORT = {"k": "thousand", "m": "million", "b": "billion", "t": "trillion"}
_DEGREES = regex.compile(r"° ([cf])\b")
_SCALES = {"c": "celsius", "f": "fahrenheit"}
_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ß": "ss", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i"})
_LATIN_MARKS = regex.compile(r"(\p{Latin})\p{Mn}+")


def written(text: str, lang: str | None = None) -> str:
    """What is written beside digits as it is read: a minus, a point without a zero, halves, decades, `7am`, `$5k`,
    telephone numbers of ten digits. Runs before the other signs are touched."""
    if not _DIGIT.search(text) or not _BESIDE.search(text) or not is_english(lang):
        return text
    for pattern, to in _WRITTEN:
        text = pattern.sub(to, text)
    text = _CLOCK.sub(_clock, text)
    return _SHORT_MONEY.sub(lambda m: f"{m[1]} {_SHORT[m[2][0]]}", text)


def _clock(match: regex.Match[str]) -> str:
    minutes = match[2] or match[3]
    return f"{match[1]}:{minutes} {match[4]}m" if minutes else f"{match[1]} {match[4]}m"


def apostrophes(text: str, lang: str | None = None) -> str:
    """The basic rule; a row without a language counts as English."""
    return basic.apostrophes(text, lang or "en")


def dots(text: str, lang: str | None = None) -> str:
    """`u.s.a.` -> `usa`; runs before punctuation becomes space."""
    if "." not in text or not is_english(lang):
        return text
    return _DOTTED.sub(lambda m: m[0].replace(".", "") + " ", text)


def signs(text: str, lang: str | None = None) -> str:
    """`$ 5.50` -> `5 dollars and 50 cents`, `50 %` -> `50 percent`; expects the basic rules' output."""
    if not _SIGNS.search(text) or not is_english(lang):
        return text
    text = _MONEY.sub(_money, text)
    text = _DEGREES.sub(lambda m: f"degrees {_SCALES[m[1]]}", text)
    return " ".join([_WORDS.get(word, word) for word in text.split()])


def _money(match: regex.Match[str]) -> str:
    sign, amount = (match[1], match[2]) if match[1] else (match[4], match[3])
    whole, small = _NAMES[sign]
    digits, _, cents = amount.partition(".")
    if len(cents) == 2 and small:
        if cents == "00":
            return _count(digits, whole)
        part = _count(cents.lstrip("0"), small)
        return part if digits == "0" else f"{_count(digits, whole)} and {part}"
    return _count(amount, whole)


def _count(amount: str, name: str) -> str:
    return f"{amount} {name if amount == '1' else _PLURALS.get(name, name + 's')}"


def accents(text: str, lang: str | None = None) -> str:
    """`café` -> `cafe`, `œuvre` -> `oeuvre`; other scripts keep every mark."""
    if text.isascii() or not is_english(lang):
        return text
    text = _LATIN_MARKS.sub(r"\1", unicodedata.normalize("NFD", text.translate(_LETTERS)))
    return unicodedata.normalize("NFC", text)
