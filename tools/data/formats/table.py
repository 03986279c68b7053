"""Tables: CSV, TSV and their kind with a header (or without, where a column is plainly audio), Common Voice among
them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from tools.data.fields import Source, field_of
from tools.data.lines import Line, read_lines
from tools.data.reading import Item, Quarantined, bad_line, row_item
from tools.errors import UsageError

DELIMITERS = "\t,;|"
LJSPEECH = "ljspeech id"
MOST_LINES = 64  # of one quoted cell
_AUDIO = re.compile(r"\.(wav|flac|mp3|ogg|opus|sph|m4a|aiff?|au|w64|caf)$", re.IGNORECASE)


def read(path: Path, source: Source) -> Iterator[Item]:
    """Rows of a table; a record that spans lines has the number of its first."""
    lines = read_lines(path)
    head = next((line for line in lines if line.text.strip() or line.error), None)
    if head is None:
        return
    if head.error:
        raise UsageError(f"manifest {path}: {head.error}")
    delimiter = max(DELIMITERS, key=head.text.count)
    if re.fullmatch(r"sep=.", head.text.strip("\"'")):  # Excel's line before the header
        delimiter = head.text.strip("\"'")[-1]
        head = next((line for line in lines if line.text.strip()), head)
    common_voice = re.search(r"(^|\t)client_id(\t|$)", head.text) is not None and delimiter == "\t"
    quoted = not common_voice
    columns = _once([c.strip() for c in cells(head.text, delimiter, quoted)])
    if common_voice and (source.folder / "clips").is_dir():
        source = Source(source.manifest, source.folder / "clips", source.split)
    records = _records(lines, quoted)
    if not any(field_of(column)[0] for column in columns):
        columns, source = _columns_without_header(path, cells(head.text, delimiter, quoted), source)
        records = _records(_again(head, lines), quoted)
    for number, text, error in records:
        if error:
            yield bad_line(source, number, error, "encoding")
        else:
            yield _row(cells(text, delimiter, quoted), columns, source, number)


def _row(found: list[str], columns: list[str], source: Source, number: int) -> Item:
    if len(found) != len(columns):
        why = f"{len(found)} columns where the header has {len(columns)}"
        return Quarantined(source.manifest, number, found[0][:100] if found else "", why, source.split)
    row = {c: v for c, v in zip(columns, found) if v != "" or field_of(c)[0] == "text"}
    if columns[0] == LJSPEECH:
        row = {**row, "id": row.pop(LJSPEECH, ""), "audio": f"wavs/{found[0]}.wav"}
    return row_item(row, source, number)


def _once(columns: list[str]) -> list[str]:
    """Column names, a later one of the same name told apart by its number: nothing of a row is lost."""
    return [c if c not in columns[:i] else f"{c} ({i + 1})" for i, c in enumerate(columns)]


def cells(text: str, delimiter: str, quoted: bool) -> list[str]:
    if not quoted:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return text.split(delimiter)


def _columns_without_header(path: Path, first: list[str], source: Source) -> tuple[list[str], Source]:
    """Columns guessed from the first row: a cell that names audio, the longest other one the text. Raises
    UsageError.
    """
    audio = next((i for i, cell in enumerate(first) if _AUDIO.search(cell.strip())), None)
    if audio is None and len(first) >= 2 and (source.folder / "wavs" / f"{first[0]}.wav").is_file():
        return [LJSPEECH, *[f"text_{i}" for i in range(1, len(first) - 1)], "text"], source  # id|text|normalised
    if audio is None or len(first) < 2:
        raise UsageError(f"{path} is no manifest: its first line names no known column and no audio file")
    text = max((i for i in range(len(first)) if i != audio), key=lambda i: len(first[i]))
    named = {audio: "audio", text: "text"}
    return [named.get(i, f"column_{i + 1}") for i in range(len(first))], source


def _again(head: Line, lines: Iterator[Line]) -> Iterator[Line]:
    yield head
    yield from lines


def _records(lines: Iterator[Line], quoted: bool) -> Iterator[tuple[int, str, str]]:
    """Table records as (first line, text, error); a quoted cell may run over several lines."""
    held: list[Line] = []
    for line in lines:
        if line.error:
            yield line.number, "", line.error
            continue
        if not held and not line.text.strip():
            continue
        held.append(line)
        if not quoted or sum(part.text.count('"') for part in held) % 2 == 0:
            yield held[0].number, "\n".join(part.text for part in held), ""
            held = []
        elif len(held) > MOST_LINES:  # a lone quote, not a quoted cell: the lines are rows of their own
            yield from ((part.number, part.text, "") for part in held)
            held = []
    yield from ((part.number, part.text, "") for part in held)
