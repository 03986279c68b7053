"""The profiles by name: built-in ones, variants of them, and a customer's own normaliser."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tools.errors import UsageError
from tools.text import basic, clean, custom, english
from tools.text.languages import arabic, armenian, cjk, indic, mexico, thai, vietnamese
from tools.text.profile import Profile, Rule

TIDY = Rule("space", clean.tidy, "NFC; any white space to one space")
INVISIBLE = Rule("invisible", clean.drop_invisible, "soft hyphens, direction marks, control characters")
CASE = Rule("case", basic.lower, "lower case")
APOSTROPHES = Rule("apostrophes", basic.apostrophes, "one apostrophe class, quotation marks apart")
PUNCTUATION = Rule("punctuation", basic.punctuation, "punctuation and unspoken symbols")
FORMS = Rule("forms", clean.forms, "ligatures, presentation forms, radicals, full and half width")
FIRST = (TIDY, FORMS, INVISIBLE)
BASIC = (*FIRST, CASE, APOSTROPHES, PUNCTUATION)


def _english() -> Profile:
    rules = (*FIRST, CASE, english.WRITTEN, english.APOSTROPHES, english.DOTS, PUNCTUATION, *english.RULES)
    return Profile("english", "2", rules)


def _mexico() -> Profile:
    rules = (*FIRST, *mexico.FIRST, CASE, mexico.APOSTROPHES, PUNCTUATION, *mexico.RULES)
    return Profile("mexico", "2", rules)


def _cjk() -> Profile:
    return Profile("cjk", "2", (*FIRST, *cjk.FIRST, CASE, APOSTROPHES, PUNCTUATION))


def _with(name: str, rules: tuple[Rule, ...]) -> Callable[[], Profile]:
    def build() -> Profile:
        return Profile(name, "2", (*BASIC, *rules))

    return build


def _named(rule: Rule) -> Rule:
    """The rule for rows whose language is known."""

    def apply(text: str, lang: str | None = None) -> str:
        return rule.apply(text, lang) if lang else text

    return Rule(rule.name, apply, rule.does)


def _multilingual() -> Profile:
    first = tuple(map(_named, cjk.FIRST))
    later = (arabic, indic, thai, vietnamese, armenian, english)
    rules = [_named(rule) for module in later for rule in module.RULES]
    marks = (_named(english.WRITTEN), APOSTROPHES, _named(english.DOTS), PUNCTUATION)
    return Profile("multilingual", "2", (*FIRST, *first, CASE, *marks, *rules))


_BUILDERS: dict[str, Callable[[], Profile]] = {
    "exact": lambda: Profile("exact", "1", (TIDY,), unknown_unit="word"),
    "basic": lambda: Profile("basic", "2", BASIC),
    "english": _english,
    "arabic": _with("arabic", arabic.RULES),
    "indic": _with("indic", indic.RULES),
    "cjk": _cjk,
    "thai": _with("thai", thai.RULES),
    "vietnamese": _with("vietnamese", vietnamese.RULES),
    "armenian": _with("armenian", armenian.RULES),
    "mexico": _mexico,
    "multilingual": _multilingual,
}
_ALIASES = {
    "hindi": "indic",
    "chinese": "cjk",
    "japanese": "cjk",
    "korean": "cjk",
    "mexican": "mexico",
    "lao": "thai",
    "en": "english",
    "ar": "arabic",
    "hi": "indic",
    "zh": "cjk",
    "ja": "cjk",
    "ko": "cjk",
    "th": "thai",
    "vi": "vietnamese",
    "hy": "armenian",
}


def names() -> list[str]:
    """The names of the built-in profiles."""
    return list(_BUILDERS)


@lru_cache(maxsize=64)
def profile(name: str) -> Profile:
    """The profile `name`.

    A built-in one (`basic`; `hindi` or `hi` mean `indic`), a built-in one with the compound rule (`basic+compounds`),
    or a customer's normaliser: `command: PROGRAM ARGUMENTS`, `module:function`, `path/to/file.py:function`.
    Raises UsageError for an unknown name or a normaliser that cannot be used.
    """
    if name.startswith("command:"):
        return custom.from_command(name)
    if ":" in name:
        return custom.from_callable(name)
    base, _, variant = name.partition("+")
    base = _ALIASES.get(base, base)
    if base not in _BUILDERS or variant not in ("", "compounds"):
        raise UsageError(f"There is no text profile {name!r}: choose one of {', '.join(names())}.")
    return _BUILDERS[base]().with_compounds() if variant else _BUILDERS[base]()
