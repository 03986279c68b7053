"""Reward for label tasks: 1 for exactly the label, else 0. Empty and hedging answers ("yes and no") get 0."""

from __future__ import annotations

from collections.abc import Callable

from tools.text.profile import Profile


def label_exact(profile: Profile) -> Callable[[str, str, str | None], float | None]:
    """1.0 where the normalised answer equals the normalised label, else 0.0; None where there is no label."""

    def reward(hyp: str, ref: str, lang: str | None) -> float | None:
        label = profile.normalise(ref, lang)
        return None if not label else float(profile.normalise(hyp, lang) == label)

    return reward
