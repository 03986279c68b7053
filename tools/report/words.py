"""Numbers and verdicts in words, the same in the terminal, the page and the card.

Error rates are shown as ratios (0.378), relative reductions as percentages (42 %), so that the two cannot be taken for
each other. A nearly perfect baseline gets counts and no percentage.
"""

from __future__ import annotations

import math
import re
from typing import Any

from tools.report.parts import Comparison, Item, TableRow
from tools.report.schema import Result

NEAR_PERFECT_ERRORS = 20
NEAR_PERFECT_RATE = 0.01

JOINERS = "\u200c\u200d"  # needed to spell Persian and the Indic scripts
BUDGET_UNITS = {"cpu_minutes": "CPU-minutes", "gpu_hours": "GPU-hours"}
UNITS = {"wer": "word", "cer": "character", "mer": "word or character", "label_error": "label", "macro_error": "label"}
LABEL_METRICS = ("label_error", "macro_error")
VERDICTS = {
    "better": "Better",
    "worse": "Worse",
    "not_shown": "No difference shown",
    "too_few_blocks": "Too few blocks to tell",
}
ENDINGS = {
    "candidate_wins": "The candidate wins",
    "seed_wins": "The seed model stays",
    "not_shown": "No gain shown",
    "too_few_blocks": "Measured, but on too few blocks to claim a gain",
    "no_contrast": "Stopped before training: too little to learn from",
    "recommend_sft": "Stopped before training: fine-tune or collect data first",
    "budget": "Stopped at the budget",
    "stop_budget": "Stopped at the budget",
    "failed": "Stopped by a failure",
    "stop_failed": "Stopped by a failure",
}


_PLURAL = re.compile("(word|character|unit|label)")


def plain(text: object) -> str:
    """One line of printable text: white space is a space, controls and direction marks become visible escapes."""
    return "".join(ch if ch.isprintable() or ch in JOINERS else _visible(ch) for ch in str(text))


def _visible(ch: str) -> str:
    return " " if ch.isspace() else f"\\x{ord(ch):02x}" if ord(ch) < 256 else f"\\u{ord(ch):04x}"


def rate(value: float | None) -> str:
    """A ratio: 0.378; four digits under 0.01; n/a where there is none (no reference units)."""
    if value is None:
        return "n/a"
    return f"{value:.4f}" if 0 < abs(value) < 0.01 else f"{value:.3f}"


def signed(value: float | None) -> str:
    """A change of a ratio: +0.004, -0.027."""
    if value is None:
        return "n/a"
    text = f"{abs(value):.3f}" if abs(value) >= 0.001 else rate(abs(value))
    return text if float(text) == 0 else ("-" if value < 0 else "+") + text


def percent(value: float | None) -> str:
    """A ratio as a percentage: 42 %, 4.2 %, 0.04 %; never rounded to zero unless it is."""
    if value is None:
        return "n/a"
    points = 100 * value
    digits = 0 if abs(points) >= 9.95 or points == 0 else 1
    while digits < 3 and digits and float(f"{points:.{digits}f}") == 0:
        digits += 1
    return f"{points:.{digits}f} %"


def count(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def minutes(seconds: float | None) -> str:
    if seconds is None:
        return "n/a"
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.1f} min"


def plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def metric_name(metric: str) -> str:
    """WER, CER, MER; other metrics in plain words."""
    return metric.upper() if metric in UNITS and metric not in LABEL_METRICS else plain(metric).replace("_", " ")


def budget_unit(unit_name: str) -> str:
    return BUDGET_UNITS.get(unit_name, plain(unit_name).replace("_", " "))


def unit(metric: str, n: int = 2) -> str:
    """What the metric counts: "words", or "word" for n = 1."""
    noun = UNITS.get(metric, "unit")
    return noun if n == 1 else _PLURAL.sub(r"\1s", noun)


