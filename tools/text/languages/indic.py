"""Hindi and its kin (Brahmic scripts of India): joiners, nukta forms, anusvara spelling, chillu letters, digits.

Vowel signs, virama, nukta, anusvara, chandrabindu and visarga all stay. A nasal consonant with virama before a
consonant of its own row is written as anusvara (hindi हिन्दी = हिंदी): the same sound in two spellings.
"""

from __future__ import annotations

import regex

from tools.text.clean import tidy
from tools.text.languages import digit_table, only_for
from tools.text.profile import Rule

LANGS = frozenset(
    "hi hin mr mar ne nep sa san kok mai bho doi bn ben as asm gu guj pa pan or ori ta tam te tel kn kan ml "
    "mal si sin".split()
)
_ZEROS = (0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66)
_DIGITS = digit_table(*_ZEROS)
# Malayalam chillu: consonant + virama + joiner is the older spelling of one letter; Bengali khanda ta likewise.
_CHILLU = {
    "\u0d23\u0d4d\u200d": "\u0d7a",
    "\u0d28\u0d4d\u200d": "\u0d7b",
    "\u0d30\u0d4d\u200d": "\u0d7c",
    "\u0d32\u0d4d\u200d": "\u0d7d",
    "\u0d33\u0d4d\u200d": "\u0d7e",
    "\u0d15\u0d4d\u200d": "\u0d7f",
    "\u09a4\u09cd\u200d": "\u09ce",
}
# An independent vowel typed as another one with a vowel sign: equal to the eye, never composed by Unicode.
_VOWELS = dict(pair.split("=") for pair in "अा=आ अो=ओ अौ=औ अॉ=ऑ एे=ऐ অা=আ અા=આ અો=ઓ અૌ=ઔ ਅਾ=ਆ ଅା=ଆ".split())
_TYPED = regex.compile("|".join(_VOWELS))
_JOINED = regex.compile("|".join(_CHILLU))
_JOINERS = regex.compile("[\u200c\u200d]")


def _row(base: int) -> list[tuple[str, str]]:
    """(nasal + virama, its row of stops) of the script block at `base`: velar, palatal, retroflex, dental, labial."""
    virama = chr(base + 0x4D)
    nasals = (0x19, 0x1E, 0x23, 0x28, 0x2E)
    starts = (0x15, 0x1A, 0x1F, 0x24, 0x2A)
    return [
        (chr(base + nasal) + virama, "".join(chr(base + start + k) for k in range(4)))
        for nasal, start in zip(nasals, starts)
    ]


_NASALS = [
    (regex.compile(f"{nasal}(?=[{stops}])"), chr(base + 0x02))
    for base in (0x0900, 0x0A80, 0x0C00, 0x0C80)
    for nasal, stops in _row(base)
]


def joiners(text: str) -> str:
    if text.isascii():
        return text
    return tidy(_JOINERS.sub("", _JOINED.sub(lambda m: _CHILLU[m[0]], text)))


def vowels(text: str) -> str:
    return text if text.isascii() else _TYPED.sub(lambda m: _VOWELS[m[0]], text)


def nasals(text: str) -> str:
    if text.isascii():
        return text
    for pattern, anusvara in _NASALS:
        text = pattern.sub(anusvara, text)
    return tidy(text)


def digits(text: str) -> str:
    return text.translate(_DIGITS)


RULES = (
    Rule("joiners", only_for(LANGS, joiners), "chillu and khanda ta as letters; joiners removed"),
    Rule("vowels", only_for(LANGS, vowels), "independent vowels typed in two signs"),
    Rule("nasals", only_for(LANGS, nasals), "nasal with virama before its own row as anusvara"),
    Rule("indic digits", only_for(LANGS, digits), "Indic digits to 0-9"),
)
