"""Reads texts keyed by id: JSON lines (plain, NeMo manifests with `pred_text`, our own rows.jsonl), CTM, STM, TRN;
writes TRN. Nothing is guessed about a row: without an id, or with a doubled one, it is an error.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from tools.errors import CheckError, UsageError

HYP_KEYS = ("pred_text", "hyp", "hypothesis", "text", "transcript", "prediction")
REF_KEYS = ("ref", "reference", "text", "transcript", "sentence", "answer")
_SPEAKER = ("speaker", "speaker_id", "spk", "client_id")
_LANG = ("lang", "language", "locale", "target_lang", "source_lang")
IGNORED = "ignore_time_segment_in_scoring"
_TRN = regex.compile(r"(?P<text>.*?)\s*\((?P<id>[^()\s]+)\)\s*")


@dataclass(frozen=True, slots=True)
class Text:
    """One text and what is known of it. Seconds are floats; `line` is the physical line, from 1."""

    id: str
    text: str
    speaker: str | None = None
    recording: str | None = None
    lang: str | None = None
    domain: str | None = None
    audio: str | None = None
    finish: str = "stop"
    tokens: int = 0
    offset_s: float = 0.0
    duration_s: float = 0.0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a CTM file."""

    recording: str
    channel: str
    start_s: float
    duration_s: float
    word: str


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers; split on LF only, BOM and CR dropped. Raises UsageError."""
    try:
        with open(path, "rb") as stream:
            for number, raw in enumerate(stream, 1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise CheckError(
                        f"{path}, line {number} is not UTF-8 (byte {error.start}): save it as UTF-8."
                    ) from error
                if line.strip():
                    yield number, line
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error}): check the path.") from error


def kind_of(path: Path) -> str:
    """jsonl, ctm, stm or trn: by the file's ending, else by its first line."""
    ending = path.suffix.lower().lstrip(".")
    if ending in ("ctm", "stm", "trn"):
        return ending
    _, first = next(iter(lines_of(path)), (0, "{"))
    if first.lstrip()[:1] in "{[":
        return "jsonl"
    if ending == "" and _TRN.fullmatch(first):
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


def read_texts(path: Path | str, keys: tuple[str, ...]) -> dict[str, Text]:
    """`each_text` by id. Raises CheckError for a doubled id as well."""
    out: dict[str, Text] = {}
    for row in each_text(path, keys):
        if row.id in out:
            raise CheckError(f"{path}, line {row.line} repeats the id {row.id!r}: each clip counts once.")
        out[row.id] = row
    return out


# --- JSON ----------------------------------------------------------------------------------------------------------


def read_jsonl(path: Path, keys: tuple[str, ...]) -> Iterator[Text]:
    """Rows of JSON lines, or of one JSON array."""
    for number, row in _objects(path):
        if not isinstance(row, dict):
            raise CheckError(f"{path}, line {number} is no JSON object: one object a line is due.")
        text = next((row[key] for key in keys if row.get(key) is not None), None)
        if not isinstance(text, str):
            raise CheckError(f"{path}, line {number} has no text: one of {', '.join(keys)} is due.")
        yield _text(path, number, row, text)


def _objects(path: Path) -> Iterator[tuple[int, Any]]:
    lines = lines_of(path)
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("["):
        try:
            array = json.loads("\n".join([first[1], *(line for _, line in lines)]))
        except ValueError as error:
            raise CheckError(f"{path} is no JSON array ({error}): restore the file.") from error
        yield from enumerate(array, 1)
        return
    for number, line in (first, *lines):
        try:
            yield number, json.loads(line)
        except ValueError as error:
            raise CheckError(f"{path}, line {number} is no JSON ({error}): restore the line.") from error


def _text(path: Path, number: int, row: Mapping[str, Any], text: str) -> Text:
    audio = next((row[k] for k in ("audio_filepath", "audio", "path", "wav") if isinstance(row.get(k), str)), None)
    offset = _seconds(path, number, row, "offset", "offset_s")
    key = row.get("id", row.get("utt_id"))
    if key is None or key == "":
        if audio is None:
            raise CheckError(f"{path}, line {number} has neither an id nor an audio path: rows are matched by id.")
        key = f"{audio}#{offset}"
    return Text(
        id=unicodedata.normalize("NFC", str(key)),
        text=text,
        speaker=_name(row, _SPEAKER),
        recording=_name(row, ("recording", "recording_id", "session")),
        lang=_name(row, _LANG),
        domain=_name(row, ("domain", "source", "taskname")),
        audio=audio,
        finish=str(row.get("finish") or row.get("finish_reason") or "stop"),
        tokens=int(row.get("tokens") or 0) if isinstance(row.get("tokens"), int | float) else 0,
        offset_s=offset,
        duration_s=_seconds(path, number, row, "duration", "duration_s"),
        line=number,
    )


