"""Rewards for transcripts: minus an error rate, floored at -2, in the same profile as the metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tools.score.align import count
from tools.text.profile import Profile, cached, characters_of

FLOOR = 2.0


def rates(profile: Profile) -> Callable[[str, str, str | None], tuple[float, float] | None]:
    """A function (hyp, ref, lang) -> (character error rate, unit error rate), both capped at 2.

    None where the reference says something that the profile drops altogether: nothing fair can be said of an answer.
    A truly empty reference (silence) gives 0 for an empty answer and the cap for any other.
    """
    normalise = cached(profile)

    def measure(hyp: str, ref: str, lang: str | None) -> tuple[float, float] | None:
        said, heard = normalise(ref, lang), normalise(hyp, lang)
        if not said:
            return None if ref.strip() else ((0.0, 0.0) if not heard else (FLOOR, FLOOR))
        ref_units, hyp_units, kind = profile.cut(said, heard, lang)
        chars = count(characters_of(said, kind), characters_of(heard, kind))
        words = count(ref_units, hyp_units)
        return min(chars.total / chars.reference, FLOOR), min(words.total / words.reference, FLOOR)

    return measure


def cer(profile: Profile) -> Callable[[str, str, str | None], float | None]:
    """-min(CER, 2): the default."""
    measure = rates(profile)
    return lambda hyp, ref, lang: None if (r := measure(hyp, ref, lang)) is None else 0.0 - r[0]


def wer(profile: Profile) -> Callable[[str, str, str | None], float | None]:
    """-min(WER, 2)."""
    measure = rates(profile)
    return lambda hyp, ref, lang: None if (r := measure(hyp, ref, lang)) is None else 0.0 - r[1]


def blend(profile: Profile, weights: Mapping[str, float]) -> Callable[[str, str, str | None], float | None]:
    """Minus the weighted mean of up to four faults, each from 0 to 2; `weights` sum to one (checked by the caller).

    `cer`, `wer`; `length`: units said beyond the reference's number, over that number; `repetition`: units that only
    repeat what stands before them, beyond the reference's own, over the reference's number. An answer with fewer errors
    than silence stays above it, whatever its form costs: silence has no form to find fault with.
    """
    measure = rates(profile)
    silence = -weights.get("cer", 0.0) - weights.get("wer", 0.0)
    shape = weights.get("length", 0.0) or weights.get("repetition", 0.0)

    def reward(hyp: str, ref: str, lang: str | None) -> float | None:
        base = measure(hyp, ref, lang)
        if base is None:
            return None
        faults = {"cer": base[0], "wer": base[1]}
        if shape:
            faults |= surplus(*profile.pair(ref, hyp, lang)[:2])
        paid = 0.0 - sum(weight * faults[part] for part, weight in weights.items() if weight)
        if shape and max(base) < 1:
            return max(paid, silence * (1 - (2 - sum(base)) / 200))
        return paid

    return reward


def surplus(ref_units: Sequence[str], hyp_units: Sequence[str]) -> dict[str, float]:
    """`length` and `repetition` of an answer against its reference, each from 0 to FLOOR."""
    due = max(len(ref_units), 1)
    again = repeats(hyp_units) - repeats(ref_units)
    return {
        "length": min(max(len(hyp_units) - len(ref_units), 0) / due, FLOOR),
        "repetition": min(max(again, 0) / due, FLOOR),
    }


def repeats(units: Sequence[str], longest: int = 50) -> int:
    """How many units stand in a stretch of up to `longest` units that repeats the stretch right before it."""
    inside = [False] * len(units)
    for size in range(1, min(longest, len(units) // 2) + 1):
        for at in range(size, len(units) - size + 1):
            if units[at : at + size] == units[at - size : at]:
                inside[at : at + size] = [True] * size
    return sum(inside)


def keyword(
    profile: Profile, words: Mapping[str, float], weight: float = 0.5
) -> Callable[[str, str, str | None], float | None]:
    """-min(CER, 2) minus `weight` times the share of the reference's keywords missed, and of keywords invented.

    A keyword is a phrase in the profile's units, an entity say, with what it counts beside the others. Clips without
    keywords are rewarded by CER alone, inventions apart. An answer with a CER below 1 stays above silence, whatever its
    keywords cost: a policy would otherwise learn to say nothing where a keyword might be wrong.
    """
    measure = rates(profile)

    def reward(hyp: str, ref: str, lang: str | None) -> float | None:
        base = measure(hyp, ref, lang)
        if base is None:
            return None
        ref_units, hyp_units, _ = profile.pair(ref, hyp, lang)
        wanted = wrong = 0.0
        for phrase, counts in words.items():
            said, heard = occurrences(profile, phrase, ref_units, lang), occurrences(profile, phrase, hyp_units, lang)
            wanted += counts * said
            wrong += counts * abs(said - heard)
        paid = 0.0 - base[0] - weight * min(wrong / (wanted or 1.0), FLOOR)
        if base[0] >= 1:
            return paid
        silence = -1.0 - (weight if wanted else 0.0)
        return max(paid, silence + (1 - base[0]) / 100)

    return reward


def occurrences(profile: Profile, phrase: str, units: Sequence[str], lang: str | None) -> int:
    """How often the phrase stands in the units."""
    sought = profile.units(phrase, lang)
    size = len(sought)
    return sum(list(units[i : i + size]) == sought for i in range(len(units) - size + 1)) if size else 0
