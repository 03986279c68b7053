"""Whose answer is this: names written by somebody else (ids, paths of another machine, bare file names) -> clips.

A name that could be two clips' names neither, and two files that both could be one clip's are not put together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import PurePosixPath

from tools.decode.given_formats import Heard
from tools.errors import UsageError
from tools.rows import Clip

SUFFIXES = {
    ".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".mp4", ".aac", ".wma", ".webm", ".sph", ".aiff", ".aif", ".au",
    ".json", ".txt", ".npy", ".raw", ".pcm", ".amr", ".mkv",
}  # fmt: skip


class Names:
    """What the clips are called: `known` holds ids and paths as they are; parts of paths are found by `clip`."""

    def __init__(self, clips: Sequence[Clip]) -> None:
        self.clips = clips
        self._exact: dict[str, set[int]] = {}
        self._loose: dict[str, set[int]] = {}
        for i, clip in enumerate(clips):
            for name in (clip.id, str(clip.audio)):
                self._exact.setdefault(_nfc(name), set()).add(i)
            self._loose.setdefault(_bare(str(clip.audio)), set()).add(i)
            self._loose.setdefault(_bare(clip.id), set()).add(i)
        self.known = frozenset(self._exact)

    def clip(self, name: str) -> tuple[int, int] | None:
        """(place of the clip, how many parts of the path agree; 99 for the very name), None where none or several fit."""
        name = _nfc(name)
        if name.startswith("#") and name[1:].isdigit() and name not in self._exact:
            return int(name[1:]), 99
        exact = self._exact.get(name, set())
        if exact:
            return self._only(exact, 99)
        found = {i: self._shared(name, i) for i in self._loose.get(_bare(name), ())}
        most = max(found.values(), default=0)
        return self._only({i for i, n in found.items() if n == most}, most)

    def _only(self, places: set[int], agree: int) -> tuple[int, int] | None:
        named = {(self.clips[i].split, self.clips[i].id) for i in places}
        return (min(places), agree) if len(named) == 1 else None

    def _shared(self, name: str, at: int) -> int:
        clip = self.clips[at]
        return max(_agree(name, _nfc(str(clip.audio))), _agree(name, _nfc(clip.id)))


def place(heard: Sequence[Heard], names: Names) -> tuple[dict[str, list[Heard]], int]:
    """(answers by clip id, how many belong to none). Raises UsageError where two files would be one clip."""
    found: dict[str, list[tuple[int, str, Heard]]] = {}
    without = 0
    for one in heard:
        at = next(((hit, name) for name in one.names if (hit := names.clip(name)) is not None), None)
        if at is None:
            without += 1
            continue
        (clip, agree), name = at
        found.setdefault(names.clips[clip].id, []).append((agree, name, one))
    out = {}
    for clip_id, rows in found.items():
        best = max(agree for agree, _, _ in rows)
        kept = [(name, one) for agree, name, one in rows if agree == best or "/" not in _slashes(name)]
        without += len(rows) - len(kept)
        folders = sorted({_without_suffix(_slashes(name)) for name, _ in kept if "/" in _slashes(name)})
        if best < 99 and len(folders) > 1:
            raise UsageError(
                f"answers of {folders[0]} and of {folders[1]} could both be those of clip {clip_id}: name its answers by id"
            )
        out[clip_id] = [one for _, one in kept]
    return out, without


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _slashes(name: str) -> str:
    return name.replace("\\", "/")


def _without_suffix(name: str) -> str:
    """Only the ending of a sound or text file is one: in `utt.003` the number is part of the name."""
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if path.suffix.lower() in SUFFIXES else name


def _bare(name: str) -> str:
    """The file's name without folders and ending, in NFC."""
    return PurePosixPath(_without_suffix(_slashes(_nfc(name)))).name


def _agree(a: str, b: str) -> int:
    """How many parts of two paths are equal, counted from the end, endings of files left out."""
    parts = (PurePosixPath(_without_suffix(_slashes(x))).parts for x in (a, b))
    count = 0
    for x, y in zip(*(reversed(p) for p in parts)):
        if x != y:
            break
        count += 1
    return count
