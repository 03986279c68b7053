"""A profile: named rules in order, with a version and a digest; the same one for reward, mining and evaluation."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tools.text.compounds import join_compounds
from tools.text.probes import PROBES
from tools.text.units import UnitKind, all_spaceless, resolve, split, unit_of

RuleFunction = Callable[[str, "str | None"], str]


@dataclass(frozen=True)
class Rule:
    """One step of a profile. `apply(text, lang) -> text`."""

    name: str
    apply: RuleFunction
    does: str = ""


@dataclass(frozen=True)
class Profile:
    """A normaliser: `normalise` is deterministic, and idempotent for built-in profiles; `units` cuts what it gives.

    `unit` None means by the row's language, `unknown_unit` where it has none. `compounds` joins words that the other
    side of a pair writes as one.
    `digest` (sha256) covers the name, the version, the rules' names, the unit policy, `extra`, and the output for a
    fixed list of probe texts: the same digest means the same behaviour there, whatever the source looks like.
    """

    name: str
    version: str
    rules: tuple[Rule, ...]
    unit: UnitKind | None = None
    unknown_unit: UnitKind = "auto"
    compounds: bool = False
    extra: str = ""
    digest: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", self._digest())

    def normalise(self, text: str, lang: str | None = None) -> str:
        for rule in self.rules:
            text = rule.apply(text, lang)
        return text

    def unit_kind(self, lang: str | None = None) -> UnitKind:
        """word, char, mixed, or auto (decided by the reference of the pair)."""
        return self.unit or (unit_of(lang) if lang else self.unknown_unit)

    def units(self, text: str, lang: str | None = None) -> list[str]:
        """Units of the normalised text. For a pair use `pair`: it cuts both sides in the unit of the reference."""
        return split(self.normalise(text, lang), self.unit_kind(lang))

    def pair(self, ref: str, hyp: str, lang: str | None = None) -> tuple[list[str], list[str], UnitKind]:
        """(reference units, hypothesis units, unit kind) of one pair, cut alike."""
        return self.cut(self.normalise(ref, lang), self.normalise(hyp, lang), lang)

    def cut(self, ref: str, hyp: str, lang: str | None = None) -> tuple[list[str], list[str], UnitKind]:
        """`pair` of two normalised texts."""
        kind = resolve(self.unit_kind(lang), ref)
        said, heard = split(ref, kind), split(hyp, kind)
        if self.compounds and said != heard:
            said, heard = join_compounds(said, heard)
        if kind == "mixed" and all_spaceless(ref) and all_spaceless(hyp):
            kind = "char"
        return said, heard, kind

    def characters(self, text: str, lang: str | None = None) -> str:
        """The string whose code points CER counts: the normalised text, its single spaces included; without them for
        characters and mixed units."""
        text = self.normalise(text, lang)
        return characters_of(text, resolve(self.unit_kind(lang), text))

    def prime(self, texts: Iterable[str]) -> None:
        """Lets a rule that is a program see many texts at once; nothing for built-in rules."""
        for rule in self.rules:
            if hasattr(rule.apply, "prime"):
                rule.apply.prime(texts)

    @property
    def primes(self) -> bool:
        """True where `prime` does something."""
        return any(hasattr(rule.apply, "prime") for rule in self.rules)

    def with_compounds(self) -> Profile:
        """This profile with the declared compound rule."""
        return dataclasses.replace(self, name=f"{self.name}+compounds", compounds=True, digest="")

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version, "digest": self.digest}

    def _digest(self) -> str:
        outputs = [[self.normalise(text, lang), self.units(text, lang)] for text, lang in PROBES]
        rules = [rule.name for rule in self.rules]
        facts = [self.name, self.version, rules, self.unit, self.unknown_unit, self.compounds, self.extra, outputs]
        return hashlib.sha256(json.dumps(facts, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def characters_of(normalised: str, kind: UnitKind) -> str:
    """See `Profile.characters`; `kind` is the unit of the pair."""
    return normalised if kind == "word" else "".join(normalised.split())


@lru_cache(maxsize=32)
def cached(profile: Profile) -> Callable[[str, str | None], str]:
    """`profile.normalise` with a memory of the last 65,536 texts: nine answers of a clip share one reference."""
    return lru_cache(maxsize=65_536)(profile.normalise)
