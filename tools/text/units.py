"""What counts as one unit of a text: a word, a character, or a mix of both for code switching.

word   white-space separated words.
char   code points without spaces (languages written without spaces: their WER says nothing).
mixed  scripts written without spaces by character (extended grapheme, so a Thai vowel stays with its consonant), all
       else by word. A text without such a script has the same mixed units as words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import regex

from tools.text.basic import base_lang

UnitKind = Literal["word", "char", "mixed", "auto"]

_CONTINUA = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Yi}\p{Tai_Tham}\p{New_Tai_Lue}"
    r"\p{Tai_Le}\p{Tai_Viet}\p{Balinese}\p{Javanese}"
)
_HAS_CONTINUA = regex.compile(rf"[{_CONTINUA}]")
_MIXED = regex.compile(rf"(?=[{_CONTINUA}])\X|[^\s{_CONTINUA}]+")

CHAR_LANGS = frozenset("zh cmn yue wuu nan ja th lo km my bo dz".split())
_REGIONS = frozenset("tw cn hk sg mo jp la kh mm bt".split())
_METRIC = {"word": "wer", "char": "cer", "mixed": "mer"}


@lru_cache(maxsize=1024)
def unit_of(lang: str | None) -> UnitKind:
    """`zh` -> char, `zh-en` or `en+zh` (two languages) -> mixed, `en` -> word, unknown -> auto.

    auto: word where the reference has no script written without spaces, else mixed.
    """
    if not lang:
        return "auto"
    parts = [p for p in regex.split(r"[-_+/,& ]+", lang.lower()) if len(p) in (2, 3) and p not in _REGIONS]
    if len(set(parts)) > 1 and any(p in CHAR_LANGS for p in parts):
        return "mixed"
    return "char" if base_lang(lang) in CHAR_LANGS else "word"


def resolve(kind: UnitKind, reference: str) -> UnitKind:
    """The unit of a pair, from its normalised reference; the hypothesis is cut in the same unit."""
    if kind != "auto":
        return kind
    return "mixed" if not reference.isascii() and _HAS_CONTINUA.search(reference) else "word"


def split(text: str, kind: UnitKind) -> list[str]:
    """Units of a normalised text. `auto` cuts like `mixed`."""
    if kind == "word" or (text.isascii() and kind != "char"):
        return text.split()
    if kind == "char":
        return list("".join(text.split()))
    return _MIXED.findall(text)


def metric_of(kind: UnitKind) -> str:
    """wer, cer or mer."""
    return _METRIC[kind]
