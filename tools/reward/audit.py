"""The reward audit: what a reward pays for the answers that policies learn to game it with, as a table and as a law.

Law (house.md §7): exact > one error > many errors; silence and loops never above an answer with fewer errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.errors import UsageError
from tools.reward.make import Reward
from tools.score.align import count
from tools.text.profile import characters_of

DEFAULT_REFS = (
    "please move six crates to the office before monday morning",
    "the ship left the harbour at noon and nobody waved",
    "thank you",
)
PHRASES = 8  # so many of a reward's keywords are probed with
DEFAULT_LABELS = ("yes", "no", "maybe")
_HALLUCINATION = "thank you for watching and please remember to subscribe to the channel for more"


@dataclass(frozen=True)
class Case:
    """One probe answer: its reward and its errors in units and characters (None for label rewards)."""

    ref: str
    kind: str
    hyp: str
    reward: float | None
    errors: int
    characters: int

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class RewardAudit:
    """`ok` where no law is broken; `table` one case a row; `violations` one sentence each."""

    ok: bool
    table: tuple[Case, ...]
    violations: tuple[str, ...]
    reward: dict[str, Any]

    def to_text(self) -> str:
        """The table, one probe answer a line, and what breaks the law."""
        rows = [
            f"{'none' if c.reward is None else f'{c.reward:.3f}':>8} {c.errors:>7} {c.characters:>7}  {c.kind:30} {_short(c.hyp)!r}"
            for c in self.table
        ]
        head = f"{'reward':>8} {'errors':>7} {'letters':>7}  {'answer':30}"
        ending = "the order holds" if self.ok else "\n".join(f"broken: {v}" for v in self.violations)
        return "\n".join(
            [f"reward {self.reward['name']} under profile {self.reward['profile']['name']}", head, *rows, ending]
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "reward": self.reward,
            "table": [case.to_json() for case in self.table],
            "violations": list(self.violations),
        }


def audit_reward(reward: Reward, refs: Sequence[str] | None = None, lang: str | None = None) -> RewardAudit:
    """Probe a reward with references (default: three sentences, or three labels) and check the law on each.

    Raises UsageError for a reference that is empty under the profile.
    """
    label = reward.kind == "label"
    refs = tuple(refs) if refs else (DEFAULT_LABELS if label else DEFAULT_REFS)
    table: list[Case] = []
    violations: list[str] = []
    for ref in refs:
        if not reward.profile.normalise(ref, lang):
            raise UsageError(f"The reference {ref!r} is empty under {reward.profile.name!r}: audit with other texts.")
        answers = label_answers(ref, refs) if label else transcript_answers(reward.profile.normalise(ref, lang))
        cases = [_case(reward, ref, kind, hyp, lang) for kind, hyp in answers]
        table += cases
        violations += label_violations(cases) if label else transcript_violations(cases)
    for phrase in list(reward.options.get("keywords", ()))[:PHRASES]:
        for ref in refs:
            probes = keyword_answers(reward.profile.normalise(ref, lang), reward.profile.normalise(phrase, lang))
            for due, answers in probes:
                cases = [_case(reward, due, kind, hyp, lang) for kind, hyp in answers]
                table += cases
                violations += keyword_violations(cases)
    if not label:
        silence, noise = (
            _case(reward, "", "empty reference, silence", "", lang),
            _case(reward, "", "empty reference, hallucination", _HALLUCINATION, lang),
        )
        table += [silence, noise]
        if silence.reward is None or noise.reward is None or not silence.reward > noise.reward:
            violations.append("On an empty reference a hallucination is paid as much as silence.")
    return RewardAudit(not violations, tuple(table), tuple(violations), reward.to_json())


def transcript_answers(ref: str) -> list[tuple[str, str]]:
    """(kind, answer) to a normalised reference: from exact to hopeless. The many errors include the one."""
    words = ref.split()
    gapped = " ".join(words)
    wrong = [*words[:-1], words[-1][:-1] + ("z" if words[-1].endswith("x") else "x")]
    many = [*("zebra" if i % 2 else word for i, word in enumerate(words[:-1])), wrong[-1]]
    return [
        ("exact", ref),
        ("one error", " ".join(wrong)),
        ("many errors", " ".join([*many, "giraffe", "quagga"])),
        ("wrong mark", _mark(gapped)),
        ("other number form", _number(gapped)),
        ("truncation", " ".join(words[: max(1, len(words) // 2)]) if len(words) > 1 else ref[: len(ref) // 2]),
        ("run-on", " ".join([*words, *words[1:][::-1]])),
        ("silence", ""),
        ("loop", " ".join([words[0]] * 40)),
        ("loop of the answer", " ".join([gapped] * 20)),
        ("fluent hallucination", _HALLUCINATION),
    ]


def keyword_answers(ref: str, phrase: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """References without and with a keyword, and what a policy might learn to answer: nothing, or keywords wherever."""
    keyed = f"{ref} {phrase}"
    invented = [("silence", ""), ("keyword invented", keyed)]
    return [
        (ref, invented),
        (
            keyed,
            [
                ("silence", ""),
                ("keyword missed", ref),
                ("keyword twice", f"{keyed} {phrase}"),
                ("keyword alone", phrase),
            ],
        ),
    ]


def label_answers(label: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    """(kind, answer) for a label task."""
    other = next((x for x in labels if x != label), f"not {label}")
    return [
        ("exact", label),
        ("spaced", f" {label} "),
        ("wrong label", other),
        ("silence", ""),
        ("hedged label", f"{label} and {other}"),
        ("hedged label", f"{other} or {label}"),
        ("negated label", f"not {label}"),
        ("label in a sentence", f"the answer is {label}, or perhaps {other}"),
        ("loop", " ".join([label] * 20)),
    ]


def _short(text: str, most: int = 48) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _mark(text: str) -> str:
    """The text with an acute accent on its first vowel."""
    for i, char in enumerate(text):
        if char.lower() in "aeiou":
            return text[: i + 1] + "\u0301" + text[i + 1 :]
    return text + "\u0301"


def _number(text: str) -> str:
    digits = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8"}
    return " ".join(digits.get(word, word) for word in text.split())


def _case(reward: Reward, ref: str, kind: str, hyp: str, lang: str | None) -> Case:
    said, heard = reward.profile.normalise(ref, lang), reward.profile.normalise(hyp, lang)
    ref_units, hyp_units, unit = reward.profile.cut(said, heard, lang)
    words = count(ref_units, hyp_units).total
    characters = count(characters_of(said, unit), characters_of(heard, unit)).total
    return Case(ref, kind, hyp, reward(hyp, ref, lang), words, characters)


def transcript_violations(cases: Sequence[Case]) -> list[str]:
    """The law on the cases of one reference. "Fewer errors" means fewer units and fewer characters wrong."""
    by = {case.kind: case for case in cases}
    out = [f"{c.kind!r} of {c.ref!r} has no reward." for c in cases if c.reward is None]
    if out:
        return out
    for better, worse in (("exact", "one error"), ("one error", "many errors")):
        if by[better].errors < by[worse].errors and not by[better].reward > by[worse].reward:  # type: ignore[operator]
            out.append(f"{worse!r} of {by[worse].ref!r} is paid {by[worse].reward}, no less than {better!r}.")
    for bad in (c for c in cases if c.kind in ("silence", "loop", "loop of the answer")):
        for other in cases:
            fewer = other.errors < bad.errors and other.characters < bad.characters
            if fewer and bad.reward > other.reward:  # type: ignore[operator]
                out.append(f"{bad.kind!r} of {bad.ref!r} is paid {bad.reward}, above {other.kind!r} ({other.reward}).")
    return out


def keyword_violations(cases: Sequence[Case]) -> list[str]:
    """Silence is never above an answer with fewer errors, nor a bare keyword above one with a quarter of its errors."""
    out = []
    for bad in (c for c in cases if c.kind in ("silence", "keyword alone")):
        times = 1 if bad.kind == "silence" else 4
        for c in cases:
            fewer = c.errors * times < bad.errors and c.characters * times < bad.characters
            if c.reward is None or bad.reward is None or (fewer and bad.reward > c.reward):
                out.append(f"{bad.kind!r} of {bad.ref!r} is paid {bad.reward}, above {c.kind!r} ({c.reward}).")
    return out


def label_violations(cases: Sequence[Case]) -> list[str]:
    """Only the label itself earns; an empty, hedging, negated or looping answer never more than a wrong label."""
    wrong = next(c.reward for c in cases if c.kind == "wrong label")
    out = []
    for case in cases:
        right = case.kind in ("exact", "spaced")
        if case.reward is None or (right and not case.reward > (wrong or 0.0)) or (not right and case.reward != wrong):
            out.append(f"{case.kind!r} answer {case.hyp!r} to the label {case.ref!r} is paid {case.reward}.")
    return out
