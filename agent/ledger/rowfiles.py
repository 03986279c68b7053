"""Digests of the rows of a JSONL file, kept beside it, so that an audit names the very row that was changed.

The list itself (`digests.txt`, one `<sha256> <row id>` a line, no texts) is small and public; its own digest goes into
the ledger. Whoever changes a row must also change the list, and then the list no longer fits the ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.disk import write_atomic

DIGESTS = "digests.txt"
MORE, DEEP = "-more", "-deep"  # what a mined subset's file is called where its answers were extended, and again


def rollout_files(subset: str) -> tuple[str, ...]:
    """Files, under the work directory, that may hold the answers of a mined subset."""
    return tuple(f"rollouts/{subset}{part}.jsonl" for part in ("", MORE, DEEP))


def row_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, bytes without the newline) of every line of a JSONL file."""
    data = path.read_bytes()
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    yield from enumerate(lines, start=1)


def _row_id(line: bytes) -> str:
    try:
        row = json.loads(line)
    except ValueError:
        return "?"
    return str(row.get("id", row.get("clip_id", "?"))) if isinstance(row, dict) else "?"


def digest_lines(path: Path) -> str:
    """The list for a JSONL file; ids are JSON strings, so that none can break a line."""
    return "".join(
        f"{hashlib.sha256(line).hexdigest()} {json.dumps(_row_id(line), ensure_ascii=True)}\n"
        for _, line in row_lines(path)
    )


def write_digests(folder: Path, rows: str = "rows.jsonl") -> str:
    """Write `digests.txt` for a folder's rows; returns its sha256, for the ledger (`row_digests_sha256`)."""
    return write_atomic(folder / DIGESTS, digest_lines(folder / rows))


def seal_rows(folder: Path, rows: str = "rows.jsonl") -> dict[str, Any]:
    """{rows, rows_sha256, row_digests_sha256} of a folder's rows, writing `digests.txt`."""
    data = (folder / rows).read_bytes()
    return {
        "rows": data.count(b"\n"),
        "rows_sha256": hashlib.sha256(data).hexdigest(),
        "row_digests_sha256": write_digests(folder, rows),
    }


def read_digests(folder: Path) -> list[tuple[str, str]] | None:
    """[(sha256, row id)] as sealed; None where there is no list or it is not one."""
    path = folder / DIGESTS
    if not path.is_file():
        return None
    out = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        sha, _, name = line.partition(" ")
        try:
            out.append((sha, str(json.loads(name))))
        except ValueError:
            return None
    return out
