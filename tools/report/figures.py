"""The five figures of a report. `figures(result)` draws those that the result has data for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tools.report import words
from tools.report.canvas import LIGHT, Theme, draw, name_label, quiet
from tools.report.parts import Mining, Slice
from tools.report.schema import Result

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SPEAKERS = 30
MOST_STRATA = 8
WIDEST_CHANGE = 8


def figures(result: Result, theme: Theme = LIGHT) -> dict[str, bytes]:
    """File name -> PNG bytes; the same result gives the same bytes."""
    made: dict[str, bytes] = {}
    for name, (has, height, plot) in PLOTS.items():
        if has(result):
            made[name] = draw(lambda fig, t, plot=plot: plot(fig, t, result), height(result), theme)  # type: ignore[misc]
    return made


def retention_limit(result: Result) -> float | None:
    """The highest retention rate that the declared limit allows, or None."""
    start = result.retention.seed if result.retention else result.baseline("retention")
    declared = result.contract.contract.get("selection") if result.contract else None
    limit = result.retention.limit if result.retention else None
    if limit is None and isinstance(declared, dict):
        limit = declared.get("retention_limit")
    return None if start is None or not isinstance(limit, int | float) else start + limit


def _curve(figure: Figure, theme: Theme, result: Result) -> None:
    shown = ["dev"] + (["retention"] if any(p.retention is not None for p in result.checkpoints) else [])
    axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for ax, split in zip(axes, shown):
        _checkpoints(ax, theme, result, split)
        quiet(ax, "y")
        ax.margins(x=0.06, y=0.18)
    if len(shown) > 1:
        _limit(axes[1], theme, result)
    figure.legend(*_each_once(axes), loc="outside lower center", ncols=4)
    axes[-1].set_xlabel("update (0 is the seed model)")


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _each_once(axes: Iterable[Axes]) -> tuple[list[Artist], list[str]]:
    """Legend handles and labels of several axes, each label once."""
    found = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels())}
    return list(found.values()), list(found)


def _checkpoints(ax: Axes, theme: Theme, result: Result, split: str) -> None:
    points = [(p.update, getattr(p, split), p.eligible) for p in result.checkpoints if getattr(p, split) is not None]
    start = result.baseline(split)
    line = ([(0, start)] if start is not None else []) + [(u, v) for u, v, _ in points]
    ax.plot(*_columns(line), color=theme.candidate, zorder=2)
    for ok, marker, label in ((True, "o", "checkpoint"), (False, "X", "checkpoint, not eligible")):
        xy = [(u, v) for u, v, eligible in points if eligible is ok]
        if xy:
            color = theme.candidate if ok else theme.muted
            ax.scatter(*_columns(xy), s=46, marker=marker, color=color, zorder=3, label=label)
    if start is not None:
        look = {"facecolor": theme.paper, "edgecolor": theme.seed, "linewidth": 1.8}
        ax.scatter([0], [start], s=46, zorder=4, label="seed model", **look)  # type: ignore[arg-type]
    _ring(ax, theme, result, split, line)


def _ring(ax: Axes, theme: Theme, result: Result, split: str, line: Sequence[tuple[int, float]]) -> None:
    """A ring around what was selected, and the seed's and its values in the title."""
    chosen = result.selection.selected if result.selection else None
    ring = [(u, v) for u, v in line if u == (0 if chosen == "seed" else chosen)]
    if ring:
        look = {"facecolor": "none", "edgecolor": theme.ink, "linewidth": 1.6}
        ax.scatter(*_columns(ring), s=200, zorder=5, label="selected", **look)  # type: ignore[arg-type]
    values = [("seed", v) for u, v in line if u == 0] + [("selected", v) for u, v in ring if u]
    metric = words.metric_name(result.metric)
    ax.set_title(f"{metric} on {split}" + "".join(f", {what} {words.rate(v)}" for what, v in values))


def _limit(ax: Axes, theme: Theme, result: Result) -> None:
    limit = retention_limit(result)
    if limit is None:
        return
    low, high = ax.get_ylim()
    high = max(high, limit + 0.25 * (limit - low))
    ax.set_ylim(low, high)
    ax.axhspan(limit, high, color=theme.soft, alpha=0.7, zorder=0)
    ax.axhline(limit, color=theme.ink, linestyle=(0, (5, 3)), linewidth=1.2)
    ax.annotate(
        f"over the limit of {words.rate(limit)}", (0.01, limit), (0, 4), xycoords=ax.get_yaxis_transform(),
        textcoords="offset points", color=theme.muted, fontsize=9.5,
    )  # fmt: skip


