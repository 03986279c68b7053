"""All renderings of a result: written next to it, or checked against what lies there.

The same result gives the same bytes with the same renderer and the same matplotlib. The page names both, so that a
check by another version says `not_checked` for the pictures and still compares every word.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.report.canvas import DARK, LIGHT, engine
from tools.report.figures import PLOTS, figures
from tools.report.html import render_html
from tools.report.model_card import render_model_card
from tools.report.schema import Result, load_result
from tools.report.terminal import render_terminal

RENDERER = "1"
PICTURE = re.compile(rb"data:image/png;base64,[A-Za-z0-9+/=]*")
GENERATOR = re.compile(rb"rehear report [\w.]+, (matplotlib [\w.+-]+)")


@dataclass(frozen=True)
class RenderCheck:
    """What a check of the rendered files found; paths are relative to the report's folder.

    `differing`: not what result.json renders to. `missing`: not there. `not_checked`: (path, why).
    """

    differing: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    not_checked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.differing or self.missing)


def render_files(result: Result) -> dict[str, bytes]:
    """Path relative to the report's folder -> bytes of report.html, figures/*.png, model_card.md and summary.txt."""
    light = figures(result, LIGHT)
    page = render_html(result, light, figures(result, DARK), f"rehear report {RENDERER}, {engine()}")
    made = {f"figures/{name}": png for name, png in light.items()}
    made["model_card.md"] = render_model_card(result).encode("utf-8")
    made["summary.txt"] = render_terminal(result).encode("utf-8")
    made["report.html"] = page.encode("utf-8")
    return made


def render_all(workdir: Path | str) -> dict[str, Path]:
    """Render `workdir`/report/result.json beside it; relative path -> path written.

    Files are replaced whole; figures that the result no longer has are removed. Raises UsageError where there is no
    result, CheckError where it is not one or contradicts itself.
    """
    folder = Path(workdir) / "report"
    made = render_files(load_result(folder / "result.json"))
    for name in PLOTS:
        if f"figures/{name}" not in made:
            (folder / "figures" / name).unlink(missing_ok=True)
    return {name: _write(folder / name, data) for name, data in made.items()}


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.tmp")
    scratch.write_bytes(data)
    os.replace(scratch, path)
    return path


def check_rendering(workdir: Path | str) -> RenderCheck:
    """Compare what lies in `workdir`/report with what its result.json renders to; writes nothing.

    Raises as render_all does.
    """
    folder = Path(workdir) / "report"
    result = load_result(folder / "result.json")
    if result.renderer != RENDERER:
        return RenderCheck(not_checked=[("*", f"rendered by version {result.renderer}, this is version {RENDERER}")])
    found = RenderCheck()
    made = render_files(result)
    other = _other_engine(folder / "report.html")
    for name, data in made.items():
        _compare(folder, name, data, other, found)
    for name in PLOTS:
        if f"figures/{name}" not in made and (folder / "figures" / name).exists():
            found.differing.append(f"figures/{name}")
    return found


def _compare(folder: Path, name: str, data: bytes, other: str, found: RenderCheck) -> None:
    try:
        there = (folder / name).read_bytes()
    except OSError:
        found.missing.append(name)
        return
    if other and name.endswith(".png"):
        found.not_checked.append((name, f"drawn by {other}, here is {engine()}"))
        return
    if other and name.endswith(".html"):
        there, data = _words_only(there), _words_only(data)
        found.not_checked.append((f"{name} (pictures)", f"drawn by {other}, here is {engine()}"))
    if there != data:
        found.differing.append(name)


def _other_engine(page: Path) -> str:
    """The matplotlib that drew the page on disk, if it is not the one here."""
    try:
        named = GENERATOR.search(page.read_bytes())
    except OSError:
        return ""
    name = named[1].decode("ascii") if named else engine()
    return "" if name == engine() else name


def _words_only(page: bytes) -> bytes:
    return GENERATOR.sub(b"(generator)", PICTURE.sub(b"(picture)", page))
