"""What a reader who has been fooled before would ask next, answered from the result's own numbers.

Every rule yields a sentence when it applies. They stand right under the verdict, not in an appendix.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.report.parts import Slice, TableRow
from tools.report.schema import Result
from tools.report.words import (
    LABEL_METRICS,
    UNITS,
    amount,
    budget_unit,
    count,
    metric_name,
    percent,
    plain,
    plural,
    rate,
    signed,
    unit,
)


def caveats(result: Result) -> list[str]:
    """Sentences to read beside the headline, gravest first."""
    rules = (_opening, _verdict, _labels, _retention, _errors, _slices, _profiles, _runs, _data, _machine)
    return [sentence for rule in rules for sentence in rule(result)]


def _opening(result: Result) -> Iterator[str]:
    if result.data.reused_benchmark or (result.test_open and result.test_open.reused):
        yield "The test is a reused benchmark: it had been looked at before this run."


def _verdict(result: Result) -> Iterator[str]:
    c = result.comparison
    if c is None:
        if result.trained():
            yield "The test was not evaluated: there is no final figure."
        return
    if c.block_by != "speaker":
        yield f"The interval is by {plain(c.block_by)}: one speaker's rows may lie in several, which narrows it."
    if c.noise_floor:
        yield f"The seed differs from itself by {rate(c.noise_floor)} in other batches: smaller changes are noise."
    if c.verdict == "too_few_blocks":
        yield f"{plural(c.blocks, c.block_by)} cannot stand for {c.block_by}s in general."


def _labels(result: Result) -> Iterator[str]:
    part = result.labels
    if part is None:
        return
    for c in part.compared:
        name = "the comparator without training" if c.reading == "comparator" else f"the {plain(c.reading)} reading"
        if c.seed is not None and c.candidate is not None and c.candidate >= c.seed:
            yield f"Under {name} the gain is gone ({rate(c.seed)} to {rate(c.candidate)})."
    metric = result.metric
    through = next((c for c in part.compared if c.reading == "comparator"), None)
    row = result.row("test", "candidate")
    if through and row and through.seed is not None and (row.rate(metric) or 0.0) >= through.seed:
        yield (
            f"The candidate's {metric_name(metric)} {rate(row.rate(metric))} is no lower than the {rate(through.seed)} "
            "that aliases, priors and parsing fitted on dev give the seed without any training."
        )


def _retention(result: Result) -> Iterator[str]:
    r = result.retention
    if r is None or r.seed is None:
        if result.row("retention", "seed"):
            return
        yield "Retention is unmeasured: whether other speech got worse is not known."
    elif r.within is False:
        yield f"Retention is outside its limit: {signed(r.delta)} against {signed(r.limit)}."


def _pair(result: Result) -> tuple[TableRow, TableRow] | None:
    seed, candidate = result.row("test", "seed"), result.row("test", "candidate")
    return (seed, candidate) if seed and candidate else None


def _errors(result: Result) -> Iterator[str]:
    pair = _pair(result)
    if pair is None:
        return
    seed, candidate = pair
    for name in ("insertions", "deletions", "substitutions"):
        before, after = getattr(seed, name), getattr(candidate, name)
        if None not in (before, after) and after > before:
            yield f"Test {name} rose from {count(before)} to {count(after)}."
    for name, what in (("empty", "empty outputs"), ("truncated", "outputs cut at the limit"), ("loops", "loops")):
        if getattr(candidate, name):
            before, after = getattr(seed, name), getattr(candidate, name)
            yield f"The candidate gave {what} on {plural(after, 'test row')} (seed: {count(before)})."
    if candidate.empty_references:
        rows = plural(candidate.empty_references, "test row")
        yield f"{rows} without reference {unit(result.metric)}: any output there counts as insertions."


def _worse(slices: list[Slice]) -> list[Slice]:
    return [s for s in slices if s.seed is not None and s.candidate is not None and s.candidate > s.seed]


def _slices(result: Result) -> Iterator[str]:
    for noun, slices in (("speaker", result.by_speaker), ("language", result.by_lang)):
        worse = _worse(slices)
        if worse:
            hardest = max(worse, key=lambda s: (s.candidate or 0) - (s.seed or 0))
            yield (
                f"{len(worse)} of {plural(len(slices), noun)} got worse, most of all {plain(hardest.name)} "
                f"({rate(hardest.seed)} to {rate(hardest.candidate)})."
            )


def _profiles(result: Result) -> Iterator[str]:
    c = result.comparison
    for p in result.profiles:
        if not c or c.verdict != "better" or p.seed is None or p.candidate is None:
            continue
        if p.candidate >= p.seed:
            change = f"{rate(p.seed)} to {rate(p.candidate)}"
            yield f"Under the {plain(p.profile)} normaliser the gain on {plain(p.split)} is gone ({change})."


def _runs(result: Result) -> Iterator[str]:
    if len(result.registrations) > 1:
        yield f"{len(result.registrations)} runs were registered; the figures are those of the one selected on dev."
    elif result.comparison and result.trained():
        yield "One training run with one random seed: its luck is not in the interval."
    ratios = [p.ratio_p99 for p in result.training if p.ratio_p99 is not None]
    if ratios and all(abs(value - 1) < 1e-9 for value in ratios):
        yield "The importance ratio never moved from 1: clipping had no part in this training."


def _data(result: Result) -> Iterator[str]:
    data = result.data
    if data.quarantined_count:
        yield f"Rows that could not be used and took no part: {count(data.quarantined_count)}."
    for finding in data.findings:
        if finding.severity in ("warn", "block"):
            yield f"Data check {plain(finding.check)}: {plain(finding.text)}"


def _machine(result: Result) -> Iterator[str]:
    if result.provenance.source.get("dirty"):
        yield "The source tree had uncommitted changes: the commit alone does not reproduce this run."
    b = result.budget
    if b and b.spent is not None and b.cap is not None and b.spent > b.cap:
        yield f"The budget was overrun: {amount(b.spent)} of {amount(b.cap)} {budget_unit(b.unit)}."
    m = result.mining
    if m and m.truncated_share:
        yield f"{percent(m.truncated_share)} of the mined answers were cut at the token limit."


def units_note(result: Result) -> str:
    """What the counts count, in a line."""
    if result.metric in LABEL_METRICS:
        macro = " averaged over the classes" if result.metric == "macro_error" else ""
        return (
            f"{metric_name(result.metric)} = share of wrong answers, strictly read{macro}; another label is a substitution, "
            "no label a deletion."
        )
    if result.metric not in UNITS:
        return f"The metric is {metric_name(result.metric)}."
    what = f"(insertions + deletions + substitutions) / reference {unit(result.metric)}"
    return f"{metric_name(result.metric)} = {what}, corpus totals, never clipped."
