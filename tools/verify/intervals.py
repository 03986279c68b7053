"""Recomputes a comparison from two rows.jsonl files: the seeded resampling of docs/scoring.md, written a second time.

The draw number k (from 1) of the stream `seed` is the high half of splitmix64(mix(seed) + k * golden); block =
high * B >> 32. Here a resample is a vector of how often each block is drawn; there it is a sum over drawn blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.stats import t as student

from tools.errors import CheckError
from tools.text import Profile
from tools.verify.scores import cut, jiwer_totals, read_rows, require_jiwer

_MASK = (1 << 64) - 1


def recompute_interval(
    rows_a: Path | str,
    rows_b: Path | str,
    profile: Profile,
    by: str = "speaker",
    resamples: int = 10_000,
    seed: int = 0,
    noise_floor: float = 0.0,
    metric: str = "unit",
) -> dict[str, Any]:
    """a, b, delta, error_reduction, interval, delta_interval, blocks, block_by, verdict, keyed as in `Comparison`.

    `metric` is "unit" (the profile's) or "cer".
    """
    require_jiwer()
    left, right = ({row["id"]: row for row in read_rows(path)} for path in (rows_a, rows_b))
    if set(left) != set(right):
        raise CheckError(f"{rows_a} and {rows_b} do not hold the same row ids: they cannot be compared.")
    for key in left:
        if left[key]["ref"] != right[key]["ref"]:
            raise CheckError(f"Row {key!r} has one reference in {rows_a} and another in {rows_b}.")
    chain = ["speaker", "recording", "id"]
    by = next((f for f in chain[chain.index(by) :] if all(row.get(f) for row in left.values())), "id")
    names = sorted({row[by] for row in left.values()})
    table = [_block(profile, left, right, by, name, metric == "cer") for name in names]
    return resampled(table, by, noise_floor, resamples, seed)


def resampled(
    table: Sequence[tuple[float, float, float]], by: str, noise_floor: float, resamples: int = 10_000, seed: int = 0
) -> dict[str, Any]:
    """The comparison of a table of (errors of a, errors of b, units), one row a block, blocks in order of name."""
    ea, eb, units = (sum(column) for column in zip(*table))
    delta = (eb - ea) / units if units else None
    out: dict[str, Any] = {
        "a": ea / units if units else None,
        "b": eb / units if units else None,
        "delta": delta,
        "error_reduction": (ea - eb) / ea if ea and units else None,
        "interval": None,
        "delta_interval": None,
        "blocks": len(table),
        "block_by": by,
    }
    if len(table) >= 10:
        deltas, reductions = _resample(np.array(table, dtype=float), resamples, seed)
        p = _tail([row[0] + row[1] for row in table])
        out["delta_interval"] = _interval(deltas, p)
        out["interval"] = _interval(reductions, p) if ea else None
    return {**out, "verdict": _verdict(out, noise_floor)}


def _block(
    profile: Profile, left: dict[str, Any], right: dict[str, Any], by: str, name: str, characters: bool
) -> tuple[int, int, int]:
    keys = [key for key, row in left.items() if row[by] == name]
    sides = []
    for rows in (left, right):
        cuts = [cut(profile, rows[key]) for key in keys]
        at = 2 if characters else 0
        sides.append(jiwer_totals([c[at] for c in cuts], [c[at + 1] for c in cuts], characters))
    return sum(sides[0][:3]), sum(sides[1][:3]), sides[0][3]


def _mixed(z: Any) -> Any:
    """splitmix64's finaliser on an array of uint64 (which wraps at 2**64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _resample(table: Any, resamples: int, seed: int) -> tuple[list[float], list[float]]:
    """One resample at a time: how often each block is drawn, times the table."""
    blocks = len(table)
    start = _mixed(np.array([seed & _MASK], dtype=np.uint64))
    deltas, reductions = [], []
    for r in range(resamples):
        number = np.arange(r * blocks + 1, (r + 1) * blocks + 1, dtype=np.uint64)
        high = _mixed(start + number * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
        drawn = (high * np.uint64(blocks)) >> np.uint64(32)
        a, b, units = np.bincount(drawn.astype(int), minlength=blocks) @ table
        deltas.append((b - a) / max(units, 1.0))
        reductions.append((a - b) / a if a else (-math.inf if b else 0.0))
    return deltas, reductions


def _tail(errors: list[float]) -> float:
    """Phi(-sqrt(n / (n - 1)) * t(97.5 %, n - 1)), n = (sum w)^2 / sum w^2 over the blocks' errors of both."""
    n = max(sum(errors) ** 2 / sum(w * w for w in errors), 2.0) if any(errors) else float(len(errors))
    return NormalDist().cdf(-math.sqrt(n / (n - 1)) * float(student.ppf(0.975, n - 1)))


def _interval(values: list[float], p: float) -> list[float] | None:
    low, high = (float(np.quantile(values, q)) for q in (p, 1.0 - p))
    return [low, high] if math.isfinite(low) and math.isfinite(high) else None


def _verdict(out: dict[str, Any], noise_floor: float) -> str:
    if out["blocks"] < 10:
        return "too_few_blocks"
    if out["delta"] is None or out["delta_interval"] is None or abs(out["delta"]) <= noise_floor:
        return "not_shown"
    low, high = out["delta_interval"]
    return "better" if high < 0 else "worse" if low > 0 else "not_shown"
