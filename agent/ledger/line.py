"""One line of the ledger: a canonical JSON object that carries the hash of the line before it.

`hash` is the sha256 over the RFC 8785 bytes of the record without `hash`; the first record's `prev` is 64 zeros; `seq`
counts from 1 and so is the line number too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rfc8785

from tools.errors import CheckError, UsageError

VERSION = 1
GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the ledger. `ts` is UTC ISO 8601 with milliseconds, `hash` covers everything but itself."""

    v: int
    seq: int
    ts: str
    prev: str
    hash: str
    kind: str
    actor: str
    state: str | None
    key: str | None
    skill: str | None
    code: str | None
    payload: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


FIELDS = frozenset(Record.__slots__)


class BrokenLine(CheckError):
    """A line of the ledger that is not the record it should be. `line` counts from 1."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path.name} line {line}: {why}; nothing was changed: restore the file and run again")
        self.line, self.why = line, why


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes. Raises UsageError for what JSON cannot hold exactly: NaN, infinities, integers above 2**53."""
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as err:
        raise UsageError(f"a value cannot be written to the ledger: {err}") from err


def digest(value: Any) -> str:
    """sha256 (hex) over the canonical bytes of a JSON value."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _same_bytes(value: Any, line: bytes) -> bool:
    """Whether `line` is the canonical form of `value`; the C encoder answers for all but floats and odd keys."""
    quick = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if quick.encode("utf-8", "surrogatepass") == line:
        return True
    try:
        return rfc8785.dumps(value) == line
    except rfc8785.CanonicalizationError:
        return False


def seal(body: Mapping[str, Any]) -> tuple[str, bytes]:
    """The hash of a record without `hash`, and its whole line without the newline."""
    mark = digest(body)
    return mark, canonical({**body, "hash": mark})


def parse_line(line: bytes) -> Record:
    """One line -> its record, its own form and hash checked. Raises ValueError with the reason."""
    try:
        value = json.loads(line)
    except ValueError as err:
        raise ValueError("not JSON") from err
    if not isinstance(value, dict) or value.keys() != FIELDS:
        raise ValueError("not a ledger record (fields missing or foreign)")
    if value["v"] != VERSION:
        raise ValueError(f"record version {value['v']!r} is not {VERSION}")
    if not _same_bytes(value, line):
        raise ValueError("not in canonical form")
    mark = str(value["hash"])
    # The canonical bytes without the hash: drop its member from the line instead of encoding the record again.
    bare = line.replace(b'"hash":"' + mark.encode() + b'",', b"", 1)
    if hashlib.sha256(bare).hexdigest() != mark:
        raise ValueError("its hash does not cover its content")
    return Record(**value)


def verify_bytes(data: bytes, path: Path, broken: Callable[[int, str], None] | None = None) -> list[Record]:
    """All records of whole lines, chained. Raises `BrokenLine`, or calls `broken(line, why)` and goes on.

    `data` must end with a newline (or be empty).
    """
    records: list[Record] = []
    prev, seq, ts = GENESIS, 0, ""

    def complain(number: int, why: str) -> None:
        if broken is None:
            raise BrokenLine(path, number, why)
        broken(number, why)

    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            record = parse_line(line)
        except ValueError as err:
            complain(number, str(err))
            continue
        if record.seq != seq + 1:
            complain(number, f"record {record.seq} stands where {seq + 1} should (one removed, doubled or moved)")
        elif record.prev != prev:
            complain(number, "its prev is not the hash of the record before it")
        elif record.ts < ts:
            complain(number, f"its time {record.ts} is before that of the record before it ({ts})")
        prev, seq, ts = record.hash, record.seq, record.ts
        records.append(record)
    return records
