"""Hugging Face datasets on disk: parquet files, saved arrow sets, audio folders.

Audio held inside a table is read in place: its path is `file.parquet::17` (the row, from 0).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.data.fields import ALIASES, Source
from tools.data.formats import json_rows, table
from tools.data.reading import Item, bad_line, row_item
from tools.errors import UsageError

SPLITS = ("train", "validation", "valid", "dev", "test", "eval")
AUDIO = {".wav", ".flac", ".mp3", ".ogg", ".opus", ".aiff", ".au", ".sph"}
_BATCH = 256


def is_folder(path: Path) -> bool:
    """Whether a folder is a dataset of one of these kinds."""
    return bool(_tables(path)) or bool(_metadata(path)) or _has_audio(path)


def _has_audio(path: Path) -> bool:
    """Whether audio lies in folders below this one (two deep: a split, a label)."""
    return any(p.suffix.lower() in AUDIO for pattern in ("*/*", "*/*/*") for p in path.glob(pattern))


def read_folder(path: Path, source: Source) -> Iterator[Item]:
    """A dataset folder: its tables, or its metadata files, or audio in folders named by label."""
    tables = _tables(path)
    if tables:
        for file in tables:
            yield from read_table(file, _of(file, path, source))
        return
    metadata = _metadata(path)
    for file in metadata:
        here = _of(file, path, source)
        yield from read_table(file, here) if file.suffix == ".parquet" else _metadata_rows(file, here)
    if not metadata:
        yield from _labelled(path, source)


def read_table(path: Path, source: Source) -> Iterator[Item]:
    """Rows of one parquet or arrow file, numbered from 1."""
    import pyarrow

    number = 0
    try:
        for batch in _batches(path):
            names = _label_names(batch.schema)
            for row in _without_bytes(batch):
                row |= {k: labels[row[k]] for k, labels in names.items() if row.get(k) in range(len(labels))}
                number += 1
                yield row_item(_row(row, path, number), source, number)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if number == 0:
            raise UsageError(f"{path} cannot be read as a table: {error}") from error
        yield bad_line(source, number + 1, f"the table cannot be read from here on: {error}")


def _tables(path: Path) -> list[Path]:
    found = sorted(p for p in path.rglob("*") if p.suffix in {".parquet", ".arrow"} and p.is_file())
    return [p for p in found if p.name != "metadata.parquet" and not p.name.startswith("cache-")]


def _metadata(path: Path) -> list[Path]:
    names = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
    return sorted(p for name in names for p in path.rglob(name))


def _of(file: Path, root: Path, source: Source) -> Source:
    return replace(source, manifest=str(file), folder=file.parent, split=_split(file, root, source))


def _split(file: Path, root: Path, source: Source) -> str:
    """The split a file belongs to by a folder's or its own name; the asked one where that is given."""
    if source.split:
        return source.split
    words = [*file.relative_to(root).parts[:-1], file.name.split("-")[0].split(".")[0]]
    return next((word for word in words if word in SPLITS), "")


def _metadata_rows(file: Path, source: Source) -> Iterator[Item]:
    return json_rows.read(file, source) if file.suffix == ".jsonl" else table.read(file, source)


def _labelled(path: Path, source: Source) -> Iterator[Item]:
    """Audio in folders: the folder is the label."""
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in AUDIO and p.is_file())
    for number, file in enumerate(files, start=1):
        inner = file.relative_to(path)
        row = {"audio": str(inner), "label": inner.parts[-2] if len(inner.parts) > 1 else None}
        yield row_item(row, replace(source, folder=path, split=_split(file, path, source)), number)


def _batches(path: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    if path.suffix == ".arrow":
        with pyarrow.memory_map(str(path)) as mapped:
            try:
                yield from pyarrow.ipc.open_stream(mapped)
            except pyarrow.ArrowInvalid:
                opened = pyarrow.ipc.open_file(mapped)
                yield from (opened.get_batch(i) for i in range(opened.num_record_batches))
        return
    with pyarrow.parquet.ParquetFile(path) as opened:
        columns = [n for n in opened.schema_arrow.names if not _holds_bytes(opened.schema_arrow.field(n).type)]
        held = [f"{n}.path" for n in opened.schema_arrow.names if n not in columns]
        yield from opened.iter_batches(batch_size=_BATCH, columns=[*columns, *held])


def _label_names(schema: Any) -> dict[str, list[str]]:
    """Names of class labels by column, from the features that `datasets` writes beside the schema."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {k: v["names"] for k, v in features.items() if isinstance(v, dict) and isinstance(v.get("names"), list)}
    except (KeyError, ValueError, TypeError):
        return {}


def _holds_bytes(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_struct(kind) and kind.get_field_index("bytes") >= 0)


def _without_bytes(batch: Any) -> Iterator[dict[str, Any]]:
    """Rows of a batch as plain values; of an audio column only its path is taken."""
    import pyarrow

    columns: dict[str, list[Any]] = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if pyarrow.types.is_struct(column.type) and column.type.get_field_index("path") >= 0:
            columns[name] = [{"inside": True, "path": p} for p in column.field("path").to_pylist()]
        elif _holds_bytes(column.type):
            columns[name] = [{"inside": True, "path": None}] * len(column)
        else:
            columns[name] = column.to_pylist()
    for i in range(batch.num_rows):
        yield {name: values[i] for name, values in columns.items()}


def _row(row: dict[str, Any], path: Path, number: int) -> dict[str, Any]:
    """The row with its audio's place: inside the table, or the path it names."""
    out = {k: v for k, v in row.items() if not isinstance(v, bytes)}
    for name, value in row.items():
        if isinstance(value, dict) and value.get("inside"):
            out.pop(name)
            named = value.get("path")
            if not any(out.get(key) for key in ALIASES["id"]):
                out["id"] = f"{named or path.name}#{number}"
            out["audio_filepath"] = f"{path.resolve()}::{number - 1}"
    return out
