"""Audio held inside another file, read in place: `shard.tar::clip.flac`, `data.parquet::17`, `data.arrow::17`
(rows from 0).
"""

from __future__ import annotations

import tarfile
from functools import lru_cache
from pathlib import Path
from typing import Any

SEPARATOR = "::"
MEMBER_LIMIT = 1 << 30  # bytes


class InsideError(ValueError):
    """Why the audio inside a container cannot be had: one clause."""


def inside_of(path: Path | str) -> tuple[Path, str] | None:
    """(container, member) of a path that points inside a file; None for an ordinary path."""
    text = str(path)
    container, mark, member = text.rpartition(SEPARATOR)
    return (Path(container), member) if mark and not Path(text).exists() else None


def read_inside(container: Path, member: str) -> bytes | Path:
    """The member's bytes; a path where a table only names a file beside it. Raises InsideError."""
    if not container.is_file():
        raise InsideError(f"{container} is not there")
    stamp = container.stat().st_mtime_ns
    if container.suffix == ".tar":
        return _from_tar(container, stamp, member)
    if not member.isdigit():
        raise InsideError(f"{member!r} is not a row of {container}")
    found = _from_table(container, stamp, int(member))
    if found["bytes"]:
        return bytes(found["bytes"])
    if found["path"]:
        return container.parent / str(found["path"])
    raise InsideError(f"row {member} of {container} holds no audio")


def _from_tar(container: Path, stamp: int, member: str) -> bytes:
    places = _tar_places(container, stamp)
    if member not in places:
        raise InsideError(f"{member} is not in {container}")
    offset, size = places[member]
    if size > MEMBER_LIMIT:
        raise InsideError(f"{member} in {container} is larger than {MEMBER_LIMIT >> 20} MB")
    with open(container, "rb") as file:
        file.seek(offset)
        return file.read(size)


@lru_cache(maxsize=8)
def _tar_places(container: Path, stamp: int) -> dict[str, tuple[int, int]]:
    try:
        with tarfile.open(container, "r:") as opened:
            return {m.name: (m.offset_data, m.size) for m in opened if m.isfile()}
    except (OSError, tarfile.TarError) as error:
        raise InsideError(f"{container} cannot be read as a tar file: {error}") from error


def _from_table(container: Path, stamp: int, row: int) -> dict[str, Any]:
    import pyarrow

    try:
        ends = _group_ends(container, stamp)
        group = next((i for i, end in enumerate(ends) if row < end), None)
        if group is None:
            raise InsideError(f"{container} has {ends[-1] if ends else 0} rows, none at {row}")
        column = _group(container, stamp, group)
        value = column[row - (ends[group - 1] if group else 0)].as_py() or {}
    except (pyarrow.ArrowException, OSError) as error:
        raise InsideError(f"{container} cannot be read as a table: {error}") from error
    return {"bytes": value.get("bytes"), "path": value.get("path")}


@lru_cache(maxsize=64)
def _group_ends(container: Path, stamp: int) -> list[int]:
    """Rows up to the end of each row group (parquet) or batch (arrow)."""
    import pyarrow.parquet

    if container.suffix == ".arrow":
        sizes = [batch.num_rows for batch in _arrow_batches(container, stamp)]
    else:
        meta = pyarrow.parquet.read_metadata(container)
        sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    return [sum(sizes[: i + 1]) for i in range(len(sizes))]


@lru_cache(maxsize=2)
def _group(container: Path, stamp: int, group: int) -> Any:
    """The audio column of one row group or batch."""
    import pyarrow.parquet

    if container.suffix == ".arrow":
        batch = _arrow_batches(container, stamp)[group]
        return batch.column(_audio_column(batch.schema, container))
    with pyarrow.parquet.ParquetFile(container) as opened:
        name = _audio_column(opened.schema_arrow, container)
        return opened.read_row_group(group, columns=[name]).column(name).combine_chunks()


@lru_cache(maxsize=8)
def _arrow_batches(container: Path, stamp: int) -> list[Any]:
    import pyarrow

    mapped = pyarrow.memory_map(str(container))
    try:
        return list(pyarrow.ipc.open_stream(mapped))
    except pyarrow.ArrowInvalid:
        opened = pyarrow.ipc.open_file(mapped)
        return [opened.get_batch(i) for i in range(opened.num_record_batches)]


def _audio_column(schema: Any, container: Path) -> str:
    import pyarrow

    for field in schema:
        if pyarrow.types.is_struct(field.type) and field.type.get_field_index("bytes") >= 0:
            return str(field.name)
    raise InsideError(f"{container} has no audio column")
