"""Customer's manifests in: any format, told by content -> Clips, every row that cannot be one quarantined with its
reason.

`iter_manifest` streams; `read_manifest` collects. Rows keep the physical line they came from, from 1.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.data.fields import RowError, Source, clip_from
from tools.data.lines import Line, read_lines, read_text
from tools.errors import UsageError
from tools.rows import Clip


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row set aside, never lost: where it is, its id as far as known, why. `counts` against max_quarantine or not."""

    manifest: str
    row: int
    id: str
    reason: str
    split: str = ""
    kind: str = "row"
    counts: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"manifest": self.manifest, "row": self.row, "id": self.id, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class ManifestRead:
    """All of one manifest: rows in order, rows set aside, and the format it was read as."""

    rows: list[Clip]
    quarantined: list[Quarantined] = field(default_factory=list)
    format: str = ""


def read_manifest(path: Path | str, split: str = "") -> ManifestRead:
    """Every row of a manifest. Raises UsageError where it cannot be opened or is no manifest."""
    rows: list[Clip] = []
    aside: list[Quarantined] = []
    for item in iter_manifest(path, split):
        if isinstance(item, Clip):
            rows.append(item)
        else:
            aside.append(item)
    return ManifestRead(rows, aside, sniff(Path(path)))


def iter_manifest(path: Path | str, split: str = "") -> Iterator[Clip | Quarantined]:
    """Rows and set-aside rows in file order, streamed. Raises UsageError where it cannot be opened or is no
    manifest.
    """
    path = Path(path)
    source = Source(manifest=str(path), folder=path.parent, split=split)
    yield from READERS[sniff(path)](path, source)


def sniff(path: Path) -> str:
    """The format of a manifest by its content: json_lines, json_array or table. Raises UsageError."""
    if not path.exists():
        raise UsageError(f"manifest not found: {path}")
    for line in read_lines(path):
        text = line.text.strip()
        if not text and not line.error:
            continue
        if text.startswith("["):
            return "json_array"
        if text.startswith("{"):
            return "json_lines"
        return "table"
    return "json_lines"


