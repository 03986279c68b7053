"""One mapping (a JSON object, a table row) -> one Clip, whatever its author called the columns."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tools.data.languages import language_code
from tools.rows import Clip

ALIASES: dict[str, tuple[str, ...]] = {
    "audio": (
        *("audio_filepath", "audio", "audio_path", "audio_file", "wav", "wav_path", "sound", "speech", "ori_sound"),
        *("path", "file", "filepath", "file_path", "file_name", "filename"),
    ),
    "text": (
        "text",
        "transcript",
        "transcription",
        "sentence",
        "normalized_text",
        "reference",
        "wrd",
        "words",
        "answer",
    ),
    "id": ("id", "utt_id", "utterance_id", "utt", "uttid", "segment_id", "key", "sample_id"),
    "duration": ("duration", "duration_s", "dur", "length_s", "duration_seconds"),
    "offset": ("offset", "offset_s", "start", "start_s", "start_time", "begin"),
    "end": ("end", "end_s", "end_time", "stop"),
    "speaker": ("speaker", "speaker_id", "spk", "spk_id", "speaker_name", "client_id", "reader", "reader_id"),
    "lang": ("lang", "language", "locale", "source_lang", "lang_id", "language_code"),
    "recording": ("recording", "recording_id", "session", "session_id"),
    "label": ("label", "class", "category"),
    "channel": ("channel", "chan", "channel_id"),
    "prompt": ("prompt", "context", "instruction"),
    "split": ("split", "subset"),
}
_ABSENT = {"", "none", "null", "nan", "n/a", "na", "unknown", "unk", "<unk>", "-", "?"}


class RowError(ValueError):
    """A row that cannot become a Clip; the message is the quarantine reason."""


@dataclass(frozen=True)
class Source:
    """Where rows come from: the manifest as the customer wrote it, its folder, and the split its rows get."""

    manifest: str
    folder: Path
    split: str = ""


_TIMES = {"offset", "duration", "end"}
_DATA_ROOT = re.compile(r"^\{\w+\}/")  # SpeechBrain's "{data_root}/": the manifest's folder
_NAMES = {
    alias.replace("_", ""): (name, rank) for name, aliases in ALIASES.items() for rank, alias in enumerate(aliases)
}


def clip_from(row: Mapping[str, Any], source: Source, number: int) -> Clip:
    """The Clip of one row. Raises RowError with the reason where the row cannot be one."""
    got, extras = named_fields(row)
    written = _path_text(got.get("audio"))
    label = _name(got.get("label"), "label")
    if label is not None and label != got["label"] and isinstance(got["label"], str):
        extras["label_as_written"] = got["label"]
    offset = _seconds(got.get("offset"), "offset") or 0.0
    channel = _channel(got.get("channel"))
    return Clip(
        id=_name(got.get("id"), "id") or row_id(written, offset, channel),
        audio=source.folder / written,
        text=_text(got.get("text"), "text"),
        offset_s=offset,
        duration_s=_duration(got, offset),
        channel=channel,
        lang=_lang(got.get("lang")),
        speaker=_who(got.get("speaker"), "speaker"),
        recording=_who(got.get("recording"), "recording"),
        label=label,
        prompt=_text(got.get("prompt"), "prompt"),
        extras=extras,
        split=source.split or _name(got.get("split"), "split") or "",
        manifest=source.manifest,
        row=number,
    )


def named_fields(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values by our names (the first alias that is present and not None wins), and everything else."""
    got: dict[str, Any] = {}
    ranks: dict[str, tuple[int, str]] = {}
    extras: dict[str, Any] = {}
    for key, value in row.items():
        if value is None:
            continue
        name, rank, in_ms = field_of(str(key))
        value = _from_ms(value) if in_ms else value
        if not name or (name in ranks and ranks[name][0] <= rank):
            extras[key] = value
            continue
        if name in ranks:
            extras[ranks[name][1]] = got[name]
        got[name], ranks[name] = value, (rank, key)
    return got, extras


@lru_cache(maxsize=4096)
def field_of(key: str) -> tuple[str, int, bool]:
    """A column's name, however it is written (`Audio Path`, `audioPath`, `start_ms`) -> our name or "", its rank among
    the aliases, and whether its times are milliseconds.
    """
    plain = re.sub(r"[\W_]+", "", key).lower()
    if plain in _NAMES:
        return (*_NAMES[plain], False)
    name, rank = _NAMES.get(plain.removesuffix("ms"), ("", 0)) if plain.endswith("ms") else ("", 0)
    return (name, rank, True) if name in _TIMES else ("", 0, False)


