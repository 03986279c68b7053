"""Rules for languages where the basic profile is not enough: what is spelt in two ways and spoken in one.

Each module has `RULES` (applied after the basic rules) and `LANGS`. A row of another language gets only the basic.
"""

from __future__ import annotations

from collections.abc import Callable

from tools.text.langs import base_lang

TextRule = Callable[[str, "str | None"], str]


def only_for(langs: frozenset[str], rule: Callable[[str], str]) -> TextRule:
    """The rule for rows of these languages, and for rows without a language."""

    def apply(text: str, lang: str | None = None) -> str:
        return rule(text) if not lang or base_lang(lang) in langs else text

    return apply


def digit_table(*zeros: int) -> dict[int, str]:
    """A translation of the ten digits that start at each code point to 0-9."""
    return {zero + n: str(n) for zero in zeros for n in range(10)}
