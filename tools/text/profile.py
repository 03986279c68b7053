"""A profile: named rules applied in order, with a version and a digest; the same one for reward, mining and evaluation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tools.text.probes import PROBES
from tools.text.units import UnitKind, resolve, split, unit_of

RuleFunction = Callable[[str, "str | None"], str]


@dataclass(frozen=True)
class Rule:
    """One step of a profile. `apply(text, lang) -> text`."""

    name: str
    apply: RuleFunction
    does: str = ""


@dataclass(frozen=True)
class Profile:
    """A normaliser: `normalise` is idempotent and deterministic; `units` cuts the normalised text.

    `digest` (sha256) covers the name, the version, the rules' names, the unit policy and the output for a fixed list of
    probe texts: the same digest means the same behaviour there, whatever the source looks like.
    """

    name: str
    version: str
    rules: tuple[Rule, ...]
    unit: UnitKind | None = None  # None: by the row's language
    notes: str = ""
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
        return self.unit or unit_of(lang)

    def units(self, text: str, lang: str | None = None) -> list[str]:
        """Units of the normalised text. For a pair use `pair`: it cuts both sides in the unit of the reference."""
        return split(self.normalise(text, lang), self.unit_kind(lang))

    def pair(self, ref: str, hyp: str, lang: str | None = None) -> tuple[list[str], list[str], UnitKind]:
        """(reference units, hypothesis units, unit kind) of one pair, cut alike."""
        ref, hyp = self.normalise(ref, lang), self.normalise(hyp, lang)
        kind = resolve(self.unit_kind(lang), ref)
        return split(ref, kind), split(hyp, kind), kind

    def characters(self, text: str, lang: str | None = None) -> str:
        """The string whose code points CER counts: the normalised text, its single spaces included; without them for
        languages written without spaces."""
        text = self.normalise(text, lang)
        return characters_of(text, resolve(self.unit_kind(lang), text))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version, "digest": self.digest}

    def _digest(self) -> str:
        outputs = [[self.normalise(text, lang), self.units(text, lang)] for text, lang in PROBES]
        facts = [self.name, self.version, [rule.name for rule in self.rules], self.unit, outputs]
        return hashlib.sha256(json.dumps(facts, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def characters_of(normalised: str, kind: UnitKind) -> str:
    """See `Profile.characters`; `kind` is the unit of the pair."""
    return normalised if kind == "word" else "".join(normalised.split())


@lru_cache(maxsize=32)
def cached(profile: Profile) -> Callable[[str, str | None], str]:
    """`profile.normalise` with a memory of the last 65,536 texts: nine answers of a clip share one reference."""
    return lru_cache(maxsize=65_536)(profile.normalise)
