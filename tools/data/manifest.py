"""Customer's manifests in: any format, told by content -> Clips, every row that cannot be one quarantined with its
reason.

`iter_manifest` streams; `read_manifest` collects. Rows keep the physical line they came from, from 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.data.fields import RowError, Source
from tools.data.formats import hugging, json_rows, kaldi, lhotse_cuts, table, tarred, timed
from tools.data.lines import open_binary, read_lines, read_text
from tools.data.reading import Item, Quarantined, Reader, strict_json
from tools.data.write import nemo_row, write_nemo
from tools.errors import UsageError
from tools.rows import Clip

READERS: dict[str, Reader] = {
    "json_lines": json_rows.read,
    "json_document": json_rows.read_document,
    "nemo_tarred": tarred.read,
    "lhotse_cuts": lhotse_cuts.read,
    "lhotse_cuts_array": lhotse_cuts.read_document,
    "lhotse_shar": lhotse_cuts.read_shar,
    "kaldi": kaldi.read,
    "table": table.read,
    "stm": timed.read_stm,
    "ctm": timed.read_ctm,
    "cues": timed.read_cues,
    "textgrid": timed.read_textgrid,
    "columns": hugging.read_table,
    "folder": hugging.read_folder,
}
MANIFESTS = {".json", ".csv", ".tsv", ".stm", ".ctm", ".srt", ".vtt", ".textgrid", ".txt"}
SOUND = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"ID3", b"NIST_1A", b"FORM", b".snd", b"\xff\xfb")
HEAD = 40  # lines looked at to tell a format
_CUE = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?[.,]\d{1,3}\s*-->")
_NUMBER = r"\d+(?:\.\d+)?"
_STM = re.compile(rf"\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}(?:\s|$)")
_CTM = re.compile(rf"\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+\S+(?:\s+{_NUMBER})?\s*$")


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
    source = Source(manifest=str(path), folder=path if path.is_dir() else path.parent, split=split)
    yield from READERS[sniff(path)](path, source)


def exists(path: Path) -> bool:
    """Whether there is a manifest: a file, a folder, or the files that a range of shards stands for."""
    return path.exists() or (tarred.is_tarred(path) and tarred.expanded(path)[0].exists())


def sniff(path: Path) -> str:
    """The format of a manifest, a key of READERS, by its content. Raises UsageError."""
    if not exists(path):
        raise UsageError(f"manifest not found: {path}")
    if path.is_dir():
        return _sniff_folder(path)
    if tarred.is_tarred(path):
        return "nemo_tarred"
    with open_binary(path) as raw:
        magic = raw.read(8)
    if magic[:4] == b"PAR1" or magic[:6] == b"ARROW1" or path.suffix == ".arrow":
        return "columns"
    if magic.startswith(SOUND):
        raise UsageError(f"{path} is an audio file, not a manifest: give the file that lists the audio and its texts")
    return _sniff_text(path)


def _sniff_folder(path: Path) -> str:
    if (path / "wav.scp").is_file():
        return "kaldi"
    if any(path.glob("cuts.*.jsonl*")):
        return "lhotse_shar"
    if hugging.is_folder(path):
        return "folder"
    inside = sorted(p.name for p in path.iterdir() if p.suffix.lower() in MANIFESTS or ".jsonl" in p.name)
    hint = f": give one of its files, such as {', '.join(inside[:3])}" if inside else ""
    raise UsageError(f"{path} is a folder of no known kind (Kaldi, Shar, a Hugging Face dataset, audio by label){hint}")


def _sniff_text(path: Path) -> str:
    head: list[str] = []
    for line in read_lines(path):
        if line.text.strip():
            head.append(line.text.strip())
        if len(head) == HEAD or line.number > 10 * HEAD:
            break
    if not head:
        return "json_lines"
    first = head[0]
    if first[0] in "[{":
        return _sniff_json(path, first, len(head) == 1)
    if 2 * sum(_is_object(line) for line in head) > len(head):
        return "json_lines"  # a comment, or a broken line, comes first
    if "ooTextFile" in first or first.startswith('"ooTextFile'):
        return "textgrid"
    if first.startswith("WEBVTT") or any(_CUE.match(line) for line in head[:4]):
        return "cues"
    spoken = [line for line in head if not line.startswith(";;")]
    if spoken and all(_CTM.match(line) for line in spoken):
        return "ctm"
    if spoken and all(_STM.match(line) for line in spoken):
        return "stm"
    return "table"


def _sniff_json(path: Path, first: str, alone: bool) -> str:
    """JSON lines or one document, and whether its rows are cuts. `alone`: there is no other line."""
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and not _is_document(value, alone):
        return "lhotse_cuts" if _is_cut(value) else "json_lines"
    if first[0] == "{" and value is None and not _is_spread_out(path):
        return "json_lines"  # a broken first line must not lose the others
    for _, _, member in json_rows.document_values(path, Source(str(path), path.parent)):
        if isinstance(member, dict):
            return "lhotse_cuts_array" if _is_cut(member) else "json_document"
    return "json_document"


def _is_document(value: dict[str, object], alone: bool) -> bool:
    """Whether an object on one line is a document of rows (by id, or in arrays) rather than a row."""
    by_id = bool(value) and all(isinstance(member, dict) for member in value.values()) and "audio" not in value
    return by_id or (alone and not _is_cut(value) and bool(json_rows.arrays_of_rows(value)))


def _is_spread_out(path: Path) -> bool:
    """Whether a file that starts with { is one object over many lines, or objects one after another (and not lines of
    which the first is broken).
    """
    try:
        text = read_text(path).strip()
    except UsageError:
        return False
    try:
        json.JSONDecoder().raw_decode(text)
        return True
    except (ValueError, RecursionError):
        pass
    lines = [line for line in text.split("\n") if line.strip()]
    return len(lines) > 1 and not any(_is_object(line) for line in lines[1:])


def _is_object(line: str) -> bool:
    try:
        return isinstance(strict_json(line), dict)
    except RowError:
        return False


def _is_cut(value: dict[str, object]) -> bool:
    if value.get("type") in {"MonoCut", "MultiCut", "MixedCut", "PaddingCut"}:
        return True
    return {"id", "start", "duration"} <= set(value) and ("recording" in value or "supervisions" in value)


__all__ = [
    "READERS", "Item", "ManifestRead", "Quarantined", "exists", "iter_manifest", "nemo_row", "read_manifest", "sniff",
    "write_nemo",
]  # fmt: skip