def item(entry: Item) -> str:
    """An assumption, a failed trial or an untested setting as one line."""
    if isinstance(entry, str):
        return plain(entry)
    head = entry.get("text") or entry.get("id") or entry.get("what") or ""
    out = plain(head)
    if "value" in entry:
        out += f": {plain(value_text(entry['value']))}"
    why = entry.get("why") or entry.get("because") or entry.get("reason")
    return f"{out} ({plain(why)})" if why else out


def value_text(value: Any) -> str:
    """A setting's value for a reader: JSON-like, without quotes around plain strings."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{k} {value_text(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(value_text(v) for v in value) or "none"
    return str(value) if value != "" else "(empty)"


def near_perfect(seed: TableRow | None, metric: str) -> bool:
    """Is the baseline so good that a percentage of its errors would be unstable?"""
    if seed is None or seed.errors is None:
        return False
    value = seed.rate(metric)
    return seed.errors < NEAR_PERFECT_ERRORS or (value is not None and value < NEAR_PERFECT_RATE)


def shows_percentage(result: Result) -> bool:
    c = result.comparison
    return bool(c and c.error_reduction is not None and not near_perfect(result.row(c.split, "seed"), c.metric))


def interval(result: Result) -> str:
    """The comparison's uncertainty as a phrase, e.g. "95 % interval by 16 speakers: 41 % to 58 %"."""
    c = result.comparison
    if c is None:
        return "no comparison was made"
    blocks = plural(c.blocks, c.block_by)
    if shows_percentage(result) and c.interval:
        return f"95 % interval by {blocks}: {percent(c.interval[0])} to {percent(c.interval[1])}"
    if c.delta_interval and c.blocks >= 10:
        low, high = c.delta_interval
        return f"95 % interval of the change in {metric_name(c.metric)} by {blocks}: {signed(low)} to {signed(high)}"
    if c.verdict == "too_few_blocks":
        return f"no interval: {blocks} only, at least 10 are needed"
    return f"no interval on record ({blocks})"


def reduction(result: Result) -> str:
    """The gain as a phrase: "67 % fewer word errors", or counts where the baseline is nearly perfect."""
    c = result.comparison
    if c is None:
        return "nothing was compared"
    seed, candidate = result.row(c.split, "seed"), result.row(c.split, "candidate")
    if not shows_percentage(result):
        if not (seed and candidate) or seed.errors is None or candidate.errors is None:
            return "no percentage can be given"
        return f"{_errors(seed.errors, c.metric)} before, {count(candidate.errors)} after"
    assert c.error_reduction is not None
    if c.error_reduction == 0:
        return f"as many {unit(c.metric, 1)} errors"
    word = "fewer" if c.error_reduction > 0 else "more"
    return f"{percent(abs(c.error_reduction))} {word} {unit(c.metric, 1)} errors"


def _errors(n: int, metric: str) -> str:
    return plural(n, f"{unit(metric, 1)} error")


def headline(result: Result) -> str:
    """The result in a sentence or two, made from the figures alone; used where the file brings no headline."""
    if result.comparison:
        return f"{_measured(result, result.comparison)} {_meaning(result)}".strip()
    m = result.mining
    if result.selection and result.selection.why:
        return f"{ending(result)}: {plain(result.selection.why)}."
    if result.trained():
        reached = max([p.update for p in result.training] + [p.update for p in result.checkpoints])
        return f"{ending(result)} after update {reached}; {budget(result)}."
    if m and m.contrast_share is not None:
        share = f"{percent(m.contrast_share)} of {plural(m.clips, 'clip')}"
        return (
            f"{ending(result)}. {share} gave answers that differ in reward, "
            f"greedy {metric_name(result.metric)} {rate(m.greedy)}, best sampled answer {rate(m.oracle)}."
        )
    return f"{ending(result)}."


