"""What went wrong with one answer, beyond its error count: empty, loop, truncation, wrong script, prompt leakage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import regex

LOOP_COVER = 0.6
LOOP_REPEATS = 3
LONG_WORD = 12
LONGEST_GRAM = 100
_SPECIAL = regex.compile(r"<\|[^|>]*\|>|<spk:\d+>|</?think>|<unk>|\[UNK\]|⁇")


class Loop(NamedTuple):
    """The longest stretch of one n-gram repeated back to back: `size` units, `repeats` times."""

    gram: tuple[str, ...]
    repeats: int
    cover: float  # share of all units


def find_loop(units: Sequence[str]) -> Loop | None:
    """The repeated n-gram that covers over 60 % of the units in at least three repeats, else None (field case F27)."""
    n = len(units)
    if n < LOOP_REPEATS or len(set(units)) > 0.74 * n:
        return None
    for size in range(1, min(n // LOOP_REPEATS, LONGEST_GRAM) + 1):
        run = longest = end = 0
        for i in range(size, n):
            run = run + 1 if units[i] == units[i - size] else 0
            if run > longest:
                longest, end = run, i
        covered = longest + size if longest else 0
        if covered >= LOOP_REPEATS * size and covered > LOOP_COVER * n:
            start = end - covered + 1
            return Loop(tuple(units[start : start + size]), covered // size, covered / n)
    return None


def repeats_of(gram: Sequence[str], units: Sequence[str]) -> int:
    """How often `gram` stands back to back at most in `units`."""
    size, best = len(gram), 0
    for start in range(len(units)):
        k = 0
        while tuple(units[start + k * size : start + (k + 1) * size]) == tuple(gram):
            k += 1
        best = max(best, k)
    return best


def is_loop(ref: Sequence[str], hyp: Sequence[str], finish: str = "stop") -> bool:
    """True where the hypothesis runs away: a loop that the reference does not hold itself, inside words as well; or an
    answer that hit the token limit at more than twice the reference's length."""
    if finish == "length" and len(hyp) > 2 * max(len(ref), 1):
        return True
    return _runs_away(ref, hyp) or _word_runs_away(ref, hyp)


def _runs_away(ref: Sequence[str], hyp: Sequence[str]) -> bool:
    loop = find_loop(hyp)
    return loop is not None and loop.repeats > 2 * repeats_of(loop.gram, ref)


def _word_runs_away(ref: Sequence[str], hyp: Sequence[str]) -> bool:
    """`aaaaaaaaaaaa` or a looped phrase without spaces: a word of twelve letters or more that covers most
    of the text."""
    if not hyp or max(map(len, hyp)) < LONG_WORD:
        return False
    text = "".join(hyp)
    return any(len(word) > LOOP_COVER * len(text) and _runs_away("".join(ref), word) for word in hyp)


# --- scripts -------------------------------------------------------------------------------------------------------

_SCRIPTS = {
    name: regex.compile(rf"\p{{{name}}}")
    for name in (
        "Latin Han Hiragana Katakana Hangul Cyrillic Greek Arabic Hebrew Devanagari Bengali Gurmukhi Gujarati Oriya "
        "Tamil Telugu Kannada Malayalam Sinhala Thai Lao Khmer Myanmar Tibetan Armenian Georgian Ethiopic"
    ).split()
}
_FAMILY = {"Hiragana": "Han", "Katakana": "Han"}


@lru_cache(maxsize=65_536)
def script_of(char: str) -> str:
    """The script of one letter, or an empty string (digits, marks, signs)."""
    if char.isascii():
        return "Latin" if char.isalpha() else ""
    return next((name for name, pattern in _SCRIPTS.items() if pattern.match(char)), "")


def main_script(text: str) -> str:
    """The script of most letters of a text; Han and kana count as one. Empty where it has none."""
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    votes: dict[str, int] = {}
    for char in text:
        name = script_of(char)
        if name:
            name = _FAMILY.get(name, name)
            votes[name] = votes.get(name, 0) + 1
    return max(votes, key=lambda k: votes[k]) if votes else ""


def wrong_script(ref: str, hyp: str) -> bool:
    """True where the answer is written in another script than the reference (a translation or a wrong language)."""
    if ref.isascii() and hyp.isascii():
        return False
    expected, found = main_script(ref), main_script(hyp)
    return bool(expected and found and expected != found)


# --- leakage -------------------------------------------------------------------------------------------------------


def special_tokens(hyp: str) -> bool:
    """True where control tokens reached the text."""
    return ("<" in hyp or "[" in hyp or "⁇" in hyp) and _SPECIAL.search(hyp) is not None


def leaks_prompt(prompt: Sequence[str], ref: Sequence[str], hyp: Sequence[str], size: int = 4) -> bool:
    """True where `size` successive units of the prompt (or all of a shorter one) stand in the answer, not in the
    reference."""
    size = min(size, len(prompt))
    if not size or len(hyp) < size:
        return False
    grams = {tuple(prompt[i : i + size]) for i in range(len(prompt) - size + 1)}
    said = {tuple(ref[i : i + size]) for i in range(len(ref) - size + 1)}
    return any(tuple(hyp[i : i + size]) in grams - said for i in range(len(hyp) - size + 1))
