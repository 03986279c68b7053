"""Whether English rules apply to a row."""

from __future__ import annotations

from functools import lru_cache

from tools.text.langs import base_lang


@lru_cache(maxsize=256)
def is_english(lang: str | None) -> bool:
    """True for English and for an unknown language."""
    return not lang or base_lang(lang) == "en"
