"""What all manifest readers share: rows set aside, strict JSON, and a row's values -> a Clip or a row set aside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.data.fields import RowError, Source, clip_from
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


Item = Clip | Quarantined
Reader = Callable[[Path, Source], Iterator[Item]]


def strict_json(text: str) -> Any:
    """JSON without NaN, Infinity and keys that occur twice. Raises RowError."""
    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=no_key_twice)
    except RowError:
        raise
    except (ValueError, RecursionError) as error:
        raise RowError(json_fault(error)) from error


def json_fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at column {error.colno}"
    return str(error) if isinstance(error, RowError) else f"not JSON: {type(error).__name__}"


def no_constant(name: str) -> Any:
    raise RowError(f"not strict JSON: {name}")


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise RowError(f"the key {twice!r:.60} occurs twice in the row")
    return out


def loose_id(text: str) -> str:
    """The id of a row that is JSON but for the strictness, as far as it can be told."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return known_id(value) if isinstance(value, Mapping) else ""


def row_item(value: Any, source: Source, number: int) -> Item:
    """A mapping -> its Clip, or set aside with the reason."""
    if not isinstance(value, Mapping):
        return Quarantined(source.manifest, number, "", "the row is not a JSON object", source.split)
    if value.get("_skipme"):
        reason = "skipped: _skipme is set"
        return Quarantined(source.manifest, number, known_id(value), reason, source.split, "skipme", False)
    try:
        return clip_from(value, source, number)
    except RowError as error:
        return Quarantined(source.manifest, number, known_id(value), str(error), source.split)


def known_id(row: Mapping[str, Any]) -> str:
    """A row's id as far as it can be told: for rows that cannot be read any further."""
    for key in ("id", "audio_filepath", "audio", "path"):
        value = row.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)[:200].encode("utf-8", "replace").decode("utf-8")
    return ""


def bad_line(source: Source, number: int, reason: str, kind: str = "row", known: str = "") -> Quarantined:
    """A line that is no row at all; `known` is its id as far as that can be told."""
    return Quarantined(source.manifest, number, known, reason, source.split, kind)
