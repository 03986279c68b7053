"""Lhotse cuts (JSON lines or an array) and Shar folders: what a cut means is read by lhotse, line by line."""

from __future__ import annotations

import re
import tarfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.data.fields import Source
from tools.data.formats.json_rows import document_values, json_line_values
from tools.data.reading import Item, Quarantined, row_item

WHOLE_S = 0.1  # a lone supervision this close to its cut's ends is the whole cut
_SHARD = re.compile(r"^cuts\.(\d+)\.jsonl(?:\.gz)?$")


def read(path: Path, source: Source) -> Iterator[Item]:
    """Cuts, one JSON object a line."""
    for number, value in json_line_values(path, source):
        yield from [value] if isinstance(value, Item) else _rows(value, source, number)


def read_document(path: Path, source: Source) -> Iterator[Item]:
    """Cuts as one JSON array."""
    for number, _, value in document_values(path, source):
        yield from [value] if isinstance(value, Item) else _rows(value, source, number)


def read_shar(path: Path, source: Source) -> Iterator[Item]:
    """A Shar folder: cuts.000000.jsonl.gz beside recording.000000.tar, one member a cut, found by the cut's id."""
    for cuts in sorted(p for p in path.iterdir() if _SHARD.match(p.name)):
        tar = path / f"recording.{cuts.name.split('.')[1]}.tar"
        members = _members(tar) if tar.is_file() else {}
        here = replace(source, manifest=str(cuts), folder=path)
        left = dict(members)
        for number, value in json_line_values(cuts, here):
            if isinstance(value, Item):
                yield value
                continue
            member = left.pop(str(value.get("id")), None) if isinstance(value, Mapping) else None
            known = member or (members.get(str(value.get("id"))) if isinstance(value, Mapping) else None)
            yield from _rows(value, here, number, f"{tar}::{known}" if known else None, shar=True)
        for key, member in left.items():
            yield Quarantined(str(tar), 0, key, f"{member} has no cut in {cuts.name}", source.split)


def _members(tar: Path) -> dict[str, str]:
    """Audio members of a shard by key."""
    try:
        with tarfile.open(tar) as opened:
            names = [m.name for m in opened if m.isfile() and not m.name.endswith((".json", ".nodata", ".nometa"))]
    except (OSError, tarfile.TarError):
        return {}
    return {name.rsplit(".", 1)[0]: name for name in names}


def _rows(value: Any, source: Source, number: int, inside: str | None = None, shar: bool = False) -> Iterator[Item]:
    """One cut -> a row a supervision (the cut itself where there is none)."""
    from lhotse.cut import MonoCut, MultiCut  # heavy: only where a cut is read
    from lhotse.serialization import deserialize_item

    key = str(value.get("id", "")) if isinstance(value, Mapping) else ""
    try:
        plain = {k: v for k, v in value.items() if k not in {"features", "features_type"}}
        with warnings.catch_warnings(action="ignore"):  # lhotse tells of old versions, on stderr
            cut = deserialize_item({**plain, "type": plain.get("type", "MonoCut")})
    except Exception as error:  # lhotse raises whatever its fields raise
        why = f"not a cut: {type(error).__name__} {error}"[:200]
        yield Quarantined(source.manifest, number, key, why, source.split)
        return
    if not isinstance(cut, MonoCut | MultiCut):
        why = f"a {type(cut).__name__} is mixed or padded on the fly: save its audio first"
        yield Quarantined(source.manifest, number, key, why, source.split)
        return
    audio, why = (inside, "") if shar else _audio(cut, source)
    if audio is None:
        yield Quarantined(source.manifest, number, key, why or "its audio is not in the shard", source.split)
        return
    yield from (row_item(row, source, number) for row in _cut_rows(cut, audio, 0.0 if shar else float(cut.start)))


def _audio(cut: Any, source: Source) -> tuple[str | None, str]:
    """The file of a cut's recording, or None and why: commands are never run, nothing is downloaded."""
    recording = cut.recording
    if recording is None:
        return None, "the cut names no recording"
    for origin in recording.sources:
        if origin.type == "command":
            return None, "its recording is a command, which is never run: save the audio first"
        if origin.type != "file":
            return None, f"its recording is of type {origin.type}: save the audio first"
    path = str(recording.sources[0].source)
    beside = Path(path).name
    if not (source.folder / path).is_file() and (source.folder / beside).is_file():
        return beside, ""  # lhotse writes paths relative to where it ran
    return path, ""


def _cut_rows(cut: Any, audio: str, start: float) -> Iterator[dict[str, Any]]:
    channel = cut.channel if isinstance(cut.channel, int) else None
    row: dict[str, Any] = {**(cut.custom or {}), "audio": audio, "recording": _recording(cut)}
    row |= {"channel": channel if cut.has_recording and cut.recording.num_channels > 1 else None}
    supervisions = cut.supervisions
    if len(supervisions) <= 1:
        only = supervisions[0] if supervisions else None
        if only is None or (only.start <= WHOLE_S and only.end >= cut.duration - WHOLE_S):
            yield {**row, "id": cut.id, "offset": start, "duration": cut.duration, **_said(only)}
            return
    for one in supervisions:
        begin, end = max(0.0, one.start), min(cut.duration, one.end)
        times = {"offset": start + begin, "duration": round(end - begin, 9)}
        yield {**row, "id": f"{cut.id}-{one.id}", **times, **_said(one)}


def _recording(cut: Any) -> str | None:
    """The recording's id, unless it is but its file's path (as `write_lhotse` names it): then none was named."""
    if not cut.has_recording or cut.recording_id in {str(source.source) for source in cut.recording.sources}:
        return None
    return str(cut.recording_id)


def _said(supervision: Any) -> dict[str, Any]:
    if supervision is None:
        return {}
    return {"text": supervision.text, "speaker": supervision.speaker, "lang": supervision.language}
