"""Is this machine fit for a run? Looks at it; changes nothing, loads no model."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from agent.machine import machine

LEAST_MEMORY_GB = 4.0
LEAST_DISK_GB = 3.0


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ok, warn (a run works, but) or fail (a run cannot)."""

    what: str
    level: Literal["ok", "warn", "fail"]
    text: str


def doctor_document(folder: Path) -> dict[str, Any]:
    """{ok, findings[{what, level, text}]} for runs with work directories under `folder`."""
    findings = [f for look in LOOKS for f in look(folder)]
    return {"ok": all(f.level != "fail" for f in findings), "findings": [asdict(f) for f in findings]}


def _python(folder: Path) -> Iterator[Finding]:
    fit = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if fit else "fail", sys.version.split()[0] + ("" if fit else ": 3.11 or newer is due"))


def _libraries(folder: Path) -> Iterator[Finding]:
    """Installed versions against those that the figures were measured with."""
    wrong, missing = [], []
    for requirement in importlib.metadata.requires("rehear") or []:
        name, _, pin = requirement.partition("==")
        if "extra ==" in requirement or not pin:
            continue
        try:
            have = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if re.sub(r"\+.*", "", have) != pin.strip():
            wrong.append(f"{name} {have} (tested with {pin.strip()})")
    if missing:
        yield Finding("libraries", "fail", f"not installed: {', '.join(missing)}; run make demo or pip install -e .")
    elif wrong:
        yield Finding("libraries", "warn", f"other versions than tested: {', '.join(wrong)}")
    else:
        yield Finding("libraries", "ok", "those that were tested")


def _cores(folder: Path) -> Iterator[Finding]:
    found = machine()
    few = found["threads"] < found["cores"]
    text = f"{found['cores']} cores, {found['threads']} threads" + (": OMP_NUM_THREADS holds it back" if few else "")
    yield Finding("processor", "warn" if few else "ok", text)


def _memory(folder: Path) -> Iterator[Finding]:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                free = int(line.split()[1]) / 2**20
    except (OSError, ValueError):
        yield Finding("memory", "warn", "cannot be told here")
        return
    low = free < LEAST_MEMORY_GB
    yield Finding("memory", "warn" if low else "ok", f"{free:.1f} GB available" + (", a run may need 4" if low else ""))


def _disk(folder: Path) -> Iterator[Finding]:
    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free / 2**30
    if not os.access(place, os.W_OK):
        yield Finding("disk", "fail", f"{place} cannot be written to: choose another folder")
    elif free < LEAST_DISK_GB:
        yield Finding("disk", "warn", f"{free:.1f} GB free under {place}, a run may need {LEAST_DISK_GB:.0f}")
    else:
        yield Finding("disk", "ok", f"{free:.1f} GB free")


def _git(folder: Path) -> Iterator[Finding]:
    found = shutil.which("git")
    yield Finding(
        "git", "ok" if found else "fail", "there" if found else "not installed: a work directory is a git repository"
    )


def _embedded(folder: Path) -> Iterator[Finding]:
    from tools.embedded.seed import WHEEL, wheel_folder
    from tools.embedded.voices import library_file, voices_folder
    from tools.errors import RehearError

    there = wheel_folder() is not None
    text = (
        "there" if there else f"the wheel with {WHEEL} is not installed: only your own models can be used (make demo)"
    )
    yield Finding("embedded model", "ok" if there else "warn", text)
    try:
        library_file(voices_folder())
        yield Finding("embedded voices", "ok", "there")
    except RehearError:
        yield Finding("embedded voices", "warn", "not installed: rehear demo cannot speak its corpus (make demo)")


def _gpus(folder: Path) -> Iterator[Finding]:
    """Devices that the driver shows; nothing is imported for it."""
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    cuda = "+cpu" not in importlib.metadata.version("torch")
    if gpus and not cuda:
        yield Finding("GPU", "warn", f"{gpus} there, and torch is a build for processors only: it will not be used")
    else:
        yield Finding("GPU", "ok", f"{gpus} there" if gpus else "none: training runs on the processor")


LOOKS: tuple[Callable[[Path], Iterator[Finding]], ...] = (
    _python, _libraries, _cores, _memory, _disk, _git, _gpus, _embedded,
)  # fmt: skip
