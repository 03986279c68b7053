"""Reads texts keyed by id: JSON lines (plain, NeMo manifests with `pred_text`, our own rows.jsonl), CTM, STM, TRN, each
gzipped or not. Nothing is guessed about a row: without an id, or with a doubled one, it is an error.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.errors import CheckError, UsageError
from tools.score.lines import Text, lines_of
from tools.score.sclite import TRN_LINE, join_words, read_ctm, read_stm, read_trn

HYP_KEYS = ("pred_text", "hyp", "hypothesis", "text", "transcript", "prediction")
REF_KEYS = ("ref", "reference", "text", "transcript", "sentence", "answer")
LABEL_KEYS = ("ref", "reference", "label", "text", "transcript", "sentence", "answer")  # references of a label task
_SPEAKER = ("speaker", "speaker_id", "spk", "client_id")
_LANG = ("lang", "language", "locale", "target_lang", "source_lang")


def kind_of(path: Path) -> str:
    """jsonl, ctm, stm or trn: by the file's ending, else by its first line."""
    name = path.name.lower().removesuffix(".gz")
    ending = Path(name).suffix.lstrip(".")
    if ending in ("ctm", "stm", "trn"):
        return ending
    _, first = next(iter(lines_of(path)), (0, "{"))
    if first.lstrip()[:1] in "{[":
        return "jsonl"
    if ending == "" and TRN_LINE.fullmatch(first):
        return "trn"
    raise UsageError(f"{path} is neither JSON lines nor CTM, STM or TRN: give it one of these forms and endings.")


def each_text(path: Path | str, keys: tuple[str, ...]) -> Iterator[Text]:
    """The texts of a file, one at a time. `keys` are the JSON fields to take the text from, the first one present wins.

    A CTM without segments gives one text a recording and channel. Raises CheckError naming file and line for a row
    without an id or text.
    """
    path = Path(path)
    kind = kind_of(path)
    if kind == "ctm":
        yield from join_words(read_ctm(path)).values()
    elif kind == "jsonl":
        yield from read_jsonl(path, keys)
    else:
        yield from read_stm(path) if kind == "stm" else read_trn(path)


# --- JSON ----------------------------------------------------------------------------------------------------------


def read_jsonl(path: Path, keys: tuple[str, ...]) -> Iterator[Text]:
    """Rows of JSON lines, or of one JSON array. All rows of a file hold their text under one key, so that a row without
    an answer is never scored by the reference that stands beside it."""
    chosen = None
    for number, row in _objects(path):
        if not isinstance(row, dict):
            raise CheckError(f"{path}, line {number} is no JSON object: one object a line is due.")
        key = next((key for key in keys if key in row), None)
        if key is None:
            raise CheckError(f"{path}, line {number} has no text: one of {', '.join(keys)} is due.")
        chosen = chosen or key
        if key != chosen:
            raise CheckError(
                f"{path}, line {number} holds its text in `{key}`, the rows before in `{chosen}`: use one."
            )
        if not isinstance(row[key], str):
            raise CheckError(f'{path}, line {number} has no text in `{key}`: write a text there ("" for silence).')
        yield _text(path, number, row, row[key])


def _objects(path: Path) -> Iterator[tuple[int, Any]]:
    lines = lines_of(path)
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("["):
        try:
            array = json.loads("\n".join([first[1], *(line for _, line in lines)]))
        except (ValueError, RecursionError) as error:
            raise CheckError(f"{path} is no JSON array ({error}): restore the file.") from error
        yield from enumerate(array, 1)
        return
    for number, line in (first, *lines):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CheckError(f"{path}, line {number} is no JSON ({error}): restore the line.") from error


def _text(path: Path, number: int, row: Mapping[str, Any], text: str) -> Text:
    audio = next((row[k] for k in ("audio_filepath", "audio", "path", "wav") if isinstance(row.get(k), str)), None)
    offset = _seconds(path, number, row, "offset", "offset_s")
    key = _name(path, number, row, ("id", "utt_id"), strip=False)
    if key is None:
        if audio is None:
            raise CheckError(f"{path}, line {number} has neither an id nor an audio path: rows are matched by id.")
        key = f"{unicodedata.normalize('NFC', audio)}#{offset}"
    tokens = row.get("tokens")
    return Text(
        id=key,
        text=text,
        speaker=_name(path, number, row, _SPEAKER),
        recording=_name(path, number, row, ("recording", "recording_id", "session")),
        lang=_name(path, number, row, _LANG),
        domain=_name(path, number, row, ("domain", "source", "taskname")),
        audio=audio,
        finish=str(row.get("finish") or row.get("finish_reason") or "stop"),
        tokens=int(tokens) if isinstance(tokens, int | float) and math.isfinite(tokens) else 0,
        offset_s=offset,
        duration_s=_seconds(path, number, row, "duration", "duration_s"),
        line=number,
    )


def _missing(value: Any) -> bool:
    """None, an empty text, or the NaN that a table's export writes for nothing."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _name(path: Path, number: int, row: Mapping[str, Any], keys: tuple[str, ...], strip: bool = True) -> str | None:
    """A text or a number that names something, NFC; None where it is missing."""
    key = next((key for key in keys if not _missing(row.get(key))), None)
    if key is None:
        return None
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise CheckError(f"{path}, line {number} has a `{key}` that is neither text nor number: correct it.")
    name = unicodedata.normalize("NFC", str(value))
    return (name.strip() if strip else name) or None


def _seconds(path: Path, number: int, row: Mapping[str, Any], *keys: str) -> float:
    """Seconds from 0; 0 where they are missing."""
    value = next((row[key] for key in keys if not _missing(row.get(key))), 0.0)
    try:
        seconds = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = -1.0
    if not 0.0 <= seconds < math.inf:
        raise CheckError(f"{path}, line {number} has a {keys[0]} that is no number from 0 ({value!r:.40}): correct it.")
    return seconds
