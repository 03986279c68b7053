"""What counts as one unit of a text: a word, a character, or a mix of both for code switching.

word   white-space separated words.
mixed  scripts written without spaces by code point, all else by word. A text without such a script has the same mixed
       units as words; a text wholly in such a script has the same as characters (the metric is then called cer).
auto   for rows without a language: word where the reference has no script written without spaces, else mixed.
char   code points without spaces, whatever the script.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import regex

from tools.text.langs import code_of

UnitKind = Literal["word", "char", "mixed", "auto"]

_CONTINUA = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Yi}\p{Tai_Tham}\p{New_Tai_Lue}"
    r"\p{Tai_Le}\p{Tai_Viet}\p{Balinese}\p{Javanese}"
)
_HAS_CONTINUA = regex.compile(rf"[{_CONTINUA}]")
_MIXED = regex.compile(rf"[{_CONTINUA}]|[^\s{_CONTINUA}]+")
_OTHER = regex.compile(rf"[^\s{_CONTINUA}]")

CHAR_LANGS = frozenset("zh cmn yue wuu nan ja th lo km my".split())
_REGIONS = frozenset("tw cn hk sg mo jp la kh mm".split())
_METRIC = {"word": "wer", "char": "cer", "mixed": "mer"}


@lru_cache(maxsize=1024)
def unit_of(lang: str) -> UnitKind:
    """`zh`, `zho`, `Chinese`, `zh-en`, `en+zh` -> mixed, `en` -> word."""
    first, *others = regex.split(r"[-_+/,& ]+", lang)
    parts = [code_of(part) for part in (first, *(p for p in others if p.islower() and p not in _REGIONS))]
    return "mixed" if any(part in CHAR_LANGS for part in parts) else "word"


def resolve(kind: UnitKind, reference: str) -> UnitKind:
    """The unit of a pair, from its normalised reference; the hypothesis is cut in the same unit."""
    if kind != "auto":
        return kind
    return "mixed" if has_spaceless(reference) else "word"


def has_spaceless(text: str) -> bool:
    """True where a script written without spaces is in the text."""
    return not text.isascii() and _HAS_CONTINUA.search(text) is not None


def all_spaceless(text: str) -> bool:
    """True where nothing else is in the text."""
    return not _OTHER.search(text)


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
