"""English number words to digits: cardinals, decimals, years, times, ordinals, decades, digit runs.

Canonical forms: `thirty six` 36, `one hundred and five` 105, `1,250` 1250, `five million` and `5 million` 5000000,
`nineteen eighty four` 1984, `ten thirty` and `10:30` "10 30", `twenty first` 21st, `nineteen eighties` 1980s,
`three point five` 3.5, `double oh seven` 007; three or more single digits in a row become one number.

Known damage (each in the tests): "one two three go" is "123 go"; "twenty twenty" is 2020, even of eyesight; pronouns
too ("no one" is "no 1"); "second" is always "2nd" and never joins a ten ("thirty second" is "30 2nd").
"""

from __future__ import annotations

from tools.text.english.cardinals import DIGIT, OH, TRIGGERS, Item, Token, read_numbers
from tools.text.english.guard import is_english

_BETWEEN = (*OH, "point")


def numbers(text: str, lang: str | None = None) -> str:
    """See the module; expects the basic rules' output. Applied until nothing changes, so that it is idempotent."""
    if not is_english(lang):
        return text
    for _ in range(4):
        words = text.split()
        if TRIGGERS.isdisjoint(words) and not DIGIT.search(text):
            return text
        items = read_numbers(words)
        near = _near(items)
        if near:
            items = _combine(items)
        new = " ".join([item if isinstance(item, str) else item.text for item in items])
        if new == text or not near:
            return new
        text = new
    return text


def _near(items: list[Token]) -> bool:
    """True where a number has a number, an `oh` or a `point` behind it: only then do neighbours matter."""
    number = False
    for item in items:
        if isinstance(item, Item):
            if number:
                return True
            number = True
        elif number:
            if item in _BETWEEN:
                return True
            number = False
    return False


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
        if not (item in OH if isinstance(item, str) else item.digit):
            break
        n += 1
    return n - i


def _run(first: Item, items: list[Token], i: int) -> tuple[list[Token], int]:
    """Three single digits or more, or a doubled digit with its neighbours, become one number. An `oh` may be inside."""
    if not first.digit:
        return [], 0
    n = _length(items, i)
    while n and items[i + n - 1] in OH:
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
        if second not in OH or isinstance(third, str) or not (third.spoken and third.digit) or not 1 <= v <= 20:
            return [], 0
        return ([Item(f"{v}0{third.text}")] if v >= 13 else [Item(str(v)), Item(f"0{third.text}")]), 3
    if not second.spoken or second.value is None or not 10 <= second.value <= 99:
        return [], 0
    if 13 <= v <= 20 or (10 <= v <= 12 and second.value >= 60):
        return [Item(f"{v}{second.text}")], 2
    return [], 0
