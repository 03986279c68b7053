"""The place of a work directory: its folders, what git leaves out of it, and the lock that keeps others away."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from agent.disk import writing
from tools.errors import UsageError

FOLDERS = (".rehear", "data", "rollouts", "runs", "evals", "report")
FILES = ("brief.yaml", "ledger.jsonl", "contract.json", "plan.md", "progress.md", ".gitignore")
IGNORED = """# Big or private files: their digests are in the ledger.
.rehear/
*.wav
*.flac
*.mp3
*.ogg
*.opus
*.sph
*.safetensors
*.pt
*.bin
*.npy
*.tmp
runs/*/checkpoints/
runs/*/export/
"""
TEXTS = """rollouts/*.jsonl
evals/*/rows.jsonl
data/*.jsonl
!data/membership.jsonl
"""


def ignore_file(keep_text: bool) -> str:
    """.gitignore: texts stay out unless the customer lets them be kept."""
    return IGNORED + ("" if keep_text else TEXTS)


def prepare(workdir: Path) -> None:
    """The folders of a work directory, or a clear refusal."""
    if workdir.exists() and not workdir.is_dir():
        raise UsageError(f"{workdir} is a file: a work directory is needed there, choose another --workdir")
    ours = (workdir / ".rehear").is_dir() or (workdir / "ledger.jsonl").is_file()
    if workdir.is_dir() and not ours:
        foreign = sorted(p.name for p in workdir.iterdir())
        if foreign:
            raise UsageError(
                f"{workdir} holds other files ({foreign[0]}): choose an empty folder for the work directory"
            )
    for name in FILES:
        if (workdir / name).exists() and not (workdir / name).is_file():
            raise UsageError(f"{workdir / name} is in the way: it should be a file, move it aside")
    for name in FOLDERS:
        folder = workdir / name
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is in the way: it should be a folder, move it aside")
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)


def locked(workdir: Path) -> FileLock:
    """The held lock of a work directory. Raises UsageError naming the process that holds it."""
    lock = FileLock(workdir / ".rehear" / "lock", timeout=0)
    owner = workdir / ".rehear" / "owner"
    with writing(workdir / ".rehear" / "lock"):
        try:
            lock.acquire()
        except Timeout as err:
            who = owner.read_text(encoding="utf-8").strip() if owner.is_file() else "unknown"
            raise UsageError(f"{workdir} is in use by another process (pid {who}): wait for it, or stop it") from err
    with writing(owner):
        owner.write_text(f"{os.getpid()}\n", encoding="utf-8")
    return lock
