"""A customer's list of spellings that mean the same (`커피` = `coffee`), as a variant of a profile."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence

import regex

from tools.errors import UsageError
from tools.text.profile import Profile, Rule
from tools.text.units import has_spaceless


def with_equivalents(profile: Profile, groups: Sequence[Sequence[str]]) -> Profile:
    """The profile with one more rule: each spelling of a group becomes the group's first.

    Spellings are normalised by the profile first. Raises UsageError for an empty spelling, or for one that stands in
    two groups.
    """
    table: dict[str, str] = {}
    heads: set[str] = set()
    for group in groups:
        spellings = [profile.normalise(spelling) for spelling in group]
        if len(spellings) < 2 or not all(spellings):
            raise UsageError(f"The equivalents {list(group)!r} need two spellings that are not empty.")
        for spelling in dict.fromkeys(spellings):
            if spelling in table or spelling in heads:
                raise UsageError(f"The spelling {spelling!r} stands in two groups of equivalents: keep it in one.")
            table[spelling] = spellings[0]
        heads.add(spellings[0])
        del table[spellings[0]]
    if not table:
        return profile
    facts = json.dumps([sorted(table.items())], ensure_ascii=True)
    return dataclasses.replace(
        profile,
        name=f"{profile.name}+equivalents",
        rules=(*profile.rules, Rule("equivalents", _replacer(table), "the customer's equivalent spellings")),
        extra=profile.extra + hashlib.sha256(facts.encode()).hexdigest(),
        digest="",
    )


def _replacer(table: dict[str, str]):  # type: ignore[no-untyped-def]
    edge = r"[\p{L}\p{M}\p{N}']"
    parts = [
        regex.escape(word) if has_spaceless(word) else rf"(?<!{edge}){regex.escape(word)}(?!{edge})"
        for word in sorted(table, key=lambda w: (-len(w), w))
    ]
    pattern = regex.compile("|".join(parts))

    def apply(text: str, lang: str | None = None) -> str:
        return pattern.sub(lambda m: table[m[0]], text)

    return apply
