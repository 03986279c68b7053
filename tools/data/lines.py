"""Physical lines of a text file, one at a time: split on \\n only (on \\r where a file has no \\n at all), BOM
dropped, an undecodable line told with its byte.
"""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tools.errors import UsageError

MAX_LINE = 16 << 20  # bytes; a longer line is no manifest row


@dataclass(frozen=True, slots=True)
class Line:
    """Line `number` (from 1) without its end; `error` says why `text` could not be had."""

    number: int
    text: str
    error: str = ""


def open_binary(path: Path) -> IO[bytes]:
    """The file's bytes, ungzipped by content. Raises UsageError where it cannot be opened."""
    try:
        raw = open(path, "rb")  # noqa: SIM115 - handed to the caller, who closes it
    except (OSError, ValueError) as error:
        raise UsageError(f"manifest {path} cannot be opened ({_reason(error)}): check the path") from error
    head = raw.read(2)
    raw.seek(0)
    return gzip.GzipFile(fileobj=raw) if head == b"\x1f\x8b" else raw  # type: ignore[return-value]


def read_lines(path: Path) -> Iterator[Line]:
    """Every line of a UTF-8 (or BOM-marked UTF-16) file. Raises UsageError where it cannot be opened or read."""
    with open_binary(path) as raw:
        try:
            yield from _decoded(_utf16(raw) or _old_ends(raw))
        except (OSError, EOFError, UnicodeError, gzip.BadGzipFile) as error:
            raise UsageError(f"manifest {path} cannot be read ({_reason(error)})") from error


def read_text(path: Path, limit: int = 256 << 20) -> str:
    """The whole of a small text file, BOM dropped; UTF-16 by its BOM. Raises UsageError naming the byte that is
    not UTF-8.
    """
    with open_binary(path) as raw:
        data = raw.read(limit + 1)
    if len(data) > limit:
        raise UsageError(f"{path} is larger than {limit >> 20} MB as one JSON document: write it as one row a line")
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path} is not UTF-8 at byte {error.start} (line {line}): save it as UTF-8") from error


def _utf16(raw: IO[bytes]) -> IO[bytes] | None:
    """A UTF-8 view of a UTF-16 stream, or None."""
    head = raw.read(2)
    raw.seek(0)
    if head not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    return io.BytesIO(raw.read().decode("utf-16").encode("utf-8"))


class _NewEnds(io.RawIOBase):
    """A stream whose \\r are \\n."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.raw.read(len(buffer)).replace(b"\r", b"\n")
        buffer[: len(data)] = data
        return len(data)


def _old_ends(raw: IO[bytes]) -> IO[bytes]:
    """The stream itself, or with \\r as the end of a line where its first megabyte has no \\n and several \\r."""
    head = raw.read(1 << 20)
    raw.seek(0)
    return io.BufferedReader(_NewEnds(raw)) if b"\n" not in head and b"\r" in head.strip() else raw


def _decoded(raw: IO[bytes]) -> Iterator[Line]:
    at, number = 0, 0
    while True:
        line = raw.readline(MAX_LINE)
        if not line:
            return
        number += 1
        size = len(line)
        if not line.endswith(b"\n") and size == MAX_LINE:
            size += _skip_line(raw)
            yield Line(number, "", f"the line is longer than {MAX_LINE >> 20} MB")
        else:
            yield _line(number, line, at)
        at += size


def _skip_line(raw: IO[bytes]) -> int:
    skipped = 0
    while part := raw.readline(MAX_LINE):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


def _line(number: int, line: bytes, at: int) -> Line:
    body = line.removesuffix(b"\n").removesuffix(b"\r")
    if number == 1:
        body = body.removeprefix(codecs.BOM_UTF8)
    if b"\0" in body:
        byte = at + line.index(b"\0")
        return Line(
            number, "", f"a zero at byte {byte} (line {number}): UTF-16 without its mark? Save the file as UTF-8"
        )
    try:
        return Line(number, body.decode("utf-8"))
    except UnicodeDecodeError as error:
        byte = at + error.start + (len(line) - len(line.lstrip(codecs.BOM_UTF8)) if number == 1 else 0)
        return Line(
            number, "", f"not UTF-8 at byte {byte} (line {number}): 0x{body[error.start]:02x}; save the file as UTF-8"
        )


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
