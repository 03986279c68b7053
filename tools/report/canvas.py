"""Paper, ink and type for the figures, and a PNG writer whose bytes depend on the drawing alone.

Seed is orange and hollow, candidate blue and filled: told apart by colour-blind eyes and in grey print.
Needs matplotlib, imported when a figure is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tools.report.words import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.0  # inches: 10 pt reads as 10 pt at 700 px
DPI = 180


@dataclass(frozen=True)
class Theme:
    paper: str
    ink: str
    muted: str
    soft: str
    seed: str
    candidate: str


LIGHT = Theme(paper="#ffffff", ink="#1b2430", muted="#5a6572", soft="#e4e8ed", seed="#b45a00", candidate="#0a5fb0")
DARK = Theme(paper="#171c23", ink="#e4eaf1", muted="#9ba7b4", soft="#2e3742", seed="#f2a654", candidate="#62b0ff")


@contextmanager
def style(theme: Theme) -> Iterator[None]:
    """Matplotlib's defaults plus ours, whatever the machine's own settings are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.family": "DejaVu Sans",
                "font.size": 10,
                "figure.facecolor": theme.paper,
                "axes.facecolor": theme.paper,
                "axes.edgecolor": theme.muted,
                "axes.labelcolor": theme.muted,
                "axes.titlecolor": theme.ink,
                "axes.titlesize": 10.5,
                "axes.titleweight": "bold",
                "axes.titlelocation": "left",
                "axes.titlepad": 8,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.grid": True,
                "axes.axisbelow": True,
                "grid.color": theme.soft,
                "grid.linewidth": 0.8,
                "text.color": theme.ink,
                "text.parse_math": False,
                "xtick.color": theme.muted,
                "ytick.color": theme.muted,
                "lines.linewidth": 1.8,
                "legend.frameon": False,
                "legend.fontsize": 9.5,
                "legend.labelcolor": theme.ink,
            }
        )
        yield


def draw(plot: Callable[[Figure, Theme], None], height: float, theme: Theme) -> bytes:
    """The PNG of `plot` on a figure of WIDTH x `height` inches; no time, name or version inside."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style(theme):
        figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        plot(figure, theme)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


def engine() -> str:
    """What draws the figures; other versions may give other bytes for the same data."""
    import matplotlib

    return f"matplotlib {matplotlib.__version__}"


def name_label(text: str, number: int, longest: int = 20) -> str:
    """A name for a tick label; one that the font cannot draw is shown as its number in the table."""
    text = plain(text)
    if any(ord(ch) not in _glyphs() for ch in text):
        return f"no. {number}"
    return text if len(text) <= longest else text[: longest - 1] + "…"


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


def quiet(axes: Axes, grid: str) -> None:
    """Only the grid lines that are read along: "x", "y" or "" for none."""
    axes.grid(False)
    if grid:
        axes.grid(True, axis=grid)  # type: ignore[arg-type]
    axes.tick_params(length=0)