def _measured(result: Result, c: Comparison) -> str:
    seed, candidate = result.row(c.split, "seed"), result.row(c.split, "candidate")
    reused = (result.test_open and result.test_open.reused) or result.data.reused_benchmark
    place = f"On the {'reused benchmark' if reused else 'sealed test'}" if c.split == "test" else f"On {plain(c.split)}"
    if not (seed and candidate) or seed.errors is None or candidate.errors is None:
        return f"{place}, {metric_name(c.metric)} went from {rate(c.seed)} to {rate(c.candidate)}: {interval(result)}."
    move = f"{place}, {unit(c.metric, 1)} errors went from {count(seed.errors)} to {count(candidate.errors)}"
    of = f"of {count(seed.reference_units)} ({metric_name(c.metric)} {rate(c.seed)} to {rate(c.candidate)})"
    gain = f", {reduction(result)}" if shows_percentage(result) else ""
    return f"{move} {of}{gain}; {interval(result)}."


def _meaning(result: Result) -> str:
    assert result.comparison is not None
    if result.selection and result.selection.selected == "seed":
        return "The seed model stays."
    return {
        "better": "The gain is clear of zero.",
        "worse": "The candidate is worse: keep the seed model.",
        "not_shown": "No gain is shown.",
        "too_few_blocks": "No gain is claimed.",
    }[result.comparison.verdict]


def retention(result: Result) -> str:
    """Retention as a sentence fragment, with its limit."""
    r = result.retention
    if r is None or (r.seed is None and r.candidate is None):
        row = result.row("retention", "seed")
        return f"seed {rate(row.rate(result.metric))}; no candidate to compare" if row else "not measured"
    if r.seed is None or r.candidate is None:
        return f"seed {rate(r.seed)}; candidate not measured"
    change = f"{rate(r.seed)} to {rate(r.candidate)} ({signed(r.candidate - r.seed)})"
    if r.limit is None or r.within is None:
        return f"{change}, no limit declared"
    return f"{change}, {'within' if r.within else 'OUTSIDE'} the limit of {signed(r.limit)}"


def oracle(result: Result) -> str:
    """What the sampled answers held: an opportunity, not a promise."""
    m = result.mining
    if m is None or m.oracle is None:
        return "not measured"
    of = f"best of {m.answers_per_clip} answers" if m.answers_per_clip else "best sampled answer"
    where = f"on {plural(m.clips, 'train clip')} (opportunity, not promise)"
    return f"{of} {rate(m.oracle)}, greedy {rate(m.greedy)}, {where}"


def labels(result: Result) -> list[str]:
    """A label task's test answers, read in each way: strictly, parsed, and through the comparator without training."""
    part = result.labels
    if part is None:
        return []
    out = []
    for reading, what in (("strict", "strict"), ("parsed", "parsed"), ("comparator", "comparator without training")):
        told = []
        for model in part.models:
            score = getattr(model, reading)
            if model.split == "test" and score is not None:
                told.append(
                    f"{model.model} accuracy {rate(score.accuracy)}, macro recall {rate(score.macro_recall)}, "
                    f"invalid {percent(score.invalid_rate)}"
                )
        if told:
            out.append(f"{what}: {'; '.join(told)}")
    return out


def budget(result: Result) -> str:
    b = result.budget
    if b is None:
        return "not on record"
    return f"{amount(b.spent)} of {amount(b.cap)} {budget_unit(b.unit)} spent"


def amount(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,.0f}" if math.isclose(value, round(value), abs_tol=1e-9) else f"{value:,.1f}"


def selected(result: Result) -> str:
    """Which checkpoint was chosen, and why."""
    s = result.selection
    if s is None or s.selected is None:
        return "nothing was selected"
    what = "the seed model" if s.selected == "seed" else f"update {s.selected}"
    run = f" of {plain(s.run_id)}" if s.run_id and s.selected != "seed" else ""
    return f"{what}{run}: {plain(s.why)}" if s.why else f"{what}{run}"


def ending(result: Result) -> str:
    return ENDINGS.get(result.termination_reason, plain(result.termination_reason))
