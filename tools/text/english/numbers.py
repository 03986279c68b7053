"""English number words to digits: cardinals, decimals, years, times, ordinals, decades, digit runs.

Canonical forms: `thirty six` 36, `one hundred and five` 105, `1,250` 1250, `five million` and `5 million` 5000000,
`nineteen eighty four` 1984, `ten thirty` and `10:30` "10 30", `twenty first` 21st, `nineteen eighties` 1980s,
`three point five` 3.5, `double oh seven` 007; three or more single digits in a row become one number.

Known damage (each in the tests): "one two three go" is "123 go"; "twenty twenty" is 2020, even of eyesight; pronouns
too ("no one" is "no 1"); "second" is always "2nd" and never joins a ten ("thirty second" is "30 2nd").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import regex

from tools.text.english.guard import is_english

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
_OH = ("oh", "o")
_TRIGGERS = frozenset([*UNITS, *TENS, *_BIG, *ORDINALS, *TENTHS, *DECADES, *_BIGTHS, *_REPEAT])
_DIGIT = re.compile("[0-9]")
_DIGITS = frozenset("0123456789")
_GROUPED = regex.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
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


def numbers(text: str, lang: str | None = None) -> str:
    """See the module; expects the basic rules' output. Applied until nothing changes, so that it is idempotent."""
    if not is_english(lang):
        return text
    for _ in range(4):
        words = text.split()
        if _TRIGGERS.isdisjoint(words) and not _DIGIT.search(text):
            return text
        items = _items(words)
        near = _near(items)
        if near:
            items = _combine(items)
        new = " ".join([item if isinstance(item, str) else item.text for item in items])
        if new == text or not near:
            return new
        text = new
    return text


# --- pass 1: words to numbers --------------------------------------------------------------------------------------


def _items(words: list[str]) -> list[Token]:
    """The tokens: words as they are, numbers read."""
    out: list[Token] = []
    done = 0
    for i in [i for i, word in enumerate(words) if word in _TRIGGERS or word[0] in _DIGITS]:
        if i < done:
            continue
        start = i - 1 if i > done and words[i - 1] == "a" and words[i] in _BIG else i
        out += words[done:start]
        done = _number(words, start, out)
    return out + words[done:]


def _near(items: list[Token]) -> bool:
    """True where two numbers stand side by side, or with an `oh` between: only then do neighbours matter."""
    last = -9
    for i, item in enumerate(items):
        if isinstance(item, Item):
            if i - last == 1 or (i - last == 2 and items[i - 1] in _OH):
                return True
            last = i
    return False


def _number(words: list[str], i: int, out: list[Token]) -> int:
    """Read the number that starts at word i onto `out`; return the index after it."""
    word = words[i]
    if word in _REPEAT:
        follows = words[i + 1] if i + 1 < len(words) else ""
        digit = "0" if follows in _OH or follows == "zero" else str(UNITS.get(follows, follows))
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
    start, total, current, last = i, 0, 0, "start"
    limit = 10**15
    while i < len(words):
        word = words[i]
        step = _step(word, last, current, limit)
        if step == "and":
            after = words[i + 1] if i + 1 < len(words) else ""
            if (after not in UNITS and after not in TENS and _rank(after) is None) or after == "zero":
                break
        elif step == "scale":
            limit = SCALES[word]
            total += (current or 1) * limit
            current = 0
        elif step == "hundred":
            current = (current or 1) * 100
        elif step in ("unit", "teen", "ten"):
            current += UNITS.get(word, TENS.get(word, 0))
        elif step == "ordinal":
            out.append(Item(_ordinal(total + current + (_rank(word) or 0))))
            return i + 1
        elif not step:
            break
        last, i = step, i + 1
    if last == "and":
        i -= 1
    value = total + current
    i, text = _fraction(words, i, str(value))
    if text != str(value):
        if i < len(words) and words[i] in SCALES:
            i, text = i + 1, f"{(Decimal(text) * SCALES[words[i]]).normalize():f}"
        out.append(Item(text))
        return i
    single = i - start == 1 and value < 10
    out.append(Item(str(value), value, spoken=True, digit=single))
    return i


