"""The ledger file: one canonical JSON object a line, each line holding the hash of the line before it.

A record is written by one O_APPEND write followed by fsync, before the effect that it announces. What the chain shows and
what it cannot: `docs/audit.md`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.disk import sync_folder, writing
from agent.ledger.line import GENESIS, VERSION, BrokenLine, Record, canonical, digest, parse_line, seal, verify_bytes
from agent.ledger.records import check_payload
from agent.redact import redact
from tools.errors import CheckError, UsageError

__all__ = [
    "GENESIS", "LEDGER", "VERSION", "BrokenLine", "Ledger", "Record", "canonical", "digest", "parse_line", "read_ledger",
    "seal", "utc_now", "verify_bytes",
]  # fmt: skip

LEDGER = "ledger.jsonl"


def read_ledger(workdir: Path) -> tuple[list[Record], bytes]:
    """Verified records and the torn bytes after the last newline (empty as a rule); changes nothing on disk.

    Raises UsageError where there is no ledger, CheckError (`BrokenLine`) naming the first broken line.
    """
    path = workdir / LEDGER
    if not path.is_file():
        raise UsageError(f"{workdir} is not a work directory: it has no {LEDGER}")
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    return verify_bytes(data[:whole], path), data[whole:]


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Ledger:
    """The writer. One per work directory at a time (the session's lock sees to it; a foreign write is noticed)."""

    def __init__(self, workdir: Path, *, skill: str | None, code: str | None, clock: Callable[[], str]) -> None:
        self.path = workdir / LEDGER
        self.skill, self.code, self.clock = skill, code, clock
        self.on_append: Callable[[Record], None] | None = None
        self._records: list[Record] = []
        self._size = 0
        self._fd = -1
        self._failed = ""
        self._late = False

    @classmethod
    def open(
        cls,
        workdir: Path | str,
        *,
        skill: str | None = None,
        code: str | None = None,
        clock: Callable[[], str] = utc_now,
    ) -> Ledger:
        """Verify everything that is there, move a torn last line aside, and be ready to append.

        Raises CheckError naming the line for a broken middle, UsageError where the file cannot be written.
        """
        self = cls(Path(workdir), skill=skill, code=code, clock=clock)
        if self.path.exists() and not self.path.is_file():
            raise UsageError(f"{self.path} is in the way: it should be a file")
        with writing(self.path):
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            sync_folder(self.path.parent)
            data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        self._records = verify_bytes(data[:whole], self.path)
        self._size = whole
        if data[whole:]:
            self._set_aside(data[whole:], whole)
        self._tell_torn()
        return self

    def _set_aside(self, torn: bytes, whole: int) -> None:
        number = 1
        while (aside := self.path.with_name(f"ledger.torn-{number}")).exists():
            number += 1
        with writing(aside):
            with open(aside, "xb") as out:
                out.write(torn)
                out.flush()
                os.fsync(out.fileno())
            sync_folder(aside.parent)
            os.ftruncate(self._fd, whole)
            os.fsync(self._fd)

    def _tell_torn(self) -> None:
        """A recovery record for every torn line set aside, also one whose record was itself lost to a kill."""
        told = {r.payload["details"].get("file") for r in self._records if r.kind == "recovery"}
        for aside in sorted(self.path.parent.glob("ledger.torn-*"), key=lambda p: int(p.name.rpartition("-")[2])):
            if aside.name not in told:
                torn = aside.read_bytes()
                details = {"file": aside.name, "bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()}
                self.append("recovery", {"what": "torn_line", "details": details})

    @property
    def count(self) -> int:
        return len(self._records)

    @property
    def head(self) -> str:
        """Hash of the last record; 64 zeros when there is none."""
        return self._records[-1].hash if self._records else GENESIS

    def records(self, kind: str | None = None) -> list[Record]:
        return [r for r in self._records if kind is None or r.kind == kind]

    def last(self, kind: str, **payload: Any) -> Record | None:
        """The newest record of a kind whose payload has these values."""
        for record in reversed(self._records):
            if record.kind == kind and all(record.payload.get(k) == v for k, v in payload.items()):
                return record
        return None

    def __iter__(self) -> Iterator[Record]:
        return iter(list(self._records))

    def append(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        actor: str = "agent",
        state: str | None = None,
        key: str | None = None,
    ) -> Record:
        """Write one record and force it to disk. Secrets of known shapes are cut out of the payload first.

        Raises UsageError for a payload that does not fit its kind, for a full or read-only disk; CheckError when
        someone else wrote to the file.
        """
        self._usable()
        clean = check_payload(kind, redact(dict(payload)))
        ts = self._time()
        body = {
            "v": VERSION,
            "seq": self.count + 1,
            "ts": ts,
            "prev": self.head,
            "kind": kind,
            "actor": actor,
            "state": state,
            "key": key,
            "skill": self.skill,
            "code": self.code,
            "payload": clean,
        }
        return self._write(seal(body)[1])

    def _usable(self) -> None:
        if self._failed:
            raise UsageError(self._failed)
        if self._fd < 0:
            raise UsageError(f"{self.path} was closed")
        size = os.fstat(self._fd).st_size
        if size != self._size or not self.path.exists():
            raise CheckError(
                f"{self.path.name} was changed by another process ({self._size} bytes became {size}): stop it"
            )

    def _time(self) -> str:
        """Now, or the last record's time when the clock was set back: a note says so once a jump."""
        now, last = self.clock(), self._records[-1].ts if self._records else ""
        if now >= last:
            self._late = False
            return now
        if not self._late:
            self._late = True
            details = {"clock": now, "last": last}
            self.append(
                "note", {"text": "the clock went back: times stand still until it catches up", "details": details}
            )
        return last

    def _write(self, line: bytes) -> Record:
        record = parse_line(line)  # what is written can be read back
        data = line + b"\n"
        try:
            with writing(self.path):
                if os.write(self._fd, data) != len(data):
                    raise OSError(28, "no space left on device")
                os.fsync(self._fd)
        except UsageError as err:
            self._failed = str(err)
            raise
        self._size += len(data)
        self._records.append(record)
        if self.on_append is not None:
            self.on_append(record)
        return record

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
