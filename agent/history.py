"""A work directory's own git repository, through GitPython: one commit a state, and the ledger's earlier revisions.

Nothing of the user's git set-up reaches in (no hooks, no signing, no line-end conversion), and nothing of ours out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from git import Git
from git.exc import GitCommandError, GitCommandNotFound

from agent.disk import writing
from tools.errors import UsageError

TRAILER = re.compile(r"^Ledger: (\d+) ([0-9a-f]{64})$", re.MULTILINE)
TRIES = 4


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit: `records` and `head` are the ledger's, as its message carries them (None where it does not)."""

    sha: str
    records: int | None
    head: str | None


class History:
    """The repository of `workdir`. Raises UsageError where git is missing or refuses."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir.absolute()
        self.folder = self.workdir / ".git"
        self._git = Git(str(self.workdir))
        name = {"NAME": "rehear", "EMAIL": "rehear@localhost"}
        self._git.update_environment(
            GIT_DIR=str(self.folder),
            GIT_WORK_TREE=str(self.workdir),
            GIT_INDEX_FILE=str(self.folder / "index"),
            GIT_CONFIG_GLOBAL=os.devnull,
            GIT_CONFIG_NOSYSTEM="1",
            GIT_TERMINAL_PROMPT="0",
            **{f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in name.items()},
        )

    @property
    def exists(self) -> bool:
        return (self.folder / "HEAD").is_file()

    def init(self, ignore: str) -> None:
        """Make the repository where there is none, clear what a kill left locked, and write its .gitignore."""
        if not self.exists:
            self._run("init", "-q", "-b", "main")
        self._unlock()
        path = self.workdir / ".gitignore"
        if not path.is_file() or path.read_text(encoding="utf-8") != ignore:
            with writing(path):
                path.write_text(ignore, encoding="utf-8")

    def commit(self, subject: str, records: int, head: str) -> str:
        """Everything that is not ignored, as one commit that carries the ledger's count and head. Returns its id."""
        self._run("add", "-A")
        message = f"{subject}\n\nLedger: {records} {head}"
        self._run("commit", "-q", "--allow-empty", "--no-verify", "--no-gpg-sign", "-m", message)
        return self._run("rev-parse", "HEAD")

    def _run(self, *args: str) -> str:
        """One git command; tried again when a lock of a killed run, or a signal to the group, got in its way."""
        for attempt in range(1, TRIES + 1):
            try:
                return str(self._git.execute(["git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", *args]))
            except GitCommandNotFound as err:
                raise UsageError("git is not installed: a work directory is a git repository, install git") from err
            except GitCommandError as err:
                if attempt == TRIES:
                    said = " ".join(str(err.stderr).split())[:300]
                    raise UsageError(f"git {args[0]} failed in {self.workdir}: {said}") from err
                time.sleep(0.1 * attempt)
                self._unlock()
        raise AssertionError("unreachable")

    def _unlock(self) -> None:
        """Remove git's lock files: the caller holds the session's lock, so their owners are dead."""
        for pattern in ("*.lock", "refs/heads/*.lock"):
            for lock in self.folder.glob(pattern):
                lock.unlink(missing_ok=True)

    def revisions(self, path: str | None = None) -> list[Revision]:
        """All commits from the oldest on, or only those that touched `path`."""
        if not self.exists:
            return []
        where = ["--", path] if path else []
        try:
            out = self._git.execute(["git", "log", "--reverse", "--topo-order", "--format=%H%x00%B%x00%x00", *where])
        except GitCommandError:
            return []
        return [_revision(part) for part in str(out).split("\0\0") if part.strip()]

    def blob(self, sha: str, path: str) -> bytes | None:
        """The bytes of a file at a commit, None where it was not there."""
        try:
            return bytes(
                self._git.execute(
                    ["git", "cat-file", "blob", f"{sha}:{path}"], stdout_as_string=False, strip_newline_in_stdout=False
                )
            )
        except GitCommandError:
            return None

    def files(self, sha: str, under: str = "") -> Iterator[str]:
        """Paths of the files of a commit."""
        listing = ["git", "ls-tree", "-r", "-z", "--name-only", sha, *([under] if under else [])]
        yield from (name for name in str(self._git.execute(listing)).split("\0") if name)

    def faults(self) -> str:
        """What `git fsck` has to say, empty when the repository is sound."""
        try:
            self._git.execute(["git", "fsck", "--no-dangling", "--no-progress"])
            return ""
        except GitCommandError as err:
            return " ".join(f"{err.stdout} {err.stderr}".split())


def _revision(part: str) -> Revision:
    sha, _, message = part.strip("\n").partition("\0")
    found = TRAILER.search(message)
    return Revision(sha=sha, records=int(found[1]) if found else None, head=found[2] if found else None)
