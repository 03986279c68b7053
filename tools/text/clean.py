"""What every profile does first: Unicode form, odd spaces, invisible characters. No letter or mark is touched here.

`tidy` is the whole of the profile `exact`; `drop_invisible` comes next in all others.
"""

from __future__ import annotations

import unicodedata

import regex

# Zero-width space, word joiner and byte order mark carry no sound and do not separate words.
_NO_SPACE = dict.fromkeys((0x200B, 0x2060, 0xFEFF))

# Soft hyphen, direction marks, emoji variation selectors and control characters: invisible, unspoken.
_INVISIBLE = regex.compile(
    r"[\u00AD\u034F\u061C\u180E\u200E\u200F\u202A-\u202E\u2061-\u2064\u2066-\u206F\uFE0E\uFE0F\uFDD0-\uFDEF\p{Cc}]"
)
# A joiner means something between two letters or marks (Persian, Indic) and behind a virama; elsewhere it is left over.
_STRAY_JOINER = regex.compile(r"(?<![\p{L}\p{M}])[\u200C\u200D]+|(?<!\p{M})[\u200C\u200D]+(?![\p{L}\p{M}])")


def spaces(text: str) -> str:
    """White space of any kind (no-break, ideographic, tab, CR, U+2028) to one plain space; none at the ends."""
    return " ".join(text.split())


def nfc(text: str) -> str:
    """Unicode form NFC; an ASCII text is in it already."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def tidy(text: str, lang: str | None = None) -> str:
    """NFC and white space: the profile `exact`. Idempotent."""
    if text.isascii():
        return " ".join(text.split())
    return unicodedata.normalize("NFC", " ".join(text.translate(_NO_SPACE).split()))


def drop_invisible(text: str, lang: str | None = None) -> str:
    """Drop invisible characters and joiners that join nothing; expects a text that `tidy` has seen."""
    if text.isascii() and text.isprintable():
        return text
    return tidy(_STRAY_JOINER.sub("", _INVISIBLE.sub("", text)))
