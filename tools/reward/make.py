"""Rewards by name, checked before anything starts: an unknown name or a bad weight never surfaces in mid-training."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.errors import UsageError
from tools.reward import labels, transcripts
from tools.text.profile import Profile

VERSION, NEWER = "1", {"keyword": "2", "blend": "2"}  # of a reward's arithmetic
DEFAULTS = {"asr": "cer", "label": "label_exact"}  # by task
NAMES = ("cer", "wer", "blend", "keyword", "label_exact")
PARTS = ("cer", "wer", "length", "repetition")
GRID = 512


@dataclass(frozen=True)
class Reward:
    """`reward(hyp, ref, lang=None) -> float | None`; None where no fair reward exists (it never reaches a trainer).

    `kind` is "transcript" or "label". `digest` covers name, version, options and the profile's digest.
    """

    name: str
    profile: Profile
    options: Mapping[str, Any]
    kind: str
    digest: str
    function: Callable[[str, str, str | None], float | None] = field(repr=False, compare=False)

    def __call__(self, hyp: str, ref: str, lang: str | None = None) -> float | None:
        return self.function(hyp, ref, lang)

    def to_contract(self) -> dict[str, Any]:
        """What a contract keeps of it; `reward_of_contract` makes it again."""
        return {"name": self.name, "digest": self.digest, **({"options": dict(self.options)} if self.options else {})}

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "digest": self.digest,
            "options": dict(self.options),
            "profile": self.profile.to_json(),
        }


def make_reward(
    name: str,
    profile: Profile,
    *,
    weights: Mapping[str, float] | None = None,
    keywords: Sequence[str] | Mapping[str, float] | None = None,
    keyword_weight: float = 0.5,
) -> Reward:
    """The reward `name`: cer (default of the skill, -min(CER, 2)), wer, blend, keyword, label_exact.

    `weights` of a blend: cer, wer, length, repetition. `keywords`: phrases, or phrases (entities) with a weight each.

    Raises UsageError for an unknown name, for options that do not belong to it, and for weights that cannot be used.
    """
    if name not in NAMES:
        raise UsageError(f"There is no reward {name!r}: choose one of {', '.join(NAMES)}.")
    if (weights is not None and name != "blend") or (keywords is not None and name != "keyword"):
        raise UsageError(f"The reward {name!r} takes neither weights nor keywords that were given: drop them.")
    options: dict[str, Any] = {}
    if name == "blend":
        options = {"weights": checked_weights(weights or {"cer": 0.5, "wer": 0.5})}
        function = transcripts.blend(profile, options["weights"])
    elif name == "keyword":
        options = {"keywords": checked_keywords(keywords, profile), "weight": checked_positive(keyword_weight)}
        own = options["keywords"]
        phrases = own if isinstance(own, dict) else dict.fromkeys(own, 1.0)
        function = transcripts.keyword(profile, phrases, options["weight"])
    else:
        function = {"cer": transcripts.cer, "wer": transcripts.wer, "label_exact": labels.label_exact}[name](profile)
    facts = json.dumps([name, NEWER.get(name, VERSION), options, profile.digest], sort_keys=True, ensure_ascii=True)
    digest = hashlib.sha256(facts.encode()).hexdigest()
    return Reward(name, profile, options, "label" if name == "label_exact" else "transcript", digest, function)


def reward_from(spec: str | Mapping[str, Any], profile: Profile) -> Reward:
    """The reward that a brief names: "wer", or {name: blend, weights: {cer: 0.7, length: 0.3}}, or
    {name: keyword, keywords: [...] or {phrase: counts}, weight: 0.5}. What follows the name is `Reward.options`.

    Raises UsageError for an unknown key, and whatever `make_reward` refuses.
    """
    own: dict[str, Any] = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = own.pop("name", None)
    known = {"blend": ("weights",), "keyword": ("keywords", "weight")}.get(str(name), ())
    if not isinstance(name, str) or name not in NAMES:
        raise UsageError(f"There is no reward {name!r}: choose one of {', '.join(NAMES)}.")
    for key in own:
        if key not in known:
            takes = f"takes {' and '.join(known)}" if known else "takes nothing beside its name"
            raise UsageError(f"The reward {name!r} does not know {key!r}: it {takes}.")
    for key in ("weights", "keywords"):
        if key in own and not isinstance(own[key], Mapping if key == "weights" else (list, tuple, Mapping)):
            raise UsageError(f"The reward {name!r} needs its {key} as {'a mapping' if key == 'weights' else 'a list'}.")
    weight = {"keyword_weight": own.pop("weight")} if "weight" in own else {}
    return make_reward(name, profile, **own, **weight)


def reward_of_contract(frozen: Mapping[str, Any], profile: Profile) -> Reward:
    """The reward whose `to_contract` this is. Raises UsageError where its options cannot be."""
    return reward_from({"name": frozen["name"], **(frozen.get("options") or {})}, profile)


def checked_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of the parts, scaled to sum to one. An error rate must be among them: form alone says nothing of words."""
    for part, weight in weights.items():
        if part not in PARTS:
            raise UsageError(f"The blend has no part {part!r}: weight {', '.join(PARTS)}.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise UsageError(f"The blend's weight of {part} is {weight!r}: give a finite number from 0.")
    total = math.fsum(weights.values())
    if total <= 0:
        raise UsageError("The blend's weights sum to zero: give at least one above zero.")
    if not weights.get("cer", 0) and not weights.get("wer", 0):
        raise UsageError("The blend weights neither cer nor wer: an answer's words would not count at all.")
    if abs(total - 1) < 1e-9:  # weights that were scaled before stay as they are, and with them the digest
        total = 1.0
    return {part: weights[part] / total for part in sorted(weights)}


def checked_keywords(
    keywords: Sequence[str] | Mapping[str, float] | None, profile: Profile
) -> list[str] | dict[str, float]:
    """Keywords that are left after normalising, one at least; with a finite weight above 0 each where weights come."""
    if isinstance(keywords, str) or not keywords:
        raise UsageError("The reward 'keyword' needs a list of keywords: give at least one.")
    for word in keywords:
        if not isinstance(word, str):
            raise UsageError(f"The keyword {word!r} is no text: write it in quotes.")
        if not profile.units(word):
            raise UsageError(f"The keyword {word!r} is empty under the profile {profile.name!r}: remove it.")
    if isinstance(keywords, Mapping):
        for word, weight in keywords.items():
            if not checked_positive(weight, f"weight of the keyword {word!r}"):
                raise UsageError(f"The weight of the keyword {word!r} is 0: remove it.")
        return {word: float(keywords[word]) for word in sorted(keywords)}
    return sorted(set(keywords))


def checked_positive(weight: float, what: str = "keyword weight") -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
        raise UsageError(f"The {what} is {weight!r}: give a finite number from 0.")
    return float(weight)


def on_grid(reward: float) -> float:
    """The nearest multiple of 1/512, the grid that rewards lie on where they go to NeMo-RL."""
    return round(reward * GRID) / GRID
