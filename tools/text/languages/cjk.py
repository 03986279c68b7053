"""Chinese, Japanese, Korean: full and half width forms, look-alike marks. Numbers and traditional characters stay as
written: the first would need a reading, the second is a spelling that the customer chose.

Width folding is NFKC for the width blocks only (U+FF00-FFEF), so that ligatures, circled digits and the like stay.
"""

from __future__ import annotations

import unicodedata

import regex

from tools.text.clean import tidy
from tools.text.languages import only_for
from tools.text.profile import Rule

LANGS = frozenset("zh cmn yue wuu nan hak lzh ja jpn ko kor zho chi".split())
_WIDTH = regex.compile(r"[\uFF01-\uFF60\uFFE0-\uFFE6]|[\uFF61-\uFFDC\uFFE8-\uFFEE]+")
_LONG = regex.compile(r"(?<=[\p{Hiragana}\p{Katakana}])[−‐ｰ─～〜]")


def width(text: str) -> str:
    if text.isascii():
        return text
    return tidy(_WIDTH.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text))


def long_mark(text: str) -> str:
    return text if text.isascii() else _LONG.sub("ー", text)


# Width comes before case and punctuation: `，` and `Ａ` are a comma and a letter.
FIRST = (
    Rule("width", only_for(LANGS, width), "full-width letters, half-width kana"),
    Rule("long mark", only_for(LANGS, long_mark), "dashes after kana to the long vowel mark"),
)
RULES = ()