def _training(figure: Figure, theme: Theme, result: Result) -> None:
    share = any(p.contrast_share is not None for p in result.training)
    axes = figure.subplots(2 if share else 1, 1, sharex=True, squeeze=False, height_ratios=[3, 2][: 1 + share])[:, 0]
    lines = (
        ("reward", "retained groups (those with contrast, trained on)", theme.candidate, "-"),
        ("offered_reward", "all offered groups", theme.seed, (0, (4, 2))),
    )
    for name, label, color, dash in lines:
        xy = [(p.update, getattr(p, name)) for p in result.training if getattr(p, name) is not None]
        if xy:
            axes[0].plot(*_columns(xy), color=color, linestyle=dash, linewidth=1.5, label=label)
    axes[0].set_title("Mean reward of sampled training answers (not a result: see the test)")
    axes[0].legend(loc="lower right")
    if share:
        xs, ys = zip(*((p.update, p.contrast_share) for p in result.training if p.contrast_share is not None))
        axes[1].fill_between(xs, ys, color=theme.candidate, alpha=0.18, linewidth=0)
        axes[1].plot(xs, ys, color=theme.candidate, linewidth=1.4)
        axes[1].set_ylim(0, 1.05)
        axes[1].set_title("Share of offered groups with contrast")
    for ax in axes:
        quiet(ax, "y")
        ax.margins(x=0.01)
    axes[-1].set_xlabel("update")


def paired(slices: list[Slice]) -> list[tuple[int, Slice, float, float]]:
    """(number in the table, slice, seed rate, candidate rate) of the slices that have both."""
    return [
        (n, s, s.seed, s.candidate) for n, s in enumerate(slices, 1) if s.seed is not None and s.candidate is not None
    ]


def _speakers(figure: Figure, theme: Theme, result: Result) -> None:
    rows = [(name_label(s.name, n), seed, candidate) for n, s, seed, candidate in paired(result.by_speaker)]
    dumbbells(figure, theme, rows, f"Test {words.metric_name(result.metric)} by speaker", ("seed model", "candidate"))


def dumbbells(
    figure: Figure, theme: Theme, blocks: Sequence[tuple[str, float, float]], title: str, systems: tuple[str, str]
) -> None:
    """Rates of two systems by block (label, first, second), the worst of the first at the top; a scatter for many."""
    rows = sorted(blocks, key=lambda r: r[1])
    ax = figure.subplots()
    ax.set_title(title)
    if len(rows) > MOST_SPEAKERS:
        _scatter(ax, theme, systems, [(first, second) for _, first, second in rows])
        return
    for y, (_, first, second) in enumerate(rows):
        ax.plot([first, second], [y, y], color=theme.candidate if second <= first else theme.seed, linewidth=2.2)
    ys = range(len(rows))
    hollow = {"facecolor": theme.paper, "edgecolor": theme.seed, "linewidth": 1.8}
    ax.scatter([r[1] for r in rows], ys, s=44, zorder=3, label=systems[0], **hollow)  # type: ignore[arg-type]
    ax.scatter([r[2] for r in rows], ys, s=48, zorder=4, color=theme.candidate, label=systems[1])
    ax.set_yticks(list(ys), [label for label, _, _ in rows])
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_xlim(left=0)
    quiet(ax, "x")
    figure.legend(loc="outside lower center", ncols=2)


def _scatter(ax: Axes, theme: Theme, systems: tuple[str, str], pairs: list[tuple[float, float]]) -> None:
    top = 1.05 * max(max(pair) for pair in pairs) or 1.0
    ax.plot([0, top], [0, top], color=theme.muted, linestyle=(0, (4, 3)), linewidth=1.2)
    better = [p for p in pairs if p[1] <= p[0]]
    worse = [p for p in pairs if p[1] > p[0]]
    for xy, color, marker, label in (
        (better, theme.candidate, "o", f"{len(better)} no worse"),
        (worse, theme.seed, "^", f"{len(worse)} worse"),
    ):
        if xy:
            ax.scatter(*_columns(xy), s=34, color=color, marker=marker, alpha=0.8, linewidth=0, label=label)
    ax.set(xlim=(0, top), ylim=(0, top), xlabel=systems[0], ylabel=f"{systems[1]} (under the line is better)")
    quiet(ax, "")
    ax.legend(loc="upper left")


def _mining(figure: Figure, theme: Theme, result: Result) -> None:
    assert result.mining is not None
    shares = _shares(result.mining)
    rates, ax = figure.subplots(2, 1, height_ratios=[2 + len(result.mining.strata[:MOST_STRATA]), 1 + len(shares)])
    _rates(rates, theme, result.mining, words.metric_name(result.metric))
    figure.legend(loc="outside upper center", ncols=3)
    for y, (_, value) in enumerate(reversed(shares)):
        ax.barh(y, 1, height=0.42, color=theme.soft)
        ax.barh(y, value, height=0.42, color=theme.candidate)
        ax.annotate(words.percent(value), (1, y), (6, 0), textcoords="offset points", va="center")
    ax.set_yticks(range(len(shares)), [label for label, _ in reversed(shares)])
    ax.set(xlim=(0, 1), xticks=[])
    ax.set_title("Shares of sampled answers and of groups")
    ax.spines[:].set_visible(False)
    quiet(ax, "")


