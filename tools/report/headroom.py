"""The verdict of mining as text for a terminal and as one page: what greedy costs, what the samples hold, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from tools.report.words import plain

WIDTH = 78
SAYS = {
    "enough_contrast": "There is something to learn.",
    "all_right": "Nothing to learn here: the answers are right already.",
    "all_wrong": "Reinforcement would not help: no sample is better than another, and all are wrong.",
    "sampler_not_sampling": "The sampler is not sampling: its answers are copies.",
    "references_doubtful": "Do not train: the references do not belong to the audio.",
    "too_little_contrast": "Reinforcement would hardly help: too few clips have samples of different worth.",
    "no_headroom": "Nothing to learn from these samples: the best of them are no better than the first choice.",
    "not_sampled": "Not known: this server gives greedy answers only.",
}


def render_text(document: Mapping[str, Any]) -> str:
    """The verdict for a terminal; ends in a newline."""
    return "\n".join(_lines(document)) + "\n"


def _lines(d: Mapping[str, Any]) -> Iterator[str]:
    verdict, figures = d["verdict"], d["figures"]
    yield f"{plain(d['name'])}: {SAYS.get(verdict['reason'], verdict['reason'])}"
    yield ""
    yield f"  model        {plain(d['model']['name'])} ({d['model']['kind']}, {d['model']['digest'][:12]})"
    for row in d["baseline"]:
        yield f"  greedy       {rate(row['value'])} {d['metric']} on {row['split']} ({row['rows']} rows)"
    noise = d["noise"]
    if noise and noise.get("rows"):
        yield f"  noise floor  {noise['differing']} of {noise['rows']} greedy answers differ when decoded again"
    if figures:
        yield from _figures(figures, d["sampling"])
        yield from _repairs(figures["repairs"])
        yield from _strata(figures["strata"])
    if d["labels"]:
        yield from _labels(d["labels"])
    if d["doubtful"]["clips"]:
        yield from _doubtful(d["doubtful"])
    yield ""
    yield f"  {verdict['advice']}"
    yield from _cost(d["cost"], verdict["learn"])
    for text in d["not_tested"]:
        yield f"  not tested   {text}"


def _figures(f: Mapping[str, Any], sampling: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    how = f"given ({sampling['given']})" if "given" in sampling else f"at temperature {sampling['temperature']}"
    yield f"  On {f['clips']} mined clips, {f['answers']} answers {how}:"
    yield f"  greedy       {rate(f['greedy'])} {f['metric']}"
    yield f"  one sample   {rate(f['mean_sample'])}"
    yield f"  consensus    {rate(f['consensus'])}   the sample closest to the others: no reference needed, no training"
    steps = "  ".join(f"{b['k']}: {rate(b['rate'])}{_of(b, f)}" for b in f["best_of"] if b["k"] > 1)
    yield f"  best of      {steps}"
    if f["headroom"] is not None:
        share = f" ({100 * f['relative']:.0f} % of the greedy errors)" if f["greedy"] else ""
        yield f"  headroom     {rate(f['headroom'])}{share}"
    if f["interval"]:
        low, high = f["interval"]
        yield f"               95 % interval {rate(low)} to {rate(high)}, {f['blocks']} blocks by {f['block_by']}"
        if low <= 0 < (f["headroom"] or 0.0):
            yield "               not shown at this size: the best samples may be no better than greedy; mine more clips"
    else:
        yield f"               no interval: {f['blocks']} {f['block_by']} block(s), ten are needed"


def _of(best: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """On how many clips, where not all have so many answers: those sampled on are the harder ones."""
    return "" if best["clips"] == figures["clips"] else f" (on {best['clips']} clips)"


def _repairs(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"  {'what the best samples repair':<46}{'errors':>8}{'gone':>7}{'anew':>7}"
    for r in rows:
        yield f"  {r['what']:<46}{r['errors']:>8}{r['repaired']:>7}{r['anew']:>7}"


def _strata(rows: list[Mapping[str, Any]]) -> Iterator[str]:
    yield ""
    yield f"  {'stratum':<34}{'clips':>6}{'contrast':>10}{'better':>8}{'greedy':>9}{'best':>9}"
    for s in rows:
        yield (
            f"  {plain(s['name'])[:34]:<34}{s['clips']:>6}{s['contrast_share']:>10.2f}{share(s['better_share']):>8}"
            f"{rate(s['greedy']):>9}{rate(s['oracle']):>9}"
        )


def _labels(report: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    for name in ("strict", "parsed"):
        r = report[name]
        yield (
            f"  {name:<13}greedy right {share(r['greedy'])}, one sample {share(r['mean_sample'])}, any of them "
            f"{share(r['oracle'])}, no label in {share(r['invalid'])}"
        )
    yield f"  {'label':<22}{'pool':>6}{'mined':>7}{'contrast':>10}{'better':>8}{'greedy right':>14}"
    for c in report["strict"]["classes"]:
        label = plain(c["label"])[:22]
        yield f"  {label:<22}{c['pool']:>6}{c['clips']:>7}{c['contrast']:>10}{c['better']:>8}{c['greedy_right']:>14}"
    for key, what in (
        ("uncovered", "not mined at all"),
        ("without_contrast", "no contrast"),
        ("never_right", "never right"),
    ):
        if report[key]:
            yield f"  {what}: {', '.join(map(plain, report[key]))}"
    if report["format"]:
        yield f"  {share(report['format'])} of the answers name the label in a form only a parser understands"


def _doubtful(d: Mapping[str, Any]) -> Iterator[str]:
    clips = d["clips"]
    yield ""
    yield f"  {len(clips)} references to listen to: {', '.join(map(plain, clips[:8]))}{' ...' if len(clips) > 8 else ''}"
    for clip, other in list(d["fits"].items())[:5]:
        yield f"    {plain(clip)} is answered with the words of {plain(other)}"


def _cost(cost: Mapping[str, Any], learn: bool) -> Iterator[str]:
    if not learn:
        return
    yield ""
    for name, what in (("smallest", "the smallest informative run"), ("whole", f"the run of {cost['preset']}")):
        c = cost[name]
        minutes = c["cpu_minutes_worst"]
        price = (
            "to be paid where it is trained"
            if minutes is None
            else f"{minutes:.1f} CPU minutes at worst, test included"
        )
        yield (
            f"  {what}: {c['updates']} updates, {c['checkpoints']} checkpoints, {c['answers']} answers trained on "
            f"({c['sampled_answers_worst']} sampled at worst); {price}"
        )


def rate(value: float | None) -> str:
    """A rate with four digits, as everywhere."""
    return "n/a" if value is None else f"{value:.4f}"


def share(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }}
pre {{ font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; }}
svg text {{ font: 12px system-ui, sans-serif; fill: currentColor; }}
</style></head><body>
<h1>{title}</h1>
<p>{says}</p>
{bars}
<pre>{text}</pre>
</body></html>
"""


