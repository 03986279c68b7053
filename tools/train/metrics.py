"""`metrics.jsonl`: one object an update, flushed to disk, with the attempts of a resumed run told apart."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

from tools.errors import CheckError
from tools.train.checkpoint import full_disk

Line = dict[str, Any]


def _read(path: Path) -> tuple[list[Line], bytes]:
    """Whole lines, and the bytes of a torn last one."""
    body = path.read_bytes() if path.is_file() else b""
    whole, _, torn = body.rpartition(b"\n")
    lines: list[Line] = []
    for number, text in enumerate(whole.split(b"\n") if whole else [], start=1):
        try:
            line = json.loads(text)
            if not isinstance(line, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise CheckError(f"{path} line {number} is not a JSON object: the file was changed by hand") from error
        lines.append(line)
    return lines, torn


def read_metrics(path: Path) -> list[Line]:
    """All whole lines of a metrics file, events included; a torn last line is left out. [] where there is no file."""
    return _read(path)[0]


def final_view(path: Path) -> list[Line]:
    """Each update exactly once, in order: those of a dead attempt that were repeated are left out."""
    rows: dict[int, Line] = {}
    for number, line in enumerate(read_metrics(path), start=1):
        key = {"resume": "from_update", None: "update"}.get(line.get("event"))
        if key and not isinstance(line.get(key), int):
            raise CheckError(f"{path} line {number} has no number as its {key}: the file was changed by hand")
        if line.get("event") == "resume":
            rows = {u: row for u, row in rows.items() if u <= line["from_update"]}
        elif "event" not in line:
            rows[line["update"]] = line
    return [rows[u] for u in sorted(rows)]


class MetricsFile:
    """The single writer of a run's metrics. A torn last line is moved aside when the file is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines, torn = _read(path)
        if torn:
            path.with_suffix(".torn").write_bytes(torn)
            with path.open("r+b") as handle:
                handle.truncate(path.stat().st_size - len(torn))
        self.attempt = 1 + max((line.get("attempt", 0) for line in lines), default=0)

    def append(self, line: Line) -> None:
        """Write one line and flush it to disk. Raises CheckError for a figure that is not finite, and on a full disk."""
        bad = [k for k, v in line.items() if isinstance(v, float) and not math.isfinite(v)]
        if bad:
            raise CheckError(f"{self.path.name}: {', '.join(bad)} is not finite at update {line.get('update')}")
        body = (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode()
        try:
            with self.path.open("ab") as handle:
                handle.write(body)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise CheckError(f"{self.path} cannot be written: {error.strerror}") from error
            raise full_disk(self.path.parent, len(body), f"{self.path.name} of update {line.get('update')}") from error
