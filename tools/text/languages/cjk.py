"""Chinese, Japanese, Korean: look-alike marks (width forms are folded by the basic rules). Numbers and traditional
characters stay as written: the first would need a reading, the second is a spelling that the customer chose.
"""

from __future__ import annotations

import regex

from tools.text.languages import only_for
from tools.text.profile import Rule

LANGS = frozenset("zh cmn yue wuu nan hak lzh ja jpn ko kor zho chi".split())
_LONG = regex.compile(r"(?<=[\p{Hiragana}\p{Katakana}])[−‐ー─~〜]")


def long_mark(text: str) -> str:
    return text if text.isascii() else _LONG.sub("ー", text)


# Before punctuation, which would make a space of the dash.
FIRST = (Rule("long mark", only_for(LANGS, long_mark), "dashes after kana to the long vowel mark"),)
RULES = ()
