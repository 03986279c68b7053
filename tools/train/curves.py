"""A run's curves: in the terminal as one line of blocks a figure, and as a PNG. From metrics.jsonl alone.

python -m tools.train.curves RUN_FOLDER      prints them and writes RUN_FOLDER/curves.png
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from tools.errors import CheckError, UsageError
from tools.train.metrics import Line, final_view

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = "·"
WIDTH = 48
SHOWN = (
    ("offered_reward", "reward, all offered"),
    ("reward", "reward, retained"),
    ("contrast_share", "contrast share"),
    ("refills", "refills"),
    ("loss", "loss"),
    ("grad_norm", "gradient norm"),
    ("ratio_mean", "ratio, mean"),
    ("ratio_p99", "ratio, p99"),
    ("clip_share", "clip share"),
    ("kl_mean", "KL a token, mean"),
    ("kl_max", "KL a token, max"),
    ("entropy", "entropy"),
    ("length_ratio", "length ratio"),
    ("right_share", "right"),
    ("empty_share", "empty"),
    ("truncated_share", "cut at the limit"),
    ("stop_share", "ended by themselves"),
    ("tokens_per_s", "tokens a second"),
    ("seconds", "seconds an update"),
)
PANELS = (
    ("Mean reward", ("offered_reward", "reward")),
    ("Contrast and clipping, shares", ("contrast_share", "clip_share")),
    ("Loss", ("loss",)),
    ("Gradient norm", ("grad_norm",)),
    ("Importance ratio", ("ratio_mean", "ratio_p99")),
    ("KL to the seed model a token", ("kl_mean", "kl_max")),
    ("Entropy a token", ("entropy",)),
    ("Answers: length ratio, shares", ("length_ratio", "empty_share", "truncated_share")),
)


def run_rows(run_dir: Path) -> list[Line]:
    """A run's updates, each once. Raises UsageError where the folder holds none."""
    rows = final_view(run_dir / "metrics.jsonl")
    if not rows:
        raise UsageError(f"{run_dir} holds no run: it has no metrics.jsonl with an update in it")
    for row, (key, _) in product(rows, SHOWN):
        if row.get(key) is not None and not isinstance(row[key], int | float):
            raise CheckError(
                f"{run_dir / 'metrics.jsonl'}: {key} of update {row['update']} is {row[key]!r}, not a number"
            )
    if not any(_has(rows, key) for key, _ in SHOWN):
        raise UsageError(f"{run_dir / 'metrics.jsonl'} holds none of the figures of a run")
    return rows


def runs_of(folder: Path) -> list[Path]:
    """The run folders of a work directory, or the folder itself where it is one. Raises UsageError for neither."""
    if (folder / "metrics.jsonl").is_file():
        return [folder]
    found = sorted(path.parent for path in (folder / "runs").glob("*/metrics.jsonl"))
    if not found:
        raise UsageError(f"{folder} holds no run: give a run's folder, or a work directory that has trained")
    return found


def blocks(values: Sequence[float | None], width: int = WIDTH) -> str:
    """One line of at most `width` blocks, lowest to highest value; neighbours are averaged, a dot stands for none."""
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        values = [_mean(values[a:b]) for a, b in pairwise(edges)]
    known = [v for v in values if v is not None and math.isfinite(v)]
    if not known:
        return GAP * len(values)
    low, span = min(known), max(known) - min(known)
    level = lambda v: round((v - low) / span * (len(BLOCKS) - 1)) if span else 0  # noqa: E731
    return "".join(BLOCKS[level(v)] if v is not None and math.isfinite(v) else GAP for v in values)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def terminal_curves(rows: Sequence[Line], width: int = WIDTH) -> str:
    """The figures that were measured, one a line: name, first value, curve, last value, and its range."""
    lines = [f"{len(rows)} updates"]
    for key, label in SHOWN:
        values = [row.get(key) for row in rows]
        known = [v for v in values if v is not None]
        if known:
            ends = f"{known[0]:>10.4g} {blocks(values, width)} {known[-1]:<10.4g}"
            lines.append(f"  {label:22}{ends} {min(known):.4g} to {max(known):.4g}")
    return "\n".join(lines)


def curves_png(rows: Sequence[Line]) -> bytes:
    """All panels as one PNG; the same rows give the same bytes."""
    from matplotlib.figure import Figure

    panels = [(title, [k for k in keys if _has(rows, k)]) for title, keys in PANELS]
    panels = [(title, keys) for title, keys in panels if keys]
    labels = dict(SHOWN)
    tall = max(1, -(-len(panels) // 2))
    figure = Figure(figsize=(10, 2.4 * tall + 0.4), layout="constrained")
    axes = figure.subplots(tall, 2, squeeze=False, sharex=True).flatten()
    for ax, (title, keys) in zip(axes, panels):
        for key in keys:
            points = [(row["update"], row[key]) for row in rows if row.get(key) is not None]
            dots: dict[str, Any] = {"marker": "."} if len(points) < 3 else {}
            ax.plot(*zip(*points), label=labels[key], linewidth=1.4, **dots)
        ax.set_title(title, fontsize=10, loc="left")
        ax.grid(True, axis="y", alpha=0.3)
        if len(keys) > 1:
            ax.legend(fontsize=8)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[max(0, len(panels) - 2) : len(panels)]:
        ax.set_xlabel("update")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def _has(rows: Sequence[Line], key: str) -> bool:
    return any(row.get(key) is not None for row in rows)


def show(folder: Path) -> tuple[str, list[Path]]:
    """(text, PNG files written beside each run's metrics) of a run's folder or of all runs of a work directory."""
    parts, files = [], []
    found = runs_of(folder)
    for run_dir in found:
        if len(found) > 1 and not final_view(run_dir / "metrics.jsonl"):
            parts.append(f"{run_dir.name}: no update yet")
            continue
        rows = run_rows(run_dir)
        files.append(run_dir / "curves.png")
        try:
            files[-1].write_bytes(curves_png(rows))
        except OSError as error:
            raise UsageError(f"{files[-1]} cannot be written: {error.strerror}") from error
        parts.append(f"{run_dir.name}: {terminal_curves(rows)}")
    return "\n".join(parts), files


if __name__ == "__main__":
    text, _ = show(Path(sys.argv[1]))
    print(text)
