"""The forms of sclite: TRN, STM and CTM are read, TRN is written."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import regex

from tools.errors import CheckError, UsageError
from tools.score.lines import Text, lines_of

IGNORED = "ignore_time_segment_in_scoring"
_STM_LABEL = regex.compile(r"^<(?!unk>)[\w.,:+-]*>\s*")
TRN_LINE = regex.compile(r"(?P<text>.*?)\s*\((?P<id>[^()\s]+)\)\s*")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a CTM file."""

    recording: str
    channel: str
    start_s: float
    duration_s: float
    word: str


def read_trn(path: Path) -> Iterator[Text]:
    """`some words (speaker-utterance)`; the speaker is the id up to its first `-` or `_`, as sclite takes it."""
    for number, line in lines_of(path):
        if line.startswith(";;"):
            continue
        match = TRN_LINE.fullmatch(line)
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
            good = 0.0 <= start <= end < math.inf
        except (IndexError, ValueError):
            good = False
        if not good:
            raise CheckError(f"{path}, line {number} is no STM line: file, channel, speaker, start, end, words.")
        words = _STM_LABEL.sub("", parts[5]) if len(parts) > 5 else ""
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
        if "<ALT" in line:
            raise CheckError(f"{path}, line {number} holds alternatives (<ALT...>): write one hypothesis.")
        try:
            word = Word(parts[0], parts[1], float(parts[2]), float(parts[3]), parts[4])
            good = 0.0 <= word.start_s < math.inf and 0.0 <= word.duration_s < math.inf
        except (IndexError, ValueError):
            good = False
        if not good:
            raise CheckError(f"{path}, line {number} is no CTM line: file, channel, start, duration, word.")
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
    in no segment, or in two that count, is an error."""
    heard: dict[str, list[str]] = {key: [] for key in segments}
    by_file: dict[tuple[str | None, str | None], list[Text]] = {}
    for segment in segments.values():
        by_file.setdefault((segment.recording, segment.domain), []).append(segment)
    for word in words:
        middle = word.start_s + word.duration_s / 2
        places = by_file.get((word.recording, word.channel), [])
        homes = [s for s in places if s.offset_s <= middle < s.offset_s + s.duration_s]
        counted = [s for s in homes if s.text != IGNORED] or homes[:1]
        if len(counted) != 1:
            raise CheckError(
                f"{path} has a word at {middle:.2f} s of {word.recording}, in "
                f"{'two segments' if counted else 'no segment'} of the reference: align the two files."
            )
        heard[counted[0].id].append(word.word)
    return {key: Text(key, " ".join(parts)) for key, parts in heard.items()}


def write_trn(path: Path | str, texts: Iterable[tuple[str, str]]) -> None:
    """Write (id, text) pairs as sclite TRN, in the given order. Raises UsageError for an id that TRN cannot hold, or a
    file that cannot be written."""
    try:
        with open(path, "w", encoding="utf-8", errors="replace", newline="\n") as stream:
            for key, text in texts:
                if not key or regex.search(r"[()\s]", key):
                    raise UsageError(
                        f"The id {key!r} cannot stand in a TRN file: rename it without spaces and parentheses."
                    )
                stream.write(f"{' '.join(text.split())} ({key})\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}): choose another folder.") from error
