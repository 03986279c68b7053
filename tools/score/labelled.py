"""Label answers as rows of one token each, so that tables, slices and paired comparisons of transcripts serve labels too.

A row's label becomes one token and so does the label read from its answer; an answer that names none becomes empty. The
word error rate of such rows is the share of wrong answers: another label is a substitution, no label a deletion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.rows import ScoredRow
from tools.score.blocks import Blocks, make_blocks
from tools.score.compare import compare_blocks
from tools.score.labels import INVALID, LabelSet, Reading
from tools.text import profile

# What the customer wishes -> the error rate that is measured, compared and selected by; lower is better.
ERROR_OF = {"accuracy": "label_error", "macro_recall": "macro_error"}
CODED = "exact"  # the profile that coded rows are scored under

Read = Callable[[str], str]


def error_rates(reading: Reading) -> dict[str, float]:
    """label_error = 1 - accuracy; macro_error = 1 - mean recall over the classes that have rows."""
    return {"label_error": 1.0 - reading.accuracy, "macro_error": 1.0 - reading.macro_recall}


def code_rows(rows: Sequence[ScoredRow], labels: LabelSet, read: Read) -> list[ScoredRow]:
    """The rows with label and answer as one token each; the answer is empty where `read` finds no label in it."""
    code = {label: f"c{i}" for i, label in enumerate(labels.labels)} | {INVALID: ""}
    return [replace(row, ref=code[labels.profile.normalise(row.ref)], hyp=code[read(row.hyp)]) for row in rows]


@dataclass(frozen=True)
class _Balanced(Blocks):
    """Blocks whose rows weigh so that every class weighs the same: the sums give the macro error."""

    weighted: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))

    def table(self) -> NDArray[np.float64]:
        return self.weighted


def compare_labels(
    a: Sequence[ScoredRow],
    b: Sequence[ScoredRow],
    labels: LabelSet,
    read: Read,
    metric: str = "label_error",
    by: str = "speaker",
    noise_floor: float = 0.0,
) -> dict[str, Any]:
    """`compare_rows` of label answers as read by `read`, keyed as `Comparison.to_json`; `metric` is label_error or
    macro_error, whose interval keeps the weights of the classes fixed. Raises CheckError for unequal ids."""
    one, two = (code_rows(rows, labels, read) for rows in (a, b))
    blocks = make_blocks(one, two, profile(CODED), by)
    if metric == "macro_error":
        blocks = _balance(blocks, one, two)
    found = compare_blocks(blocks, noise_floor=noise_floor)
    return {**found.to_json(), "metric": metric, "reference_units": len(one)}


def _balance(blocks: Blocks, a: Sequence[ScoredRow], b: Sequence[ScoredRow]) -> _Balanced:
    """Row weights N / (K n_c): N rows, K classes with rows, n_c rows of the row's class."""
    sizes, at = Counter(row.ref for row in a), {name: i for i, name in enumerate(blocks.names)}
    answers = {row.id: row.hyp for row in b}
    table = np.zeros((len(at), 3))
    for row in sorted(a, key=lambda r: r.id):
        weight = len(a) / (len(sizes) * sizes[row.ref])
        wrong = (row.hyp != row.ref, answers[row.id] != row.ref, True)
        table[at[str(getattr(row, blocks.by))]] += weight * np.array(wrong, dtype=float)
    fields = {name: getattr(blocks, name) for name in Blocks.__dataclass_fields__}
    return _Balanced(**fields, weighted=table)