def render_html(document: Mapping[str, Any]) -> str:
    """One self-contained page: the sentence, the error rates as bars, and the text."""
    says = SAYS.get(document["verdict"]["reason"], document["verdict"]["reason"])
    return PAGE.format(
        title=escape(f"Headroom of {plain(document['name'])}"),
        says=escape(says),
        bars=_bars(document["figures"]),
        text=escape(render_text(document)),
    )


def _bars(figures: Mapping[str, Any] | None) -> str:
    """Greedy, one sample, consensus and best of k as horizontal bars on one scale."""
    if not figures:
        return ""
    named = [("greedy", figures["greedy"]), ("one sample", figures["mean_sample"]), ("consensus", figures["consensus"])]
    named += [(f"best of {b['k']}{_of(b, figures)}", b["rate"]) for b in figures["best_of"] if b["k"] > 1]
    held = [(name, value) for name, value in named if value is not None]
    top = max((value for _, value in held), default=0.0) or 1.0
    rows = []
    for i, (name, value) in enumerate(held):
        y, width = 24 * i, 360 * value / top
        rows.append(
            f'<text x="190" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="200" y="{y + 3}" width="{width:.1f}" height="16" fill="currentColor" opacity="0.55"/>'
            f'<text x="{206 + width:.1f}" y="{y + 15}">{value:.4f}</text>'
        )
    label = ", ".join(f"{name} {value:.4f}" for name, value in held)
    return f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 640 {24 * len(held)}" width="640">{"".join(rows)}</svg>'
