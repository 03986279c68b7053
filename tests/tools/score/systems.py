"""Two made-up systems on the same clips, with speakers that differ."""

from __future__ import annotations

import random

from tools.rows import ScoredRow

WORDS = "please move six crates to the office before monday morning nobody waved at noon".split()


def two_systems(
    speakers: int, clips: int = 12, error_a: float = 0.3, error_b: float = 0.2, seed: int = 0
) -> tuple[list[ScoredRow], list[ScoredRow]]:
    """Rows of a and b; each speaker has an own factor on the error rate."""
    rng = random.Random(seed)
    a, b = [], []
    for s in range(speakers):
        factor = rng.uniform(0.5, 1.5)
        for c in range(clips):
            ref = [rng.choice(WORDS) for _ in range(8)]
            for out, error in ((a, error_a), (b, error_b)):
                hyp = [w if rng.random() > error * factor else "zebra" for w in ref]
                row_id, voice = f"s{s:02}-{c:03}", f"s{s:02}"
                out.append(ScoredRow(row_id, " ".join(ref), " ".join(hyp), voice, f"{voice}-rec", "en"))
    return a, b