def _rates(ax: Axes, theme: Theme, m: Mining, metric: str) -> None:
    rows = [("all", m.greedy, m.mean_sample, m.oracle)]
    rows += [(name_label(s.name, n), s.greedy, None, s.oracle) for n, s in enumerate(m.strata[:MOST_STRATA], 1)]
    rows.reverse()
    for y, (_, greedy, _, oracle) in enumerate(rows):
        if greedy is not None and oracle is not None:
            ax.plot([greedy, oracle], [y, y], color=theme.muted, linewidth=1.6, zorder=1)
    looks = (
        (1, "greedy", {"marker": "o", "facecolor": theme.paper, "edgecolor": theme.seed, "linewidth": 1.8}),
        (2, "mean sample", {"marker": "|", "color": theme.ink, "linewidth": 2}),
        (3, "oracle: best sample", {"marker": "D", "color": theme.candidate}),
    )
    for column, label, look in looks:
        xy = [(row[column], y) for y, row in enumerate(rows) if row[column] is not None]
        if xy:
            ax.scatter(*_columns(xy), s=90 if column == 2 else 40, label=label, zorder=3, **look)  # type: ignore[arg-type]
    ax.set_yticks(range(len(rows)), [row[0] for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_title(f"{metric} of mined train clips")
    ax.set_xlim(left=0)
    quiet(ax, "x")


def _shares(m: Mining) -> list[tuple[str, float]]:
    named = (
        ("complete answers", m.valid_share),
        ("cut at the limit", m.truncated_share),
        ("groups with contrast", m.contrast_share),
        ("a better one than greedy", m.better_share),
    )
    return [(label, value) for label, value in named if value is not None]


def _changes(figure: Figure, theme: Theme, result: Result) -> None:
    fewer, same, more = change_counts(result)
    title = f"Test clips by change: {fewer} fewer errors, {same} as many, {more} more"
    label = f"change in {words.unit(result.metric, 1)} errors of a clip, candidate minus seed"
    change_bars(figure, theme, [(c.errors, c.clips) for c in result.changes], title, label)


def change_bars(figure: Figure, theme: Theme, changes: Iterable[tuple[int, int]], title: str, label: str) -> None:
    """Clips by change in errors: (second - first system, clips); changes beyond WIDEST_CHANGE share the outer bars."""
    ax = figure.subplots()
    bins: dict[int, int] = {}
    for errors, clips in changes:
        at = max(-WIDEST_CHANGE, min(WIDEST_CHANGE, errors))
        bins[at] = bins.get(at, 0) + clips
    low, high = min(*bins, -1), max(*bins, 1)
    for at in range(low, high + 1):
        n = bins.get(at, 0)
        color = theme.candidate if at < 0 else theme.seed if at > 0 else theme.muted
        ax.bar(at, n, width=0.82, color=color, hatch="///" if at > 0 else None, edgecolor=theme.paper, linewidth=0.6)
        if n:
            ax.annotate(str(n), (at, n), (0, 3), textcoords="offset points", ha="center", fontsize=9.5)
    edge = {-WIDEST_CHANGE: f"≤-{WIDEST_CHANGE}", WIDEST_CHANGE: f"≥+{WIDEST_CHANGE}"}
    ax.set_xticks(range(low, high + 1), [edge.get(at, f"{at:+d}" if at else "0") for at in range(low, high + 1)])
    ax.set_xlabel(label)
    ax.set_title(title)
    ax.margins(y=0.14)
    quiet(ax, "y")


def change_counts(result: Result) -> tuple[int, int, int]:
    """Test clips with fewer, as many and more errors than the seed's."""
    fewer, same, more = (
        sum(c.clips for c in result.changes if (c.errors > 0) - (c.errors < 0) == sign) for sign in (-1, 0, 1)
    )
    return fewer, same, more


def _has_curve(result: Result) -> bool:
    return any(p.dev is not None for p in result.checkpoints)


def _speakers_height(result: Result) -> float:
    n = len(paired(result.by_speaker))
    return 5.6 if n > MOST_SPEAKERS else 1.5 + 0.28 * n


def _mining_height(result: Result) -> float:
    strata = len(result.mining.strata[:MOST_STRATA]) if result.mining else 0
    return 3.0 + 0.28 * strata


PLOTS: dict[
    str, tuple[Callable[[Result], bool], Callable[[Result], float], Callable[[Figure, Theme, Result], None]]
] = {
    "curve.png": (_has_curve, lambda r: 4.6, _curve),
    "training.png": (lambda r: any(p.reward is not None for p in r.training), lambda r: 4.2, _training),
    "speakers.png": (lambda r: len(paired(r.by_speaker)) > 0, _speakers_height, _speakers),
    "mining.png": (lambda r: bool(r.mining and r.mining.oracle is not None), _mining_height, _mining),
    "changes.png": (lambda r: bool(r.changes), lambda r: 3.0, _changes),
}
