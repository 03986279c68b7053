"""The profiles by name, built once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tools.errors import UsageError
from tools.text import basic, clean, english
from tools.text.profile import Profile, Rule

TIDY = Rule("space", clean.tidy, "NFC; any white space to one space")
INVISIBLE = Rule("invisible", clean.drop_invisible, "soft hyphens, direction marks, control characters")
CASE = Rule("case", basic.lower, "lower case")
APOSTROPHES = Rule("apostrophes", basic.apostrophes, "one apostrophe class, quotation marks apart")
PUNCTUATION = Rule("punctuation", basic.punctuation, "punctuation and unspoken symbols")
BASIC = (TIDY, INVISIBLE, CASE, APOSTROPHES, PUNCTUATION)


def _exact() -> Profile:
    return Profile("exact", "1", (TIDY,))


def _basic() -> Profile:
    return Profile("basic", "1", BASIC)


def _english() -> Profile:
    return Profile("english", "1", (*BASIC, *english.RULES))


_BUILDERS: dict[str, Callable[[], Profile]] = {"exact": _exact, "basic": _basic, "english": _english}


def names() -> list[str]:
    """The names of the built-in profiles."""
    return list(_BUILDERS)


@lru_cache(maxsize=64)
def profile(name: str) -> Profile:
    """The built-in profile `name`. Raises UsageError for an unknown one."""
    if name not in _BUILDERS:
        raise UsageError(f"There is no text profile {name!r}: choose one of {', '.join(names())}.")
    return _BUILDERS[name]()
