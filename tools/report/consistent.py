"""Does a result agree with itself? A report whose numbers contradict each other is not rendered.

Each check returns sentences; none means nothing to object to. Absent parts are not objected to here. Rates are compared
to `TOLERANCE`, so that figures rounded to six digits pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tools.report.parts import Comparison, TableRow
from tools.report.schema import Result

TOLERANCE = 5e-6
MIN_BLOCKS = 10


def contradictions(result: Result) -> list[str]:
    """All the sentences that say where `result` disagrees with itself, most basic first."""
    checks = (_table, _comparison, _retention, _selection, _ending, _slices, _changes)
    return [sentence for check in checks for sentence in check(result)]


def _differ(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and not math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _table(result: Result) -> Iterator[str]:
    seen = set()
    for row in result.table:
        key = f"{row.split} {row.model}"
        if key in seen:
            yield f"the table has two rows for {key}"
        seen.add(key)
        if row.errors is not None and row.reference_units and result.metric != "macro_error":
            rate = row.errors / row.reference_units
            if _differ(row.rate(result.metric), rate):
                yield (
                    f"{key}: {result.metric} is {row.rate(result.metric)}, but its counts give "
                    f"{row.errors}/{row.reference_units} = {rate:.6f}"
                )
    for split in sorted({row.split for row in result.table}):
        yield from _same_rows(result.row(split, "seed"), result.row(split, "candidate"))


def _same_rows(seed: TableRow | None, candidate: TableRow | None) -> Iterator[str]:
    if seed and candidate:
        for what in ("rows", "reference_units"):
            ours, theirs = getattr(seed, what), getattr(candidate, what)
            if None not in (ours, theirs) and ours != theirs:
                yield f"{seed.split}: the seed was scored on {ours} {what.replace('_', ' ')}, the candidate on {theirs}"


def _comparison(result: Result) -> Iterator[str]:
    c = result.comparison
    if c is None:
        return
    for model, value in (("seed", c.seed), ("candidate", c.candidate)):
        row = result.row(c.split, model)
        if row and _differ(value, row.rate(c.metric)):
            yield f"the comparison's {model} {c.metric} {value} is not the table's {row.rate(c.metric)}"
    if c.seed is not None and c.candidate is not None:
        if _differ(c.delta, c.candidate - c.seed):
            yield f"delta {c.delta} is not candidate - seed = {c.candidate - c.seed:.6f}"
        if c.seed and _differ(c.error_reduction, (c.seed - c.candidate) / c.seed):
            yield f"error_reduction {c.error_reduction} is not (seed - candidate) / seed"
    yield from _verdict(c)


def _verdict(c: Comparison) -> Iterator[str]:
    if c.blocks < MIN_BLOCKS and (c.interval or c.verdict != "too_few_blocks"):
        yield f"{c.blocks} blocks are under {MIN_BLOCKS}: no interval and only the verdict too_few_blocks can be given"
    if c.blocks >= MIN_BLOCKS and c.verdict == "too_few_blocks":
        yield f"the verdict is too_few_blocks with {c.blocks} blocks"
    for name, bounds, sign in (("interval", c.interval, 1), ("delta_interval", c.delta_interval, -1)):
        if bounds and bounds[0] > bounds[1]:
            yield f"the {name} runs backwards, from {bounds[0]} to {bounds[1]}"
        if bounds and (name == "delta_interval" or not c.delta_interval):
            yield from _clear_of_zero(c, bounds[0] * sign, bounds[1] * sign)


def _clear_of_zero(c: Comparison, one: float, other: float) -> Iterator[str]:
    """The verdict against an interval turned so that positive is a gain."""
    low, high = min(one, other), max(one, other)
    if (c.verdict == "better" and low <= 0) or (c.verdict == "worse" and high >= 0):
        yield f"the verdict is {c.verdict}, but its interval is not clear of zero"
    noise = c.noise_floor is None or c.delta is None or abs(c.delta) <= c.noise_floor
    if c.verdict == "not_shown" and (low > 0 or high < 0) and not noise:
        yield "the verdict is not_shown, but its interval is clear of zero and the change above the noise floor"


def _retention(result: Result) -> Iterator[str]:
    r = result.retention
    if r is None:
        return
    for model, value in (("seed", r.seed), ("candidate", r.candidate)):
        row = result.row("retention", model)
        if row and _differ(value, row.rate(result.metric)):
            yield f"retention of the {model} is {value}, the table has {row.rate(result.metric)}"
    if r.seed is None or r.candidate is None:
        return
    delta = r.candidate - r.seed
    if _differ(r.delta, delta):
        yield f"the retention delta {r.delta} is not candidate - seed = {delta:.6f}"
    on_edge = r.limit is not None and math.isclose(delta, r.limit, abs_tol=TOLERANCE)
    if r.limit is not None and r.within is not None and not on_edge and r.within != (delta <= r.limit):
        yield f"retention changed by {delta:+.6f} against a limit of {r.limit}, yet within is {r.within}"


def _selection(result: Result) -> Iterator[str]:
    selected = result.selection.selected if result.selection else None
    if not result.curve or selected in (None, "seed"):
        return
    point = next((p for p in result.curve if p.update == selected), None)
    if point is None:
        yield f"update {selected} was selected, but the curve has no such checkpoint"
        return
    if not point.eligible:
        yield f"update {selected} was selected, but the curve calls it not eligible"
    for split in ("dev", "retention"):
        row = result.row(split, "candidate")
        value = getattr(point, split)
        if row and _differ(value, row.rate(result.metric)):
            yield f"the selected checkpoint's {split} is {value}, the table has {row.rate(result.metric)}"


def _ending(result: Result) -> Iterator[str]:
    if result.termination_reason != "candidate_wins":
        return
    if result.comparison is None or result.comparison.verdict != "better":
        verdict = result.comparison.verdict if result.comparison else "absent"
        yield f"it ended as candidate_wins, but the verdict of the comparison is {verdict}"
    if result.selection and result.selection.selected == "seed":
        yield "it ended as candidate_wins, but the seed was selected"
    if result.retention and result.retention.within is False:
        yield "it ended as candidate_wins, but retention is outside its limit"


def _slices(result: Result) -> Iterator[str]:
    row = result.row("test", "seed")
    for what, slices in (("speaker", result.by_speaker), ("language", result.by_lang)):
        total = sum(s.rows for s in slices)
        if row and slices and total != row.rows:
            yield f"the rows by {what} add up to {total}, the test has {row.rows}"


def _changes(result: Result) -> Iterator[str]:
    seed, candidate = result.row("test", "seed"), result.row("test", "candidate")
    if not (result.changes and seed and candidate):
        return
    clips = sum(change.clips for change in result.changes)
    if clips != seed.rows:
        yield f"the changes by clip cover {clips} clips, the test has {seed.rows}"
    net = sum(change.errors * change.clips for change in result.changes)
    if seed.errors is not None and candidate.errors is not None and net != candidate.errors - seed.errors:
        yield f"the changes by clip add up to {net:+d} errors, the table to {candidate.errors - seed.errors:+d}"
