"""Writing files so that a kill leaves the old or the new one, and a full or read-only disk leaves a clear sentence."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.errors import UsageError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError met while writing `path` into a UsageError of one sentence."""
    try:
        yield
    except OSError as err:
        raise UsageError(_sentence(path, err)) from err


def _sentence(path: Path, err: OSError) -> str:
    if err.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left to write {path} ({_free(path)} bytes free): make room and run again, nothing is lost"
    if err.errno == errno.EROFS:
        return f"{path} is on a read-only disk: choose another work directory"
    if err.errno in (errno.EACCES, errno.EPERM):
        return f"{path} may not be written by this user: change its permissions or choose another work directory"
    if err.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST):
        return f"{path} cannot be written, something else is in the way: move it aside"
    return f"{path} cannot be written: {err.strerror or err}"


def _free(path: Path) -> int:
    folder = path if path.is_dir() else path.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk, so that a new file's name outlives a power cut."""
    if os.name == "nt":  # folders cannot be opened there
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomic(path: Path, data: bytes | str) -> str:
    """Write beside the file, force to disk, rename; returns the sha256. Raises UsageError where the disk refuses."""
    raw = data.encode() if isinstance(data, str) else data
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = path.with_name(f".{path.name}.tmp")
        with open(temp, "wb") as out:
            out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temp, path)
        sync_folder(path.parent)
    return hashlib.sha256(raw).hexdigest()
