"""A million rows in little memory: what the checks compare as columns of numbers, the rows themselves in a spool file.

Names (speaker, recording, file, label, sentence) are held as 64-bit hashes; the row behind a number is read back
when it has to be shown. Parts made from different stretches of rows are appended in order, so the way rows were
cut up leaves no trace.
"""

from __future__ import annotations

import hashlib
import marshal
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from tools.data.report import RowRef
from tools.rows import Clip

Ints = npt.NDArray[np.int64]

COLUMNS = {
    "row": "I",
    "split": "B",
    "manifest": "H",
    "lang": "H",  # 0: none
    "channel": "b",  # -1: none
    "marks": "I",  # bits of tools.data.rowchecks; those of the sound are added when it has been heard
    "letters": "I",
    "offset": "d",
    "duration": "d",  # nan: to the end of the file
    "id": "Q",
    "loose_id": "Q",  # the id with case, width and spacing aside
    "file": "Q",
    "speaker": "Q",  # 0: none, as in all hashes
    "recording": "Q",
    "label": "Q",
    "sentence": "Q",
}
IN_MEMORY = 32 << 20  # bytes of rows before the spool goes to disk
MOST_SPLITS = 60


def hash64(text: str | None) -> int:
    """A 64-bit hash that is the same in every process; 0 for None and the empty string."""
    if not text:
        return 0
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


@dataclass
class RowsPart:
    """Some rows of one manifest, mapped: columns and packed rows. `names` are what codes stand for, part by part."""

    columns: dict[str, array[Any]] = field(default_factory=lambda: {n: array(c) for n, c in COLUMNS.items()})
    packed: list[bytes] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)
    langs: list[str] = field(default_factory=lambda: [""])

    def add(self, clip: Clip, numbers: Mapping[str, float | int]) -> None:
        columns = self.columns
        for name, value in numbers.items():
            columns[name].append(value)  # type: ignore[arg-type]
        columns["row"].append(clip.row)
        columns["split"].append(_code(self.splits, clip.split))
        columns["manifest"].append(_code(self.manifests, clip.manifest))
        columns["lang"].append(_code(self.langs, clip.lang or ""))
        columns["channel"].append(-1 if clip.channel is None else min(clip.channel, 127))
        columns["offset"].append(clip.offset_s)
        columns["duration"].append(float("nan") if clip.duration_s is None else clip.duration_s)
        self.packed.append(pack(clip))


def pack(clip: Clip) -> bytes:
    """A clip as bytes for this process's spool (not a file format)."""
    return marshal.dumps(
        (
            clip.id, str(clip.audio), clip.text, clip.offset_s, clip.duration_s, clip.channel, clip.lang, clip.speaker,
            clip.recording, clip.label, clip.prompt, dict(clip.extras), clip.audio_sha256,
        )
    )  # fmt: skip


class RowTable:
    """All rows of a check. Append parts, then `seal`; columns are numpy arrays by name afterwards."""

    def __init__(self) -> None:
        self.splits: list[str] = []
        self.manifests: list[str] = []
        self.langs: list[str] = [""]
        self._building = {name: array(code) for name, code in COLUMNS.items()}
        self._spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - lives as long as the table
        self._at = array("Q", [0])
        self._lock = Lock()
        self.columns: dict[str, npt.NDArray[Any]] = {}
        self.digests: npt.NDArray[np.uint8] = np.zeros((0, 32), np.uint8)
        self.seconds: npt.NDArray[np.float64] = np.zeros(0)

    def append(self, part: RowsPart) -> None:
        """Take a part's rows over, its codes translated into this table's."""
        for name in COLUMNS:
            values: array[Any] = part.columns[name]
            names = {"split": (part.splits, self.splits), "manifest": (part.manifests, self.manifests)}
            names["lang"] = (part.langs, self.langs)
            if name in names:
                theirs, ours = names[name]
                codes = [_code(ours, text) for text in theirs]
                values = array(COLUMNS[name], (codes[value] for value in values))
            self._building[name].extend(values)
        for blob in part.packed:
            self._spool.write(blob)
            self._at.append(self._at[-1] + len(blob))

    def seal(self) -> RowTable:
        self.columns = {name: np.frombuffer(values, dtype=values.typecode) for name, values in self._building.items()}
        self.columns["marks"] = self.columns["marks"].copy()
        self.digests = np.zeros((len(self), 32), np.uint8)
        self.seconds = np.full(len(self), np.nan)
        return self

    def __len__(self) -> int:
        return len(self._at) - 1

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def clip(self, i: int) -> Clip:
        """Row i as a Clip, with digest and seconds where the audio has been read."""
        got = self._unpack(i)
        digest = self.digests[i].tobytes()
        seconds = None if np.isnan(self.seconds[i]) else float(self.seconds[i])
        return Clip(
            id=got[0],
            audio=Path(got[1]),
            text=got[2],
            offset_s=got[3],
            duration_s=got[4] if seconds is None else seconds,
            channel=got[5],
            lang=got[6],
            speaker=got[7],
            recording=got[8],
            label=got[9],
            prompt=got[10],
            extras=got[11],
            split=self.splits[self.columns["split"][i]],
            manifest=self.manifests[self.columns["manifest"][i]],
            row=int(self.columns["row"][i]),
            audio_sha256=digest.hex() if any(digest) else got[12],
        )

    def ref(self, i: int) -> RowRef:
        columns = self.columns
        manifest, split = self.manifests[columns["manifest"][i]], self.splits[columns["split"][i]]
        return RowRef(manifest, int(columns["row"][i]), self._unpack(i)[0], split)

    def _unpack(self, i: int) -> tuple[Any, ...]:
        start, stop = self._at[i], self._at[i + 1]
        with self._lock:
            self._spool.seek(start)
            got: tuple[Any, ...] = marshal.loads(self._spool.read(stop - start))
            self._spool.seek(self._at[-1])
        return got


class Rows(Sequence[Clip]):
    """Chosen rows of a table, read when they are looked at."""

    def __init__(self, table: RowTable, picks: Ints) -> None:
        self.table, self.picks = table, picks

    def __len__(self) -> int:
        return len(self.picks)

    @overload
    def __getitem__(self, i: int) -> Clip: ...
    @overload
    def __getitem__(self, i: slice) -> list[Clip]: ...
    def __getitem__(self, i: int | slice) -> Clip | list[Clip]:
        if isinstance(i, slice):
            return [self.table.clip(int(k)) for k in self.picks[i]]
        return self.table.clip(int(self.picks[i]))

    def __iter__(self) -> Iterator[Clip]:
        return (self.table.clip(int(k)) for k in self.picks)


class Refs(Sequence[RowRef]):
    """Places of chosen rows of a table, read when they are looked at."""

    def __init__(self, table: RowTable, picks: Ints | Sequence[int]) -> None:
        self.table, self.picks = table, np.asarray(picks, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.picks)

    @overload
    def __getitem__(self, i: int) -> RowRef: ...
    @overload
    def __getitem__(self, i: slice) -> list[RowRef]: ...
    def __getitem__(self, i: int | slice) -> RowRef | list[RowRef]:
        if isinstance(i, slice):
            return [self.table.ref(int(k)) for k in self.picks[i]]
        return self.table.ref(int(self.picks[i]))

    def __iter__(self) -> Iterator[RowRef]:
        return (self.table.ref(int(k)) for k in self.picks)


def _code(names: list[str], name: str) -> int:
    """The number of a name in a short list, added where new."""
    try:
        return names.index(name)
    except ValueError:
        names.append(name)
        return len(names) - 1