def _from_ms(value: Any) -> Any:
    try:
        return float(str(value).replace(",", ".")) / 1000
    except ValueError:
        return value


def row_id(audio: str, offset: float, channel: int | None = None) -> str:
    """The id of a row that has none: audio path as written, `#`, offset in seconds, and the channel where one is
    named.
    """
    return f"{audio}#{offset}" if channel is None else f"{audio}#{offset}#{channel}"


def _path_text(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("path")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None:
        raise RowError("no audio path in the row")
    if not isinstance(value, str):
        raise RowError(f"the audio path is a {_kind(value)}, not a string")
    text = value.strip("\r\n")
    if not text.strip():
        raise RowError("the audio path is empty")
    if "\0" in text or not _encodes(text):
        raise RowError("the audio path holds characters that no file name can have")
    text = _DATA_ROOT.sub("", text)
    scheme = text.split("://", 1)[0] if "://" in text else ""
    if scheme == "file":
        return text[len("file://") :]
    if scheme:
        raise RowError(f"the audio is remote ({scheme}://): fetch it first, nothing is downloaded here")
    return text


def seconds(value: Any, what: str) -> float | None:
    """Seconds as float from a number or a text (`12.5`, `12,5`, `00:01:02.5`, `1500ms`); None where absent.

    Raises RowError where it is no finite, non-negative number.
    """
    return _seconds(value, what)


def _seconds(value: Any, what: str) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise RowError(f"{what} is a {_kind(value)}, not a number of seconds")
    try:
        number = _clock(value) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError) as error:
        raise RowError(f"{what} {value!r:.40} is not a number of seconds") from error
    if not math.isfinite(number) or number < 0:
        raise RowError(f"{what} {value!r:.40} is not a time")
    return number


def _clock(text: str) -> float:
    plain = text.strip().lower()
    scale = 1.0
    for unit, worth in (("ms", 0.001), ("sec", 1.0), ("s", 1.0)):
        if plain.endswith(unit):
            plain, scale = plain[: -len(unit)].strip(), worth
            break
    if "_" in plain:
        raise ValueError(text)
    total = 0.0
    for part in plain.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total * scale


def _duration(got: Mapping[str, Any], offset: float) -> float | None:
    duration = _seconds(got.get("duration"), "duration")
    if duration == 0:
        raise RowError("duration is 0")
    end = _seconds(got.get("end"), "end")
    if duration is not None or end is None:
        return duration
    if end <= offset:
        raise RowError(f"the end ({end} s) is not after the start ({offset} s)")
    return round(end - offset, 9)


def _channel(value: Any) -> int | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    try:
        number = int(value) if not isinstance(value, bool) and float(value) == int(value) else -1
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0:
        raise RowError(f"channel {value!r:.40} is not a channel number (they count from 0)")
    return number


def _text(value: Any, what: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise RowError(f"{what} is a {_kind(value)}, not a string")
    if not _encodes(value):
        raise RowError(f"{what} holds half a surrogate pair: the text was cut or wrongly decoded")
    return value


def _name(value: Any, what: str) -> str | None:
    """Ids, labels, split names: strings or integers, NFC, trimmed; None where empty."""
    if value is None:
        return None
    if isinstance(value, bool | Mapping | list):
        raise RowError(f"{what} is a {_kind(value)}, not a string")
    text = " ".join(unicodedata.normalize("NFC", str(value)).split())
    if not _encodes(text):
        raise RowError(f"{what} holds half a surrogate pair")
    return text or None


def _who(value: Any, what: str) -> str | None:
    text = _name(value, what)
    return None if text is None or text.lower() in _ABSENT else text


def _lang(value: Any) -> str | None:
    """The one code where the name is known, else the name as written (the checks report it)."""
    written = _name(value, "lang")
    return language_code(written) or (None if written is None or written.lower() in _ABSENT else written)


def _encodes(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _kind(value: Any) -> str:
    kinds = {bool: "true/false", int: "number", float: "number", list: "list", dict: "mapping", bytes: "byte string"}
    return kinds.get(type(value), type(value).__name__)
