"""NeMo manifests: JSON lines, JSON arrays, a JSON object of rows by id; conversations too."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.data.fields import RowError, Source, field_of
from tools.data.lines import read_lines, read_text
from tools.data.reading import (
    Item,
    bad_line,
    json_fault,
    loose_id,
    no_constant,
    no_key_twice,
    row_item,
    strict_json,
)  # fmt: skip
from tools.data.splits import ROLES

_BLANK = re.compile(r"[ \t\r\n,]*")
_PLACEHOLDER = re.compile(r"<(?:sound|audio|speech|\|audio\|)>")
_OWN_ROW = {"conversations", "messages", "supervisions", "recording"}  # a row that holds objects of its own
SPLIT_WORDS = {word for words in ROLES.values() for word in words}
_SOUND_KEYS = ("sound", "speech", "ori_sound")


def read(path: Path, source: Source) -> Iterator[Item]:
    """One JSON object a line."""
    for number, value in json_line_values(path, source):
        yield value if isinstance(value, Item) else item(value, source, number)


def json_line_values(path: Path, source: Source) -> Iterator[tuple[int, Any]]:
    """(line, value) of each line that is not blank; a line that is no JSON comes as a row set aside."""
    for line in read_lines(path):
        if line.error:
            yield line.number, bad_line(source, line.number, line.error, "encoding")
        elif line.text.strip():
            try:
                yield line.number, strict_json(line.text)
            except RowError as error:
                yield line.number, bad_line(source, line.number, str(error), known=loose_id(line.text))


def read_document(path: Path, source: Source) -> Iterator[Item]:
    """One JSON document: an array of rows, an object of rows by id, or an object that holds arrays of rows (by split,
    or under a name such as `data`); or objects one after another.
    """
    for number, key, value in document_values(path, source):
        if isinstance(value, Mapping) and key is not None:
            value = {"id": key, **value}
        yield value if isinstance(value, Item) else item(value, source, number)


Members = Generator[tuple[int, str | None, Any], None, int]


def document_values(path: Path, source: Source) -> Iterator[tuple[int, str | None, Any]]:
    """(line, key, value) of each row of a JSON document, the key where rows stand by id; what is no JSON comes as a
    row set aside.
    """
    text = read_text(path)
    at = min((place for mark in "[{" if (place := text.find(mark)) >= 0), default=len(text))
    if at == len(text):
        return
    if text[at] == "[":
        yield from _Walk(text, source).array(at + 1, "]")
        return
    try:
        held = arrays_of_rows(json.loads(text[at:]))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            yield from _Walk(text, source).array(at, "")
            return
        held = frozenset()
    except (ValueError, RecursionError):
        held = frozenset()
    yield from _Walk(text, source).object(at + 1, held)


def arrays_of_rows(value: Any) -> frozenset[str]:
    """The keys of an object under which arrays of rows stand; none where the object is a row itself."""
    if not isinstance(value, Mapping) or any(field_of(key)[0] == "audio" for key in value) or _OWN_ROW & set(value):
        return frozenset()
    arrays = ((k, v) for k, v in value.items() if isinstance(v, list) and v)
    return frozenset(k for k, v in arrays if all(isinstance(one, Mapping) for one in v))


class _Walk:
    """The members of a document, told with their lines; a broken one does not lose the others."""

    def __init__(self, text: str, source: Source) -> None:
        self.text, self.source = text, source
        self.decoder = json.JSONDecoder(parse_constant=no_constant, object_pairs_hook=no_key_twice)
        self.line, self.counted = 1, 0

    def array(self, at: int, close: str, split: str = "") -> Members:
        """Values up to `close` (to the end of the text where it is empty); gives the place behind it."""
        while True:
            at = self._next(at)
            if at >= len(self.text):
                if close:
                    yield self._aside(f"the JSON document is cut off: no closing {close}")
                return at
            if self.text[at] == close:
                return at + 1
            try:
                line = self.line
                value, at = self.decoder.raw_decode(self.text, at)
                yield line, None, {"split": split, **value} if split and isinstance(value, Mapping) else value
            except (RowError, ValueError, RecursionError) as error:
                yield self._aside(json_fault(error))
                at = _next_member(self.text, at)
                if at < 0:
                    return len(self.text)

    def object(self, at: int, held: frozenset[str]) -> Members:
        """Rows by id; or, where `held` names keys, the rows of the arrays under them and nothing else."""
        while True:
            at = self._next(at)
            if at >= len(self.text):
                yield self._aside("the JSON document is cut off: no closing }")
                return at
            if self.text[at] == "}":
                return at + 1
            try:
                key, at = _key(self.decoder, self.text, at)
                if key in held:
                    at = yield from self.array(at + 1, "]", key if key.lower() in SPLIT_WORDS else "")
                    continue
                line = self.line
                value, at = self.decoder.raw_decode(self.text, at)
                if not held:
                    yield line, key, value
            except (RowError, ValueError, RecursionError) as error:
                yield self._aside(json_fault(error))
                at = _next_member(self.text, at)
                if at < 0:
                    return len(self.text)

    def _next(self, at: int) -> int:
        at = _end_of_blank(self.text, at)
        self.line, self.counted = self.line + self.text.count("\n", self.counted, at), at
        return at

    def _aside(self, why: str) -> tuple[int, None, Item]:
        return self.line, None, bad_line(self.source, self.line, why)


def _end_of_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _key(decoder: json.JSONDecoder, text: str, at: int) -> tuple[str, int]:
    key, at = decoder.raw_decode(text, at)
    colon = re.compile(r"\s*:\s*").match(text, at)
    if not isinstance(key, str) or colon is None:
        raise RowError("not JSON: a key and a colon were expected")
    return key, colon.end()


def _next_member(text: str, at: int) -> int:
    """Where the next row of a broken document starts (a line that begins with an object or a key), or -1."""
    found = re.compile(r'\n[ \t]*(?=\{|"[^"\n]*"\s*:\s*\{)').search(text, at)
    return found.end() if found else -1


def item(value: Any, source: Source, number: int) -> Item:
    """A JSON value -> its row; conversations are read as prompt, audio and answer."""
    if isinstance(value, Mapping) and isinstance(value.get("conversations"), list):
        try:
            value = conversation(value)
        except RowError as error:
            return bad_line(source, number, str(error))
    return row_item(value, source, number)


def conversation(value: Mapping[str, Any]) -> dict[str, Any]:
    """A conversation with one audio -> the row it means: the turn with the audio, the user's words, the last answer.

    Raises RowError where audios and their placeholders do not match or there is not exactly one audio.
    """
    turns = [turn for turn in value["conversations"] if isinstance(turn, Mapping)]
    audios = [(t.get("value"), t) for t in turns if t.get("type") == "audio"]
    named = next((value[key] for key in _SOUND_KEYS if value.get(key)), None)
    if named is not None:
        audios += [(audio, {}) for audio in (named if isinstance(named, list) else [named])]
        marks = sum(len(_PLACEHOLDER.findall(str(turn.get("value", "")))) for turn in turns)
        if marks != len(audios):
            raise RowError(f"{len(audios)} audio path(s) and {marks} placeholder(s) in the conversation")
    if len(audios) != 1:
        raise RowError(f"a conversation with {len(audios)} audios: one is needed")
    words = [t for t in turns if t.get("type") != "audio"]
    asked = " ".join(_said(t) for t in words if not _is_answer(t)).strip()
    answers = [_said(t) for t in words if _is_answer(t)]
    rest = {k: v for k, v in value.items() if k not in {"conversations", *_SOUND_KEYS}}
    row = {**rest, "audio_filepath": audios[0][0], "duration": audios[0][1].get("duration", value.get("duration"))}
    row |= {"offset": audios[0][1].get("offset"), "context": asked or None, "text": answers[-1] if answers else None}
    return {k: v for k, v in row.items() if v is not None}


def _said(turn: Mapping[str, Any]) -> str:
    return _PLACEHOLDER.sub("", str(turn.get("value", ""))).strip()


def _is_answer(turn: Mapping[str, Any]) -> bool:
    return str(turn.get("from", "")).lower() in {"assistant", "gpt", "model"}
