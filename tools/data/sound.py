"""The map over audio: every distinct stretch that rows name is decoded once, whatever the number of rows that name
it.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.audio.facts import QUIET_DB, Facts, audio_facts
from tools.audio.read import Wave
from tools.data.rowchecks import CLIPPED, FAST, LENGTH, QUIET, RATE_DECLARED, SHORT, SLOW, Options
from tools.data.table import Ints, RowTable
from tools.rows import Clip

CLIPPED_SHARE = 0.001
SHORT_S = 0.1
SLOW_LETTERS, SLOW_FROM_S = 2.0, 3.0  # letters a second below which a text is not what is said, from that length on
FAST_LETTERS, FAST_HAN = 35.0, 14.0
LENGTH_SLACK_S = 0.25
WINDOW_SLACK_S = 1e-6
WIDE_SCRIPTS = {"zh", "ja", "ko", "yue", "th", "lo", "km", "my"}

Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
Heard = tuple[Facts, list[tuple[int, Wave]]]


@dataclass(frozen=True)
class Verdict:
    """What becomes of the rows of one stretch: a reason to set them aside (kind, sentence) or marks.

    `silent` says why rows that have a text are set aside; `seconds` and `digest` are the stretch's.
    """

    kind: str = ""
    reason: str = ""
    counts: bool = True
    silent: str = ""
    marks: int = 0


def stretches(table: RowTable, rows: Ints) -> tuple[Ints, Ints]:
    """Rows grouped by what they name: (first row of each distinct stretch, the stretch of each row).

    Stretches are numbered file after file in the order the rows name them, so that a file is opened in one go and a table
    that holds audio is read from front to back.
    """
    columns = [table[name][rows] for name in ("file", "offset", "duration", "channel")]
    columns[2] = np.nan_to_num(columns[2], nan=-1.0)
    order = np.lexsort(columns[::-1])
    changes = np.zeros(len(rows), dtype=bool)
    for values in columns:
        sorted_values = values[order]
        changes[1:] |= sorted_values[1:] != sorted_values[:-1]
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    group = np.empty(len(rows), dtype=np.int64)
    group[order] = np.cumsum(changes)
    first = order[np.concatenate([[True], changes[1:]])]
    _, file = np.unique(columns[0][first], return_inverse=True)
    file_first = np.full(int(file.max()) + 1, len(rows))
    np.minimum.at(file_first, file, first)
    by_place = np.lexsort((columns[1][first], file_first[file]))
    number = np.empty(len(first), dtype=np.int64)
    number[by_place] = np.arange(len(first))
    return rows[first[by_place]], number[group]


def hear(table: RowTable, firsts: Ints, mapper: Mapper = map) -> Iterator[tuple[int, Heard]]:
    """Facts and sound of each stretch, in the order of `firsts`."""
    return zip((int(i) for i in firsts), mapper(audio_facts, (table.clip(int(i)) for i in firsts)), strict=True)


def judge(clip: Clip, facts: Facts, options: Options) -> Verdict:
    """The facts of a stretch (`clip`: one of its rows) against what a row must be."""
    if facts.error is not None:
        reason, text = facts.error
        hint = other_form(clip.audio) if reason == "missing" else ""
        return Verdict(reason, f"{reason}: {text}{hint}")
    if facts.seconds > options.max_duration_s + WINDOW_SLACK_S:
        why = f"longer than the model's window: {facts.seconds:.2f} s, over {options.max_duration_s:.1f} s"
        return Verdict("window", why, counts=False)
    if facts.missing_s:
        promised = facts.seconds + facts.missing_s
        why = f"truncated: {clip.audio} promises {promised:.3f} s and holds {facts.seconds:.3f} s"
        return Verdict("truncated", why)
    silent = f"silent: {clip.audio} has no sound there and the reference is not empty" if facts.still else ""
    return Verdict(silent=silent, marks=_marks(clip, facts))


def _marks(clip: Clip, facts: Facts) -> int:
    declared = clip.extras.get("sampling_rate", clip.extras.get("sample_rate"))
    wrong_rate = isinstance(declared, int | float) and bool(declared) and declared != facts.rate
    rest_s = facts.file_s - (clip.duration_s or facts.file_s)
    return (
        CLIPPED * (facts.clipped > CLIPPED_SHARE)
        | QUIET * (not facts.still and facts.rms_db < QUIET_DB)
        | SHORT * (facts.seconds < SHORT_S)
        | LENGTH * (clip.offset_s == 0 and rest_s > LENGTH_SLACK_S)
        | RATE_DECLARED * wrong_rate
    )


def pace_marks(table: RowTable, rows: Ints) -> npt.NDArray[np.uint32]:
    """SLOW and FAST for each of the rows: letters a second that cannot be what is said."""
    letters, seconds = table["letters"][rows].astype(np.float64), table.seconds[rows]
    pace = letters / np.maximum(seconds, 1e-3)
    wide = np.isin(table["lang"][rows], [i for i, lang in enumerate(table.langs) if lang in WIDE_SCRIPTS])
    slow = (letters > 0) & (seconds >= SLOW_FROM_S) & (pace < SLOW_LETTERS)
    fast = pace > np.where(wide, FAST_HAN, FAST_LETTERS)
    return (SLOW * slow + FAST * fast).astype(np.uint32)


def other_form(path: Path) -> str:
    """A hint where the missing path exists in another Unicode form (NFC, NFD) or case, else an empty string."""
    found = Path(path.anchor)
    for part in path.parts[len(found.parts) :]:
        if not os.path.exists(found / part):  # (a name that is too long is only not there)
            changed = os.stat(found).st_mtime_ns if os.path.isdir(found) else 0
            part = _listing(str(found), changed).get(_folded(part), "")
            if not part:
                return ""
        found /= part
    if str(found) == str(path):
        return ""
    for form in ("NFC", "NFD"):
        if unicodedata.normalize(form, str(path)) == str(found):
            return f"; a file of that name exists in Unicode form {form}: {found!s}"
    return f"; a file of that name exists, written otherwise: {found!s}"


@lru_cache(maxsize=8)
def _listing(folder: str, changed: int) -> dict[str, str]:
    """What lies in a folder, by folded name; `changed` is its time, so that a changed folder is read again."""
    try:
        return {_folded(name): name for name in os.listdir(folder or ".")}
    except OSError:
        return {}


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
