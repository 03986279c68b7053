"""Vietnamese: old and new place of the tone mark (hòa = hoà, thúy = thuý), look-alikes of d with stroke. Tones stay."""

from __future__ import annotations

import unicodedata

import regex

from tools.text.clean import tidy
from tools.text.languages import only_for
from tools.text.profile import Rule

LANGS = frozenset(("vi", "vie"))
_TONES = "\u0300\u0301\u0303\u0309\u0323"
# In open syllables on oa, oe, uy the tone stands on the last vowel.
_OLD = regex.compile(rf"([ou])([{_TONES}])([aey])(?![\p{{L}}\p{{M}}])")
_STROKE = str.maketrans("ðɖ", "đđ")
_OPEN = ("oa", "oe", "uy")


def tone_place(text: str) -> str:
    if text.isascii():
        return text
    text = _OLD.sub(
        lambda m: f"{m[1]}{m[3]}{m[2]}" if m[1] + m[3] in _OPEN else m[0], unicodedata.normalize("NFD", text)
    )
    return unicodedata.normalize("NFC", text)


def stroke(text: str) -> str:
    return tidy(text.translate(_STROKE))


RULES = (
    Rule("tone place", only_for(LANGS, tone_place), "the tone on the last vowel of oa, oe, uy"),
    Rule("d with stroke", only_for(LANGS, stroke), "look-alikes of d with stroke"),
)
