"""The declared compound rule: `every day` and `everyday` are one where the other side of the pair writes it so."""

from __future__ import annotations

from collections.abc import Sequence


def join_compounds(ref: Sequence[str], hyp: Sequence[str]) -> tuple[list[str], list[str]]:
    """Both sides with neighbours joined that the other side writes as one word (two or three words, left to right)."""
    return _join(ref, set(hyp) - set(ref)), _join(hyp, set(ref) - set(hyp))


def _join(words: Sequence[str], whole: set[str]) -> list[str]:
    """`words` with two or three neighbours joined where the joined form is in `whole`."""
    if not whole:
        return list(words)
    out: list[str] = []
    i = 0
    while i < len(words):
        size = next((n for n in (3, 2) if i + n <= len(words) and "".join(words[i : i + n]) in whole), 1)
        out.append("".join(words[i : i + size]))
        i += size
    return out
