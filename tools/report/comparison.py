"""The plots of `rehear compare`: the change of every clip, and both systems' rates by block."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.errors import UsageError
from tools.report import words
from tools.report.canvas import LIGHT, Theme, draw, name_label
from tools.report.figures import MOST_SPEAKERS, change_bars, dumbbells

SYSTEMS = ("a", "b")


def comparison_figures(document: Mapping[str, Any], theme: Theme = LIGHT) -> dict[str, bytes]:
    """File name -> PNG bytes for the document of `rehear compare`; the same document gives the same bytes.

    Blocks without reference units have no rate and are left out of the second plot.
    """
    metric, by = words.metric_name(document["metric"]), document["block_by"]
    blocks = [
        (name_label(one["name"], n), one["errors_a"] / one["reference_units"], one["errors_b"] / one["reference_units"])
        for n, one in enumerate(document["by_block"], 1)
        if one["reference_units"]
    ]
    changes = [(one["errors"], one["clips"]) for one in document["clip_changes"]]
    fewer, same, more = (sum(n for errors, n in changes if (errors > 0) - (errors < 0) == sign) for sign in (-1, 0, 1))
    title = f"Clips by change: {fewer} fewer errors, {same} as many, {more} more"
    label = f"change in {words.unit(document['metric'], 1)} errors of a clip, b minus a"
    made = {"clip_changes.png": draw(lambda fig, t: change_bars(fig, t, changes, title, label), 3.0, theme)}
    if blocks:
        height = 5.6 if len(blocks) > MOST_SPEAKERS else 1.5 + 0.28 * len(blocks)
        made[f"by_{by}.png"] = draw(
            lambda fig, t: dumbbells(fig, t, blocks, f"{metric} of {len(blocks)} blocks by {by}", SYSTEMS),
            height,
            theme,
        )
    return made


def write_comparison_figures(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes the plots into `folder` and returns their paths. Raises UsageError where it cannot."""
    figures = comparison_figures(document)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, png in figures.items():
            (folder / name).write_bytes(png)
    except OSError as error:
        raise UsageError(
            f"Plots cannot be written to {folder} ({error.strerror or error}): choose a folder."
        ) from error
    return [folder / name for name in figures]
