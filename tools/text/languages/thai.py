"""Thai and Lao: two ways to type one letter. Every vowel sign and tone mark stays."""

from __future__ import annotations

import regex

from tools.text.clean import tidy
from tools.text.languages import digit_table, only_for
from tools.text.profile import Rule

LANGS = frozenset("th tha lo lao".split())
_DIGITS = digit_table(0x0E50, 0x0ED0)
# sara am typed as nikhahit + aa, with or without a tone mark between; the tone goes before it
_AM = (
    (regex.compile("\u0e4d([\u0e48-\u0e4b]?)\u0e32"), "\\1\u0e33"),
    (regex.compile("\u0ecd([\u0ec8-\u0ecb]?)\u0eb2"), "\\1\u0eb3"),
    (regex.compile("([\u0e48-\u0e4b])\u0e4d\u0e32"), "\\1\u0e33"),
    (regex.compile("([\u0ec8-\u0ecb])\u0ecd\u0eb2"), "\\1\u0eb3"),
)
# tone and upper vowel in the order of a hasty hand; the vowel comes first
_SWAPPED = regex.compile("[\u0e31\u0e34-\u0e37\u0e48-\u0e4b]{2,}|[\u0eb1\u0eb4-\u0eb7\u0ebb\u0ec8-\u0ecb]{2,}")
_TONES = frozenset("\u0e48\u0e49\u0e4a\u0e4b\u0ec8\u0ec9\u0eca\u0ecb")


def letters(text: str) -> str:
    if text.isascii():
        return text
    text = text.replace("\u0e40\u0e40", "\u0e41").replace("\u0ec0\u0ec0", "\u0ec1")
    for pattern, to in _AM:
        text = pattern.sub(to, text)
    return tidy(_SWAPPED.sub(lambda m: "".join(sorted(m[0], key=_TONES.__contains__)), text))


def digits(text: str) -> str:
    return text.translate(_DIGITS)


RULES = (
    Rule("letters", only_for(LANGS, letters), "sara am and sara ae typed in two signs; the vowel before the tone"),
    Rule("thai digits", only_for(LANGS, digits), "Thai and Lao digits to 0-9"),
)
