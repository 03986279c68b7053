"""What a brief would cost at worst, before anything starts: `rehear plan`, and the reservations of a run.

Seconds of CPU a unit of work, measured on two ordinary cores with the embedded seed model and doubled for worse machines;
they only size reservations. What is spent is measured, and what is done never depends on how long it took. Where a server
decodes, or answers were given, only what is spent here counts: reading audio, sending it, keeping answers, scoring.
"""

from __future__ import annotations

from dataclasses import dataclass

START_S = 20.0
TRAIN_S = 0.1
PROMPTS = 3
MINED_ANSWERS = 1 + 32


@dataclass(frozen=True)
class Decoding:
    """CPU seconds here for a clip heard, a greedy answer, a sampled one."""

    hear_s: float
    greedy_s: float
    sample_s: float


HERE = Decoding(0.8, 0.25, 0.06)
ELSEWHERE = Decoding(0.1, 0.05, 0.02)


@dataclass(frozen=True)
class Work:
    """Sizes that decide the cost: clips a split and what a run does with them."""

    train: int
    dev: int
    test: int
    retention: int
    prompts: int
    mined: int
    updates: int
    groups: int
    answers: int
    offer_factor: int
    checkpoint_every: int
    decoding: Decoding = HERE


def baseline_minutes(w: Work) -> float:
    """Encoding dev and retention, every prompt on dev, the seed on both, dev once more for the noise floor."""
    d = w.decoding
    return (START_S + (w.dev + w.retention) * d.hear_s + (w.dev * (w.prompts + 2) + w.retention) * d.greedy_s) / 60


def mine_minutes(w: Work) -> float:
    """Two subsets at worst, greedy and 32 answers each."""
    d = w.decoding
    return (START_S + 2 * w.mined * (d.hear_s + d.greedy_s + MINED_ANSWERS * d.sample_s)) / 60


def update_minutes(w: Work) -> float:
    """One update whose clips were all refills, none of them heard before."""
    offered = w.groups * w.offer_factor
    return (offered * (HERE.hear_s + w.answers * HERE.sample_s) + w.groups * w.answers * TRAIN_S) / 60


def train_minutes(w: Work) -> float:
    """All updates at their worst, encoding each training clip once, and each checkpoint's evaluation."""
    offered = w.groups * w.offer_factor * w.updates
    work = (
        min(offered, w.train) * HERE.hear_s
        + offered * w.answers * HERE.sample_s
        + w.updates * w.groups * w.answers * TRAIN_S
    )
    checks = -(-w.updates // w.checkpoint_every)
    return (START_S + work + checks * (w.dev + w.retention) * HERE.greedy_s) / 60


def evaluate_minutes(w: Work) -> float:
    """Export, its check in a fresh process, and the test under two models."""
    return (3 * START_S + w.test * (HERE.hear_s + 2 * HERE.greedy_s)) / 60


def mined_minutes(w: Work) -> float:
    """All that `rehear mine` does."""
    return baseline_minutes(w) + mine_minutes(w)


def smallest_minutes(w: Work) -> float:
    """The least that ends in a table with one update in it."""
    return baseline_minutes(w) + mine_minutes(w) + update_minutes(w) + evaluate_minutes(w)


def as_rows(w: Work) -> dict[str, float]:
    """Worst CPU minutes by state."""
    out = {
        "baseline": baseline_minutes(w),
        "mine": mine_minutes(w),
        "train": train_minutes(w),
        "evaluate": evaluate_minutes(w),
    }
    return {k: round(v, 2) for k, v in out.items()}