def strict_json(text: str) -> Any:
    """JSON without NaN and Infinity. Raises RowError."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RowError:
        raise
    except (ValueError, RecursionError) as error:
        where = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        why = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise RowError(f"not JSON: {why}{where}") from error


def _no_constant(name: str) -> Any:
    raise RowError(f"not strict JSON: {name}")


def _row(value: Any, source: Source, number: int) -> Clip | Quarantined:
    if not isinstance(value, dict):
        return Quarantined(source.manifest, number, "", "the row is not a JSON object", source.split)
    if value.get("_skipme"):
        return Quarantined(
            source.manifest, number, _id(value), "skipped: _skipme is set", source.split, "skipme", False
        )
    try:
        return clip_from(value, source, number)
    except RowError as error:
        return Quarantined(source.manifest, number, _id(value), str(error), source.split)


def _id(row: dict[str, Any]) -> str:
    given = row.get("id")
    if isinstance(given, str | int) and not isinstance(given, bool):
        return str(given).encode("utf-8", "replace").decode("utf-8")
    audio = row.get("audio_filepath", row.get("audio", ""))
    return str(audio)[:200].encode("utf-8", "replace").decode("utf-8") if isinstance(audio, str) else ""


def _json_lines(path: Path, source: Source) -> Iterator[Clip | Quarantined]:
    for line in read_lines(path):
        if line.error:
            yield Quarantined(source.manifest, line.number, "", line.error, source.split, "encoding")
        elif line.text.strip():
            try:
                value = strict_json(line.text)
            except RowError as error:
                yield Quarantined(source.manifest, line.number, "", str(error), source.split)
            else:
                yield _row(value, source, line.number)


def _json_array(path: Path, source: Source) -> Iterator[Clip | Quarantined]:
    text = read_text(path)
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at, number, counted = text.index("[") + 1, 1 + text.count("\n", 0, text.index("[") + 1), text.index("[") + 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        number, counted = number + text.count("\n", counted, at), at
        if at >= len(text):
            yield Quarantined(source.manifest, number, "", "the JSON array is cut off: no closing ]", source.split)
            return
        if text[at] == "]":
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (RowError, ValueError, RecursionError) as error:
            yield Quarantined(source.manifest, number, "", f"not JSON: {str(error)[:120]}", source.split)
            at = _next_object(text, at)
            if at < 0:
                return
            continue
        yield _row(value, source, number)
        at = end


def _next_object(text: str, at: int) -> int:
    """Where the next object of a broken array starts (after a line that begins with `{`), or -1."""
    found = text.find("\n", at)
    while found >= 0:
        rest = found + 1
        while rest < len(text) and text[rest] in " \t":
            rest += 1
        if rest < len(text) and text[rest] == "{":
            return rest
        found = text.find("\n", rest)
    return -1


def _table(path: Path, source: Source) -> Iterator[Clip | Quarantined]:
    lines = read_lines(path)
    head = next((line for line in lines if line.text.strip() or line.error), None)
    if head is None:
        return
    if head.error:
        raise UsageError(f"manifest {path}: {head.error}")
    delimiter = max("\t,;|", key=head.text.count)
    quoted = delimiter != "\t"
    columns = [c.strip().lower() for c in _cells(head.text, delimiter, quoted)]
    if "client_id" in columns and "path" in columns:
        source = Source(source.manifest, _clips_folder(source.folder), source.split)
    for number, text, error in _records(lines, quoted):
        if error:
            yield Quarantined(source.manifest, number, "", error, source.split, "encoding")
            continue
        cells = _cells(text, delimiter, quoted)
        if len(cells) != len(columns):
            why = f"{len(cells)} columns where the header has {len(columns)}"
            yield Quarantined(source.manifest, number, cells[0][:100] if cells else "", why, source.split)
            continue
        yield _row(dict(zip(columns, cells)), source, number)


def _records(lines: Iterator[Line], quoted: bool) -> Iterator[tuple[int, str, str]]:
    """Table records as (first line, text, error); a quoted cell may run over several lines."""
    held: list[str] = []
    first = 0
    for line in lines:
        if line.error:
            yield line.number, "", line.error
            continue
        if not held and not line.text.strip():
            continue
        first = first if held else line.number
        held.append(line.text)
        if not quoted or sum(part.count('"') for part in held) % 2 == 0 or len(held) > 64:
            yield first, "\n".join(held), ""
            held = []
    if held:
        yield first, "\n".join(held), "a quote that opens here never closes"


def _cells(text: str, delimiter: str, quoted: bool) -> list[str]:
    if not quoted:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return text.split(delimiter)


def _clips_folder(folder: Path) -> Path:
    return folder / "clips" if (folder / "clips").is_dir() else folder


READERS = {"json_lines": _json_lines, "json_array": _json_array, "table": _table}


def write_nemo(path: Path | str, clips: list[Clip]) -> None:
    """A NeMo manifest (JSON lines), audio relative to the manifest's folder where it lies below it; atomically."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8") as out:
        for clip in clips:
            out.write(json.dumps(nemo_row(clip, path.parent), ensure_ascii=False) + "\n")
    part.replace(path)


def nemo_row(clip: Clip, folder: Path) -> dict[str, Any]:
    """One clip as a NeMo manifest row; keys without a value are left out."""
    audio = clip.audio
    if audio.is_absolute() and audio.is_relative_to(folder.absolute()):
        audio = audio.relative_to(folder.absolute())
    elif not audio.is_absolute():
        audio = audio.relative_to(folder) if audio.is_relative_to(folder) else audio.absolute()
    row = {"id": clip.id, "audio_filepath": str(audio), "duration": clip.duration_s, "offset": clip.offset_s or None}
    row |= {"text": clip.text, "lang": clip.lang, "speaker": clip.speaker, "recording": clip.recording}
    row |= {"label": clip.label, "channel": clip.channel, "context": clip.prompt}
    return {**{k: v for k, v in row.items() if v is not None}, **clip.extras}
