"""A text with what is known of it, and the lines of a file, gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tools.errors import CheckError, UsageError


@dataclass(frozen=True, slots=True)
class Text:
    """One text and what is known of it. Seconds are floats; `line` is the physical line, from 1."""

    id: str
    text: str
    speaker: str | None = None
    recording: str | None = None
    lang: str | None = None
    domain: str | None = None
    audio: str | None = None
    finish: str = "stop"
    tokens: int = 0
    offset_s: float = 0.0
    duration_s: float = 0.0
    line: int = 0


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers; split on LF only, BOM and CR dropped. Raises UsageError."""
    try:
        with _opened(path) as stream:
            for number, raw in enumerate(stream, 1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise CheckError(
                        f"{path}, line {number} is not UTF-8 (byte {error.start}): save it as UTF-8."
                    ) from error
                if line.strip():
                    yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CheckError(f"{path} is no whole gzip file ({error}): restore the file.") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{path} cannot be read ({why}): check the path.") from error


def _opened(path: Path) -> IO[bytes]:
    """The file's bytes, ungzipped by content. It is read more than once, so that a pipe is refused."""
    if path.is_fifo():
        raise UsageError(f"{path} is a pipe, which can be read only once: save it to a file first.")
    stream = open(path, "rb")  # noqa: SIM115
    return gzip.open(stream, "rb") if stream.peek(2)[:2] == b"\x1f\x8b" else stream  # type: ignore[return-value]
