"""Armenian: the ligature `և`, spelt `եւ` as well and `Եվ` at the head of a sentence."""

from __future__ import annotations

from tools.text.languages import only_for
from tools.text.profile import Rule

LANGS = frozenset("hy hye hyw".split())


def ligature(text: str) -> str:
    return text.replace("և", "եվ").replace("եւ", "եվ")


RULES = (Rule("ligature", only_for(LANGS, ligature), "և, եւ and եվ are one"),)