def _fraction(words: list[str], i: int, whole: str) -> tuple[int, str]:
    """Read `point one four`, `point 14`, `point twenty five` from word i on, onto a whole number: (next word, text)."""
    if i + 1 >= len(words) or words[i] != "point" or not whole.isdecimal():
        return i, whole
    tail, n = "", i + 1
    while n < len(words):
        digit = "0" if words[n] in _OH else str(UNITS.get(words[n], words[n]))
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


def _step(word: str, last: str, current: int, limit: int) -> str:
    """What `word` does to a cardinal whose last step was `last`; empty where the cardinal ends before it."""
    opens = last in ("start", "hundred", "scale", "and", "a")
    if word == "a":
        return "a" if last == "start" else ""
    if word in UNITS:
        value = UNITS[word]
        if value == 0:
            return "unit" if last == "start" else ""
        if value < 10:
            return "unit" if opens or last == "ten" else ""
        return "teen" if opens else ""
    if word in TENS:
        return "ten" if opens else ""
    if word == "hundred":
        return "hundred" if last in ("start", "a", "unit", "teen", "ten") and current < 100 else ""
    if word in SCALES:
        return "scale" if last not in ("scale", "and") and SCALES[word] < limit else ""
    if word == "and":
        return "and" if last in ("hundred", "scale") else ""
    rank = _rank(word)
    if rank is not None and rank != 2:
        below = (rank < 10 and last == "ten") or (rank < 100 and last in ("hundred", "scale", "and"))
        return "ordinal" if below else ""
    return ""


def _rank(word: str) -> int | None:
    """The value of an ordinal word."""
    return ORDINALS.get(word) or TENTHS.get(word) or _BIGTHS.get(word)


def _ordinal(value: int | None) -> str:
    value = value or 0
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


# --- pass 2: neighbours --------------------------------------------------------------------------------------------


def _combine(items: list[Token]) -> list[Token]:
    out: list[Token] = []
    i = 0
    while i < len(items):
        item, used = items[i], 0
        made: list[Token] = []
        if isinstance(item, Item):
            for rule in (_run, _pair):
                made, used = rule(item, items, i)
                if used:
                    break
        out += made if used else [item]
        i += used or 1
    return out


def _length(items: list[Token], i: int) -> int:
    """How many single digits stand from i on, an `oh` among them."""
    n = i
    while n < len(items):
        item = items[n]
        if not (item in _OH if isinstance(item, str) else item.digit):
            break
        n += 1
    return n - i


def _run(first: Item, items: list[Token], i: int) -> tuple[list[Token], int]:
    """Three single digits or more, or a doubled digit with its neighbours, become one number. An `oh` may be inside."""
    if not first.digit:
        return [], 0
    n = _length(items, i)
    while n and items[i + n - 1] in _OH:
        n -= 1
    run = items[i : i + n]
    if n >= 3 or any(isinstance(item, Item) and item.repeated for item in run):
        return [Item("".join("0" if isinstance(item, str) else item.text for item in run))], n
    return [], 0


def _pair(first: Item, items: list[Token], i: int) -> tuple[list[Token], int]:
    """Years and times in spoken two-digit parts."""
    v = first.value
    if not first.spoken or v is None or i + 1 >= len(items):
        return [], 0
    second = items[i + 1]
    if isinstance(second, str):
        third = items[i + 2] if i + 2 < len(items) else ""
        if second not in _OH or isinstance(third, str) or not (third.spoken and third.digit) or not 1 <= v <= 20:
            return [], 0
        return ([Item(f"{v}0{third.text}")] if v >= 13 else [Item(str(v)), Item(f"0{third.text}")]), 3
    if not second.spoken or second.value is None or not 10 <= second.value <= 99:
        return [], 0
    if 13 <= v <= 20 or (10 <= v <= 12 and second.value >= 60):
        return [Item(f"{v}{second.text}")], 2
    return [], 0
