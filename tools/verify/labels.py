"""Recomputes the figures of a label task from stored answers: plain counting, without the scoring room's tables.

Only the reading of an answer (normaliser, parser, comparator) is shared: the same label read is the point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.errors import CheckError
from tools.verify.intervals import resampled
from tools.verify.scores import read_rows

Read = Callable[[str], str]


def recompute_labels(
    rows_path: Path | str, normalise: Callable[[str], str], read: Read, invalid: str
) -> dict[str, Any]:
    """label_error, macro_error, recall by class, invalid and rows of a rows.jsonl; CheckError for a broken row."""
    seen: Counter[str] = Counter()
    right: Counter[str] = Counter()
    none = 0
    for row in read_rows(rows_path):
        label, answer = normalise(row["ref"]), read(row["hyp"])
        seen[label] += 1
        right[label] += answer == label
        none += answer == invalid
    rows = sum(seen.values())
    if not rows:
        raise CheckError(f"{rows_path} has no rows: nothing can be scored.")
    recall = {label: right[label] / n for label, n in seen.items()}
    return {
        "label_error": 1.0 - sum(right.values()) / rows,
        "macro_error": 1.0 - sum(recall[label] for label in sorted(recall)) / len(recall),
        "recall": recall,
        "invalid": none,
        "rows": rows,
    }


def recompute_label_interval(
    rows_a: Path | str,
    rows_b: Path | str,
    normalise: Callable[[str], str],
    read: Read,
    metric: str,
    by: str = "speaker",
    noise_floor: float = 0.0,
) -> dict[str, Any]:
    """a, b, delta, error_reduction, interval, delta_interval, blocks, block_by, verdict of two sets of answers."""
    left, right = ({row["id"]: row for row in read_rows(path)} for path in (rows_a, rows_b))
    if set(left) != set(right):
        raise CheckError(f"{rows_a} and {rows_b} do not hold the same row ids: they cannot be compared.")
    chain = ["speaker", "recording", "id"]
    by = next((f for f in chain[chain.index(by) :] if all(row.get(f) for row in left.values())), "id")
    sizes = Counter(normalise(row["ref"]) for row in left.values())
    sums: dict[str, list[float]] = {str(row[by]): [0.0, 0.0, 0.0] for row in left.values()}
    for key in sorted(left):
        label = normalise(left[key]["ref"])
        weight = len(left) / (len(sizes) * sizes[label]) if metric == "macro_error" else 1.0
        block = sums[str(left[key][by])]
        block[0] += weight * (read(left[key]["hyp"]) != label)
        block[1] += weight * (read(right[key]["hyp"]) != label)
        block[2] += weight
    return resampled([(s[0], s[1], s[2]) for _, s in sorted(sums.items())], by, noise_floor)
