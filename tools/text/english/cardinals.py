"""Pass 1 of the English numbers: words to cardinals, ordinals, decimals and decades, one number at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import regex

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
UNITS = {word: value for value, word in enumerate(_SMALL)}
TENS = {w: 10 * v for v, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
ORDINALS = {
    word: value
    for value, word in enumerate(
        """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
        fifteenth sixteenth seventeenth eighteenth nineteenth""".split(),
        1,
    )
}
TENTHS = {word[:-1] + "ieth": value for word, value in TENS.items()}
DECADES = {word[:-1] + "ies": value for word, value in TENS.items()}
_BIG = {"hundred": 100, **SCALES}
_BIGTHS = {word + "th": value for word, value in _BIG.items()}
_REPEAT = {"double": 2, "triple": 3}
OH = ("oh", "o")
TRIGGERS = frozenset([*UNITS, *TENS, *_BIG, *ORDINALS, *TENTHS, *DECADES, *_BIGTHS, *_REPEAT])
# What a word is in a cardinal, and what may follow what. "second" never ends a cardinal: it is a time more often.
_KIND: dict[str, tuple[str, int]] = {
    **{word: ("zero" if v == 0 else "unit" if v < 10 else "teen", v) for word, v in UNITS.items()},
    **{word: ("ten", v) for word, v in TENS.items()},
    **{word: ("ordinal", v) for word, v in (ORDINALS | TENTHS).items() if v != 2},
    **{word: ("scale", v) for word, v in SCALES.items()},
    "hundred": ("hundred", 100),
    "and": ("and", 0),
    "a": ("a", 0),
}
_NONE = ("", 0)
_RANKED = frozenset(("unit", "teen", "ten", "hundred"))  # what `hundredth`, `thousandth` can follow
_SMALLER = frozenset(("unit", "teen", "ten"))
_AFTER = {
    "start": _SMALLER | {"a", "zero", "hundred", "scale"},
    "a": frozenset(("hundred", "scale")),
    "zero": frozenset[str](),
    "unit": frozenset(("hundred", "scale")),
    "teen": frozenset(("hundred", "scale")),
    "ten": frozenset(("unit", "hundred", "scale", "ordinal")),
    "hundred": _SMALLER | {"scale", "and", "ordinal"},
    "scale": _SMALLER | {"and", "ordinal"},
    "and": _SMALLER | {"ordinal"},
}
DIGIT = re.compile("[0-9]")
_DIGITS = frozenset("0123456789")
_GROUPED = regex.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+|st|nd|rd|th)?")
_PLAIN = regex.compile(r"\d+(?:\.\d+)?")
_CLOCK = regex.compile(r"(\d{1,2}):(\d\d)")


@dataclass(slots=True)
class Item:
    """One token of the rewritten text. `value` is set for numbers; `spoken` where number words made it; `digit` where
    it is a single digit, so that runs can join."""

    text: str
    value: int | None = None
    spoken: bool = False
    digit: bool = False
    repeated: bool = False


Token = str | Item  # a word that stays, or a number


def read_numbers(words: list[str]) -> list[Token]:
    """The tokens: words as they are, numbers read."""
    out: list[Token] = []
    done = 0
    for i in [i for i, word in enumerate(words) if word in TRIGGERS or word[0] in _DIGITS]:
        if i < done:
            continue
        start = i - 1 if i > done and words[i - 1] == "a" and words[i] in _BIG else i
        out += words[done:start]
        done = _number(words, start, out)
    return out + words[done:]


def _number(words: list[str], i: int, out: list[Token]) -> int:
    """Read the number that starts at word i onto `out`; return the index after it."""
    word = words[i]
    if word in _REPEAT:
        follows = words[i + 1] if i + 1 < len(words) else ""
        digit = "0" if follows in OH or follows == "zero" else str(UNITS.get(follows, follows))
        if len(digit) == 1 and digit.isdigit():
            out.append(Item(digit * _REPEAT[word], int(digit), digit=True, repeated=True))
            return i + 2
        out.append(word)
        return i + 1
    if word in ORDINALS or word in TENTHS or word in _BIGTHS:
        out.append(Item(_ordinal(_rank(word))))
        return i + 1
    if word in DECADES:
        out.append(Item(f"{DECADES[word]}s", DECADES[word], spoken=True))
        return i + 1
    if word[0] in _DIGITS:
        return _written(words, i, out)
    return _spoken(words, i, out)


def _written(words: list[str], i: int, out: list[Token]) -> int:
    word = words[i]
    clock = _CLOCK.fullmatch(word)
    if clock:
        out.append(Item(clock[1]))
        if clock[2] != "00":
            out.append(Item(clock[2]))
        return i + 1
    if _GROUPED.fullmatch(word):
        word = word.replace(",", "")
    if _PLAIN.fullmatch(word):
        i, word = _fraction(words, i + 1, word)
        if i < len(words) and words[i] in _BIG:
            out.append(Item(f"{(Decimal(word) * _BIG[words[i]]).normalize():f}"))
            return i + 1
        out.append(Item(word, int(word) if word.isdecimal() else None, digit=len(word) == 1))
        return i
    out.append(Item(word))
    return i + 1


def _spoken(words: list[str], i: int, out: list[Token]) -> int:
    """A cardinal in words, with an ordinal ending where there is one."""
    start, end, total, current, last, limit = i, len(words), 0, 0, "start", 10**15
    while i < end:
        step, value = _KIND.get(words[i], _NONE)
        if step not in _AFTER[last] or not _fits(words, i, step, value, last, current, limit):
            break
        if step == "ordinal":
            out.append(Item(_ordinal(total + current + value)))
            return i + 1
        if step == "scale":
            total, current, limit = total + (current or 1) * value, 0, value
        elif step == "hundred":
            current = (current or 1) * 100
        else:
            current += value
        last, i = step, i + 1
    if i < end and words[i] in _BIGTHS and last in _RANKED and _BIGTHS[words[i]] < limit:
        base = _BIGTHS[words[i]]
        if base > 100 or current < 100:
            out.append(Item(_ordinal(total + current * base)))
            return i + 1
    value = total + current
    i, text = _fraction(words, i, str(value))
    if text != str(value):
        if i < len(words) and words[i] in SCALES:
            i, text = i + 1, f"{(Decimal(text) * SCALES[words[i]]).normalize():f}"
        out.append(Item(text))
        return i
    out.append(Item(str(value), value, spoken=True, digit=i - start == 1 and value < 10))
    return i


def _fits(words: list[str], i: int, step: str, value: int, last: str, current: int, limit: int) -> bool:
    """Whether word i, allowed after `last`, goes on with the cardinal."""
    if step == "scale":
        return value < limit
    if step == "hundred":
        return current < 100
    follows = words[i + 1] if i + 1 < len(words) else ""
    if step == "and":
        kind, more = _KIND.get(follows, _NONE)
        return kind in ("unit", "teen", "ten") or (kind == "ordinal" and more < 100)
    if step == "ordinal":
        return value < (10 if last == "ten" else 100)
    return not (follows == "hundred" and current >= 100)


def _fraction(words: list[str], i: int, whole: str) -> tuple[int, str]:
    """Read `point one four`, `point 14`, `point twenty five`, `and a half` from word i on, onto a whole number: (next
    word, text)."""
    if words[i : i + 3] == ["and", "a", "half"] and whole.isdecimal():
        return i + 3, f"{whole}.5"
    if i + 1 >= len(words) or words[i] != "point" or not whole.isdecimal():
        return i, whole
    tail, n = "", i + 1
    while n < len(words):
        digit = "0" if words[n] in OH else str(UNITS.get(words[n], words[n]))
        if len(digit) != 1 or not digit.isdecimal():
            break
        tail, n = tail + digit, n + 1
    if tail:
        return n, f"{whole}.{tail}"
    word = words[n]
    if word.isdecimal():
        return n + 1, f"{whole}.{word}"
    if word in TENS or word in UNITS:
        value = TENS.get(word, UNITS.get(word, 0))
        unit = UNITS.get(words[n + 1], 0) if word in TENS and n + 1 < len(words) else 0
        return (n + 2, f"{whole}.{value + unit}") if 0 < unit < 10 else (n + 1, f"{whole}.{value}")
    return i, whole


def _rank(word: str) -> int | None:
    """The value of an ordinal word."""
    return ORDINALS.get(word) or TENTHS.get(word) or _BIGTHS.get(word)


def _ordinal(value: int | None) -> str:
    value = value or 0
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"
