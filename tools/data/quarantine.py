"""What being set aside means for a split: within its limit or too much, empty, without references, not decodable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tools.data.reading import Quarantined
from tools.data.report import BLOCK, WARN, Finding, RowRef
from tools.data.rowchecks import Options
from tools.data.splits import role
from tools.data.table import Ints, RowTable

MAX_QUARANTINE = 0.05


def quarantine_limit(split: str, options: Options) -> float:
    """The share of a split's rows that may be set aside before it blocks: 5 %, and 0 for dev and test, unless told."""
    given = options.max_quarantine
    if isinstance(given, Mapping):
        given = given.get(split)
    if given is not None:
        return float(given)
    return 0.0 if role(split) in {"dev", "test"} else MAX_QUARANTINE


def quarantine_findings(
    table: RowTable, kept: Ints, quarantined: Sequence[Quarantined], options: Options
) -> list[Finding]:
    """Findings about the rows set aside, split by split, then those over the window in all of them."""
    numbers = np.bincount(table["split"][kept], minlength=len(table.splits))
    left = Counter({table.splits[code]: int(number) for code, number in enumerate(numbers)})
    by_split: dict[str, list[Quarantined]] = {split: [] for split in left}
    for row in quarantined:
        by_split.setdefault(row.split, []).append(row)
    out = []
    for split in sorted(by_split):
        if by_split[split]:
            out += _split_findings(split, left[split], by_split[split], options)
    over = [q for q in quarantined if q.kind == "window"]
    if over:
        longest = max(float(q.reason.split(": ")[1].split(" s")[0]) for q in over)
        text = (
            f"{len(over)} clip(s) over {options.max_duration_s:.1f} s (longest {longest:.2f} s): "
            "left out of every split alike"
        )
        out.append(Finding("over_window", WARN, text, _refs(over)))
    return out


def _split_findings(split: str, kept: int, aside: Sequence[Quarantined], options: Options) -> list[Finding]:
    counted = [q for q in aside if q.counts]
    rows_in, named = kept + len(aside), split or "the manifest"
    out = []
    if all(q.kind in {"reference", "label"} for q in aside) and kept == 0:
        what = "label" if options.task == "label" else "reference"
        out.append(Finding("no_references", BLOCK, f"{named}: all {rows_in} rows lack their {what}", _refs(aside)))
    elif kept == 0:
        why = f"{named}: none of its {rows_in} rows can be used ({aside[0].reason})"
        out.append(Finding("empty_split", BLOCK, why, _refs(aside)))
    if counted:
        limit = quarantine_limit(split, options)
        severity = BLOCK if len(counted) > limit * rows_in else WARN
        text = (
            f"{named}: {len(counted)} of {rows_in} rows set aside; the checks below were not done for them "
            f"(at most {limit:.0%} may be: {'too many' if severity == BLOCK else 'within it'})"
        )
        out.append(Finding("quarantine", severity, text, _refs(counted)))
    bad = [q for q in aside if q.kind == "encoding"]
    if bad:
        out.append(Finding("encoding", BLOCK, f"{named}: {bad[0].reason}", _refs(bad)))
    return out


def _refs(rows: Sequence[Quarantined]) -> tuple[RowRef, ...]:
    return tuple(map(RowRef.of, rows))
