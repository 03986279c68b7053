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
    """Minus the weighted mean of CER and WER, each capped at 2; `weights` sum to one (checked by the caller)."""
    measure = rates(profile)
    c, w = weights.get("cer", 0.0), weights.get("wer", 0.0)
    return lambda hyp, ref, lang: None if (r := measure(hyp, ref, lang)) is None else 0.0 - (c * r[0] + w * r[1])


def keyword(
    profile: Profile, words: Sequence[str], weight: float = 0.5
) -> Callable[[str, str, str | None], float | None]:
    """-min(CER, 2) minus `weight` times the share of the reference's keywords missed, and of keywords invented.

    A keyword is a phrase in the profile's units. Clips without keywords are rewarded by CER alone, inventions apart.
    """
    measure = rates(profile)

    def reward(hyp: str, ref: str, lang: str | None) -> float | None:
        base = measure(hyp, ref, lang)
        if base is None:
            return None
        ref_units, hyp_units, _ = profile.pair(ref, hyp, lang)
        wanted = wrong = 0
        for phrase in words:
            said, heard = occurrences(profile, phrase, ref_units, lang), occurrences(profile, phrase, hyp_units, lang)
            wanted += said
            wrong += abs(said - heard)
        return 0.0 - base[0] - weight * min(wrong / max(wanted, 1), FLOOR)

    return reward


def occurrences(profile: Profile, phrase: str, units: Sequence[str], lang: str | None) -> int:
    """How often the phrase stands in the units."""
    sought = profile.units(phrase, lang)
    size = len(sought)
    return sum(list(units[i : i + size]) == sought for i in range(len(units) - size + 1)) if size else 0
