"""One self-contained report.html: figures as data URIs, style inline, no script, nothing fetched.

Everything out of the result passes `words.plain` and HTML escaping on its way in, wherever the template prints it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.report import words
from tools.report.caveats import caveats, units_note
from tools.report.schema import Result
from tools.report.terminal import audit_head, in_order

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
DECLARED = (
    ("prompt", "prompt"),
    ("profile", "normaliser"),
    ("scoring", "scoring"),
    ("decoding", "decoding"),
    ("sampling", "sampling"),
    ("reward", "reward"),
    ("selection", "selection"),
    ("random_seed", "random seed"),
)
MARKS = {"better": "▲", "worse": "▼", "not_shown": "=", "too_few_blocks": "?"}


@dataclass(frozen=True)
class Tile:
    """A figure at the top of the page: what, the value, a note under it, the ledger record it comes from."""

    label: str
    value: str
    note: str
    record: int | None = None


@dataclass(frozen=True)
class Source:
    """An evaluation or another ledger record that figures of the page come from."""

    record: int
    what: str
    rows_sha256: str = ""


def render_html(result: Result, light: Mapping[str, bytes], dark: Mapping[str, bytes], generator: str) -> str:
    """The page. `light` and `dark` are the figures (file name -> PNG) for either colour scheme."""
    template = _environment().get_template("report.html")
    return template.render(
        r=result,
        css=_markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        generator=generator,
        headline=result.headline or words.headline(result),
        mark=MARKS.get(result.comparison.verdict, "") if result.comparison else "■",
        tone=result.comparison.verdict if result.comparison else "ended",
        tiles=tiles(result),
        caveats=caveats(result),
        missing=not_reached(result),
        rows=in_order(result),
        units_note=units_note(result),
        declared=declared(result),
        contract=flat(result.contract.contract) if result.contract else [],
        sources=sources(result),
        audit_head=audit_head(result),
        monitors=monitors(result),
        others=others(result),
        figures={name: (_uri(light[name]), _uri(dark[name])) for name in light},
        alts=_alts(result),
        w=words,
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    env.filters.update(short=lambda digest: str(digest)[:12], nb=_unbroken)
    return env


def _finalize(value: Any) -> Any:
    return words.plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _unbroken(text: str) -> str:
    """Escaped text whose percentages do not break across lines."""
    from markupsafe import escape

    return _markup(str(escape(words.plain(text))).replace(" %", "\u00a0%"))


def _markup(text: str) -> str:
    from markupsafe import Markup

    return Markup(text)


def _uri(png: bytes) -> str:
    return _markup("data:image/png;base64," + base64.b64encode(png).decode("ascii"))


def tiles(result: Result) -> list[Tile]:
    """The three or four figures that a reader takes away."""
    metric = words.metric_name(result.metric)
    found = _compared(result, metric) if result.comparison else _seed_only(result, metric)
    if result.retention:
        r = result.retention
        value = words.rate(r.seed) if r.candidate is None else f"{words.rate(r.seed)} → {words.rate(r.candidate)}"
        note = words.retention(result).partition("), ")[2] or "candidate not measured"
        row = result.row("retention", "candidate")
        found.append(Tile(f"Retention {metric}", value, note, row.record if row else None))
    if result.mining and result.mining.oracle is not None:
        m = result.mining
        of = f"best of {m.answers_per_clip}" if m.answers_per_clip else "best sample"
        note = f"{of} on {words.plural(m.clips, 'train clip')}; greedy {words.rate(m.greedy)}"
        found.append(Tile(f"Oracle {metric}", words.rate(m.oracle), note, m.record))
    return found[:4]


def _compared(result: Result, metric: str) -> list[Tile]:
    c = result.comparison
    assert c is not None
    seed, candidate = result.row(c.split, "seed"), result.row(c.split, "candidate")
    counts = "counts not on record"
    if seed and candidate and seed.errors is not None and candidate.errors is not None:
        of = f"{words.count(seed.reference_units)} {words.unit(c.metric)}"
        counts = f"{words.count(seed.errors)} → {words.count(candidate.errors)} errors of {of}"
    record = candidate.record if candidate else None
    moved = f"{words.rate(c.seed)} → {words.rate(c.candidate)}"
    first = Tile(f"{words.plain(c.split).capitalize()} {metric}", moved, counts, record)
    change = words.reduction(result) if words.shows_percentage(result) else words.signed(c.delta)
    label = "Change" if words.shows_percentage(result) else f"Change in {metric} (too few errors for a percentage)"
    return [first, Tile(label, change, words.interval(result), c.record)]


def _seed_only(result: Result, metric: str) -> list[Tile]:
    found = []
    for split in ("test", "dev", "retention"):
        row = result.row(split, "seed")
        if row and not (split == "retention" and result.retention):
            note = f"seed model, {words.plural(row.rows, 'clip')}"
            found.append(Tile(f"{split.capitalize()} {metric}", words.rate(row.rate(result.metric)), note, row.record))
    return found


def not_reached(result: Result) -> list[str]:
    """Stages that this ending has no figures of."""
    stages = (
        ("baseline", bool(result.table)),
        ("mining", result.mining is not None),
        ("training", result.trained()),
        ("selection", bool(result.selection and result.selection.selected is not None)),
        ("test", result.row("test", "seed") is not None),
    )
    return [name for name, reached in stages if not reached]


def declared(result: Result) -> list[tuple[str, str]]:
    """(label, words) of the settings that decide a comparison, as the contract has them."""
    tree = result.contract.contract if result.contract else {}
    rows = []
    for key, label in DECLARED:
        value = tree.get(key)
        if isinstance(value, dict):
            shown = {k: v for k, v in value.items() if "digest" not in k and k != "ids"}
            name = shown.pop("text", None) if key == "prompt" else shown.pop("name", None) or shown.pop("rule", None)
            parts = [] if name is None else [words.value_text(name)]
            rows.append(
                (label, "; ".join(parts + [f"{k.replace('_', ' ')} {words.value_text(v)}" for k, v in shown.items()]))
            )
        elif value is not None:
            rows.append((label, words.value_text(value)))
    return rows


def flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """(dotted key, value) of everything in `tree`, in its own order."""
    rows: list[tuple[str, str]] = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        rows += flat(value, f"{name}.") if isinstance(value, Mapping) and value else [(name, words.value_text(value))]
    return rows


def sources(result: Result) -> list[Source]:
    """Every ledger record that the page cites, in ledger order."""
    found: dict[int, Source] = {}

    def add(record: int | None, what: str, digest: str = "") -> None:
        if record is not None and not (record in found and found[record].rows_sha256):
            found[record] = Source(record, what, digest)

    for row in result.table:
        add(row.record, f"eval {row.eval}", row.rows_sha256)
    for trial in result.prompts:
        add(trial.record, f"eval {trial.eval}")
    for point in result.curve:
        add(point.dev_record, f"eval of update {point.update} on dev")
        add(point.retention_record, f"eval of update {point.update} on retention")
    for run in result.registrations:
        add(run.record, f"registration of {run.run_id}")
    for entry in result.budget.items if result.budget else []:
        add(entry.record, f"settlement of {entry.what}")
    parts = ("data", "contract", "mining", "selection", "test_open", "comparison")
    names = ("data check", "freeze of the contract", "mining", "selection", "opening of the test", "comparison")
    for part, name in zip(parts, names):
        add(getattr(getattr(result, part), "record", None), name)
    return [found[record] for record in sorted(found)]


def monitors(result: Result) -> list[tuple[str, str]]:
    """What shows whether training was healthy: first and last, or the extreme, of each logged quantity."""
    rows = []
    for name, label in (
        ("ratio_p99", "importance ratio, 99th percentile (highest)"),
        ("clip_share", "share of answers clipped (highest)"),
        ("grad_norm", "gradient norm (highest)"),
    ):
        values = [v for p in result.training if (v := getattr(p, name)) is not None]
        if values:
            rows.append((label, words.rate(max(values))))
    for name, label in (
        ("entropy", "entropy (first → last)"),
        ("length_ratio", "length against reference (first → last)"),
    ):
        values = [v for p in result.training if (v := getattr(p, name)) is not None]
        if values:
            rows.append((label, f"{words.rate(values[0])} → {words.rate(values[-1])}"))
    return rows


def others(result: Result) -> list[tuple[str, str]]:
    """(what, why not) of everything that was not selected: the rejected, then the eligible with a higher dev figure."""
    if result.selection is None:
        return []
    rows = [("seed model" if r.update == "seed" else f"update {r.update}", r.why) for r in result.selection.rejected]
    named = {name for name, _ in rows}
    chosen = 0 if result.selection.selected == "seed" else result.selection.selected
    best = next((p.dev for p in result.curve if p.update == chosen), result.baseline("dev") if chosen == 0 else None)
    for point in result.curve:
        name = f"update {point.update}" if point.update else "seed model"
        if point.eligible and point.update != chosen and name not in named:
            against = f" against {words.rate(best)}" if best is not None else ""
            rows.append((name, f"allowed, dev {words.rate(point.dev)}{against}"))
    return rows


def _alts(result: Result) -> dict[str, str]:
    metric = words.metric_name(result.metric)
    return {
        "curve.png": f"{metric} on dev and retention by checkpoint, the selected one ringed, with the retention limit.",
        "training.png": "Mean training reward of retained and of offered groups by update; share with contrast.",
        "speakers.png": f"Test {metric} of each speaker, seed and candidate.",
        "mining.png": f"{metric} of mined train clips: greedy, mean sample and oracle; shares of answers and groups.",
        "changes.png": "Histogram of test clips by change in errors.",
    }
