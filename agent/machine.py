"""Which code runs here, with which libraries, on which machine. Reads metadata; imports nothing heavy."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = (
    "rehear",
    "torch",
    "transformers",
    "numpy",
    "jiwer",
    "rapidfuzz",
    "regex",
    "soundfile",
    "soxr",
    "tokenizers",
)


def versions() -> dict[str, str | None]:
    """Versions of Python and of what a figure depends on; None where a library is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


@lru_cache(maxsize=1)
def source() -> dict[str, Any]:
    """{commit, dirty} of the checkout that this code runs from; commit None when it runs from an installed package."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return {"commit": None, "dirty": None}
    from git import Git
    from git.exc import GitError

    try:
        git = Git(str(root))
        commit = str(git.execute(["git", "rev-parse", "HEAD"]))
        dirty = bool(git.execute(["git", "status", "--porcelain", "--untracked-files=no"]))
    except GitError:
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": dirty}


def code() -> str:
    """One word for the `code` field of every record: the commit (+dirty), else the installed version."""
    found = source()
    if found["commit"] is None:
        return f"rehear-{versions()['rehear'] or 'unknown'}"
    return found["commit"] + ("+dirty" if found["dirty"] else "")


def machine() -> dict[str, Any]:
    """{cores, threads, system}: cores this process may use, threads that numeric libraries are told to use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return {
        "cores": cores,
        "threads": int(threads) if threads.isdigit() else cores,
        "system": f"{platform.system()} {platform.machine()}",
    }
