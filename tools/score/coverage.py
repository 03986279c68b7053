"""How often the 95 % intervals cover the truth, and how often a change without gain is called better: by simulation.

Speakers differ in error rate, in length and in gain. Run `python -m tools.score.coverage` for the table of
docs/scoring.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tools.score.intervals import bca, effective_blocks, percentile, statistics, widened, without_each
from tools.score.resample import draws

METHODS = ("clips", "percentile", "bca", "widened")


@dataclass(frozen=True)
class World:
    """Speakers' error rates are log-normal about `error` (log sd `spread`, cut at 0.9); a speaker's candidate errs by
    the factor exp(gain_spread * z), scaled to have the mean `ratio`; each has about `clips` utterances of `words` words
    (log-normal with `size_spread`)."""

    name: str
    error: float = 0.15
    spread: float = 0.5
    ratio: float = 0.9
    gain_spread: float = 0.25
    clips: int = 20
    words: int = 10
    size_spread: float = 0.4

    @property
    def reduction(self) -> float:
        """The true error reduction of the population of speakers."""
        return 1.0 - self.ratio


WORLDS = (
    World("gains vary", ratio=0.85),
    World("no gain, speakers vary", ratio=1.0),
    World("large gain", ratio=0.5, gain_spread=0.4),
    World("few very bad speakers", spread=0.9, ratio=0.85),
)


def simulate(world: World, speakers: int, trials: int, seed: int) -> NDArray[np.float64]:
    """[trials, speakers, 3]: errors of a and b, words."""
    rng = np.random.default_rng([seed, speakers])
    shape = (trials, speakers)
    size = np.exp(world.size_spread * rng.standard_normal(shape))
    words = np.maximum(np.round(size * world.clips * world.words), world.words).astype(int)
    rate = np.minimum(world.error * np.exp(world.spread * rng.standard_normal(shape)), 0.9)
    factor = np.exp(world.gain_spread * rng.standard_normal(shape) - world.gain_spread**2 / 2.0) * world.ratio
    a, b = rng.binomial(words, rate), rng.poisson(words * rate * factor)
    return np.stack([a, b, words], axis=2).astype(np.float64)


def counts(blocks: int, resamples: int, seed: int = 0) -> NDArray[np.float64]:
    """[resamples, blocks]: how often each resample draws each block, by the product's own draws."""
    rows = [np.apply_along_axis(np.bincount, 1, chunk, minlength=blocks) for chunk in draws(blocks, resamples, seed)]
    return np.concatenate(rows).astype(np.float64)


@dataclass(frozen=True)
class Coverage:
    """Shares of the trials, by method: the interval of the error reduction covers the truth; says better; worse."""

    world: str
    speakers: int
    trials: int
    covers: dict[str, float]
    better: dict[str, float]
    worse: dict[str, float]


def cover(world: World, speakers: int, trials: int = 2_000, resamples: int = 2_000, seed: int = 1) -> Coverage:
    """Simulate `trials` comparisons and form each interval of the error reduction as the product does.

    "clips" is the interval that ignores speakers (binomial noise alone), for contrast.
    """
    data, weights = simulate(world, speakers, trials, seed), counts(speakers, resamples)
    hits = dict.fromkeys(METHODS, 0)
    better, worse = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0)
    for table in data:
        for method, interval in intervals(table, weights).items():
            low, high = interval or (-np.inf, np.inf)
            hits[method] += low <= world.reduction <= high
            better[method] += low > 0
            worse[method] += high < 0
    share = [{method: n / trials for method, n in found.items()} for found in (hits, better, worse)]
    return Coverage(world.name, speakers, trials, *share)


def intervals(table: NDArray[np.float64], weights: NDArray[np.float64]) -> dict[str, tuple[float, float] | None]:
    """The interval of the error reduction by each method."""
    reductions = np.sort(statistics(weights @ table)[1])
    observed = float(statistics(table.sum(axis=0))[1])
    left_out = statistics(without_each(table))[1]
    a, b, _ = table.sum(axis=0)
    error = (b / a) * (1.0 / max(a, 1.0) + 1.0 / max(b, 1.0)) ** 0.5 * 1.96
    return {
        "clips": (observed - error, observed + error),
        "percentile": percentile(reductions),
        "bca": bca(reductions, observed, left_out),
        "widened": widened(reductions, effective_blocks(table)),
    }


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4_000)
    parser.add_argument("--resamples", type=int, default=2_000)
    parser.add_argument("--speakers", type=int, nargs="*", default=[10, 20, 40, 200])
    args = parser.parse_args()
    heads = [f"{m} {what}" for what in ("covers", "better") for m in METHODS]
    print(f"| world | speakers | {' | '.join(heads)} |")
    print("|" + "---|" * (2 + 2 * len(METHODS)))
    for world in WORLDS:
        for speakers in args.speakers:
            got = cover(world, speakers, args.trials, args.resamples)
            cells = [f"{100 * found[m]:.1f}" for found in (got.covers, got.better) for m in METHODS]
            print(f"| {world.name} | {speakers} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
