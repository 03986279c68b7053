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

# Forms that a font, a keyboard or a PDF makes of ordinary letters, equal to the eye: ligatures, digraphs in one code
# point, Arabic presentation forms, Kangxi radicals, full and half width.
_FORMS = regex.compile(
    "[\u0132\u0133\u013f\u0140\u0149\u017f\u01c4-\u01cc\u01f1-\u01f3\u00b5\u2e9f\u2ef3\u2f00-\u2fd5\ufb00-\ufb06"
    "\ufb13-\ufb17\ufb20-\ufb29\ufb4f-\ufdfb\ufe70-\ufefc\uff01-\uffee]"
)


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


def forms(text: str, lang: str | None = None) -> str:
    """Presentation forms to the letters they show (NFKC for their blocks only: raised digits, circled ones, fractions
    and Roman numerals stay). Forms that would bring a space of their own stay as well."""
    if text.isascii() or not _FORMS.search(text):
        return text
    return tidy(_FORMS.sub(_shown, text))


def _shown(match: regex.Match[str]) -> str:
    letters = unicodedata.normalize("NFKC", match[0])
    return match[0] if " " in letters else letters


def drop_invisible(text: str, lang: str | None = None) -> str:
    """Drop invisible characters and joiners that join nothing; expects a text that `tidy` has seen."""
    if text.isascii() and text.isprintable():
        return text
    return tidy(_STRAY_JOINER.sub("", _INVISIBLE.sub("", text)))