def _name(row: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    value = next((row[key] for key in keys if row.get(key) not in (None, "")), None)
    return None if value is None else unicodedata.normalize("NFC", str(value)).strip() or None


def _seconds(path: Path, number: int, row: Mapping[str, Any], *keys: str) -> float:
    value = next((row[key] for key in keys if row.get(key) is not None), 0.0)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise CheckError(f"{path}, line {number} has a {keys[0]} that is no number ({value!r}): correct it.") from None


# --- sclite forms --------------------------------------------------------------------------------------------------


def read_trn(path: Path) -> Iterator[Text]:
    """`some words (speaker-utterance)`; the speaker is the id up to its first `-` or `_`, as sclite takes it."""
    for number, line in lines_of(path):
        if line.startswith(";;"):
            continue
        match = _TRN.fullmatch(line)
        if not match:
            raise CheckError(f"{path}, line {number} is no TRN line: `words (id)` is due.")
        _no_alternatives(path, number, match["text"])
        key = unicodedata.normalize("NFC", match["id"])
        speaker = regex.split(r"[-_]", key, maxsplit=1)
        yield Text(key, match["text"].strip(), speaker=speaker[0] if len(speaker) > 1 else None, line=number)


def read_stm(path: Path) -> Iterator[Text]:
    """`file channel speaker start end [<labels>] words`; segments marked as ignored are left out."""
    for number, line in lines_of(path):
        if line.startswith(";;"):
            continue
        parts = line.split(maxsplit=5)
        try:
            recording, channel, speaker, start, end = *parts[:3], float(parts[3]), float(parts[4])
        except (IndexError, ValueError):
            raise CheckError(
                f"{path}, line {number} is no STM line: file, channel, speaker, start, end, words."
            ) from None
        words = regex.sub(r"^<[^>]*>\s*", "", parts[5]) if len(parts) > 5 else ""
        _no_alternatives(path, number, words)
        if words.strip().lower() == IGNORED:
            words = IGNORED
        key = f"{recording}-{channel}-{speaker}-{start:.3f}-{end:.3f}"
        yield Text(key, words, speaker, recording, offset_s=start, duration_s=end - start, line=number, domain=channel)


def read_ctm(path: Path) -> list[Word]:
    """`file channel start duration word [confidence]`, sorted by time within a recording and channel."""
    out = []
    for number, line in lines_of(path):
        if line.startswith(";;"):
            continue
        parts = line.split()
        try:
            word = Word(parts[0], parts[1], float(parts[2]), float(parts[3]), parts[4])
        except (IndexError, ValueError):
            raise CheckError(f"{path}, line {number} is no CTM line: file, channel, start, duration, word.") from None
        if word.word.startswith("<ALT"):
            raise CheckError(f"{path}, line {number} holds alternatives (<ALT...>): write one hypothesis.")
        out.append(word)
    return sorted(out, key=lambda w: (w.recording, w.channel, w.start_s))


def _no_alternatives(path: Path, number: int, text: str) -> None:
    if "{" in text and "/" in text:
        raise CheckError(f"{path}, line {number} holds alternatives ({{ a / b }}): write one text.")


def join_words(words: Iterable[Word]) -> dict[str, Text]:
    """One text a recording (and channel, where a recording has several), words in time order."""
    joined: dict[tuple[str, str], list[str]] = {}
    for word in words:
        joined.setdefault((word.recording, word.channel), []).append(word.word)
    channels: dict[str, int] = {}
    for recording, _ in joined:
        channels[recording] = channels.get(recording, 0) + 1
    out = {}
    for (recording, channel), parts in joined.items():
        key = recording if channels[recording] == 1 else f"{recording}-{channel}"
        out[key] = Text(key, " ".join(parts), recording=recording)
    return out


def words_in_segments(words: Iterable[Word], segments: Mapping[str, Text], path: Path) -> dict[str, Text]:
    """The CTM's words as texts of the STM's segments, by the middle of each word. Words in ignored segments go; a word
    in no segment is an error."""
    heard: dict[str, list[str]] = {key: [] for key in segments}
    by_file: dict[tuple[str | None, str | None], list[Text]] = {}
    for segment in segments.values():
        by_file.setdefault((segment.recording, segment.domain), []).append(segment)
    for word in words:
        middle = word.start_s + word.duration_s / 2
        places = by_file.get((word.recording, word.channel), [])
        home = next((s for s in places if s.offset_s <= middle < s.offset_s + s.duration_s), None)
        if home is None:
            raise CheckError(
                f"{path} has the word {word.word!r} at {middle:.2f} s of {word.recording}, in no segment of the "
                "reference: align the two files."
            )
        heard[home.id].append(word.word)
    return {key: Text(key, " ".join(parts)) for key, parts in heard.items()}


def write_trn(path: Path | str, texts: Iterable[tuple[str, str]]) -> None:
    """Write (id, text) pairs as sclite TRN, in the given order. Raises UsageError for an id that TRN cannot hold."""
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        for key, text in texts:
            if not key or regex.search(r"[()\s]", key):
                raise UsageError(
                    f"The id {key!r} cannot stand in a TRN file: rename it without spaces and parentheses."
                )
            stream.write(f"{' '.join(text.split())} ({key})\n")
