"""Paired comparison of two systems on the same clips: is the difference real, and how large is it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tools.rows import ScoredRow
from tools.score.blocks import Blocks, make_blocks
from tools.score.inference import sign_flip_p
from tools.score.intervals import (
    LEVEL,
    Interval,
    bca,
    effective_blocks,
    percentile,
    statistics,
    widened,
    without_each,
)
from tools.score.resample import resampled_sums
from tools.text.profile import Profile

MIN_BLOCKS = 10
METHOD = "blocked bootstrap, percentile interval widened by Student's t on the effective number of blocks"


@dataclass(frozen=True)
class Comparison:
    """System b (candidate) against a (seed) on the same clips.

    `a`, `b`: error rates; `delta` = b - a (negative is better); `error_reduction` = (a - b) / a, None where a makes no
    error. `interval` is the 95 % interval of the error reduction, `delta_interval` that of delta; both None under ten
    blocks. `other_intervals` (of the error reduction, percentile and BCa) stand beside it for those who report them.
    `effective_blocks` is Kish's number of blocks. `verdict`: better | worse | not_shown | too_few_blocks.
    """

    metric: str
    a: float | None
    b: float | None
    delta: float | None
    error_reduction: float | None
    interval: Interval | None
    delta_interval: Interval | None
    blocks: int
    block_by: str
    verdict: str
    permutation_p: float | None
    errors_a: int
    errors_b: int
    reference_units: int
    rows: int
    resamples: int
    seed: int
    level: float = LEVEL
    method: str = METHOD
    noise_floor: float = 0.0
    effective_blocks: float = 0.0
    other_intervals: dict[str, Interval | None] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        out = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("interval", "delta_interval"):
            out[name] = None if out[name] is None else list(out[name])
        out["other_intervals"] = {k: None if v is None else list(v) for k, v in self.other_intervals.items()}
        return {**out, "interval_of": "error_reduction"}


def verdict_of(delta: float | None, interval: Interval | None, blocks: int, noise_floor: float = 0.0) -> str:
    """better | worse | not_shown | too_few_blocks: the interval of delta must be clear of zero, delta of the noise."""
    if blocks < MIN_BLOCKS:
        return "too_few_blocks"
    if delta is None or interval is None or abs(delta) <= noise_floor:
        return "not_shown"
    return "better" if interval[1] < 0 else "worse" if interval[0] > 0 else "not_shown"


def compare_rows(
    a: Sequence[ScoredRow],
    b: Sequence[ScoredRow],
    profile: Profile,
    by: str = "speaker",
    resamples: int = 10_000,
    seed: int = 0,
    noise_floor: float = 0.0,
    metric: str = "unit",
) -> Comparison:
    """Compare candidate rows b with seed rows a, paired by id, resampled by `by` (speaker, recording or id).

    Where not every row has a speaker the blocks are recordings (`block_by` says so), then clips. `noise_floor` is the
    absolute change of the seed against itself at another batch shape: a gain under it is "not_shown".
    `metric` is "unit" (the profile's: WER or MER) or "cer".
    Raises CheckError for unequal ids or references, UsageError for an unknown block or metric.
    """
    return compare_blocks(make_blocks(a, b, profile, by, metric), resamples, seed, noise_floor)


def compare_blocks(blocks: Blocks, resamples: int = 10_000, seed: int = 0, noise_floor: float = 0.0) -> Comparison:
    """`compare_rows` on sums by block."""
    table, n = blocks.table(), len(blocks.names)
    total = table.sum(axis=0)
    has_units = total[2] > 0
    delta = float((total[1] - total[0]) / total[2]) if has_units else None
    interval = delta_interval = None
    others: dict[str, Interval | None] = {}
    if n >= MIN_BLOCKS and has_units:
        deltas, reductions = (np.sort(values) for values in statistics(resampled_sums(table, resamples, seed)))
        delta_interval = widened(deltas, effective_blocks(table))
        if total[0] > 0:
            interval = widened(reductions, effective_blocks(table))
            observed, left_out = statistics(total)[1], statistics(without_each(table))[1]
            others = {"percentile": percentile(reductions), "bca": bca(reductions, float(observed), left_out)}
    return Comparison(
        metric="cer" if blocks.metric == "cer" else blocks.score_a.metric,
        a=float(total[0] / total[2]) if has_units else None,
        b=float(total[1] / total[2]) if has_units else None,
        delta=delta,
        error_reduction=float((total[0] - total[1]) / total[0]) if total[0] > 0 and has_units else None,
        interval=interval,
        delta_interval=delta_interval,
        blocks=n,
        block_by=blocks.by,
        verdict=verdict_of(delta, delta_interval, n, noise_floor),
        permutation_p=sign_flip_p(table[:, 1] - table[:, 0], resamples, seed) if n > 1 else None,
        errors_a=int(total[0]),
        errors_b=int(total[1]),
        reference_units=int(total[2]),
        rows=blocks.score_a.rows,
        resamples=resamples,
        seed=seed,
        noise_floor=noise_floor,
        effective_blocks=effective_blocks(table),
        other_intervals=others,
        profile=dict(blocks.score_a.profile),
    )
