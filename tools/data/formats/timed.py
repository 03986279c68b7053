"""Timed texts beside their audio: STM, CTM, SRT, WebVTT, TextGrid. The audio is found by name in the text's folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.data.fields import Source
from tools.data.lines import read_lines, read_text
from tools.data.reading import Item, bad_line, row_item

SUFFIXES = (".wav", ".flac", ".sph", ".mp3", ".ogg", ".opus", ".WAV", ".SPH", ".FLAC", ".MP3", ".aiff", ".au")
FOLDERS = ("", "audio", "wav", "wavs", "sph", "clips")
LONGEST_NAME = 200
GAP_S, MOST_S = 0.5, 15.0  # words further apart are another utterance; none is made longer than this
_CLOCK = re.compile(r"(?:([0-9]{1,4}):)?([0-9]{1,2}):([0-9]{1,2})[.,]([0-9]{1,3})")
_CUE = re.compile(rf"\s*({_CLOCK.pattern})\s*-->\s*({_CLOCK.pattern})")
_VALUE = re.compile(r'"((?:[^"]|"")*)"|(?<![\w.\[])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.\]])|<exists>')
_VOICE = re.compile(r"<v(?:\.[\w.]+)?\s+([^>]+)>")
_TAGS = re.compile(r"</?[a-zA-Z][^>]*>|\{\\[^}]*\}")


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its times in seconds, and where it stands."""

    line: int
    start: float
    end: float
    text: str


def audio_named(folder: Path, name: str) -> str:
    """The path, relative to `folder`, of the audio that `name` stands for; `name` itself where none is found."""
    if len(name) > LONGEST_NAME:
        return name
    if (folder / name).is_file():
        return name
    for inside in FOLDERS:
        for suffix in SUFFIXES:
            if (folder / inside / (name + suffix)).is_file():
                return str(Path(inside) / (name + suffix))
    return name


def read_stm(path: Path, source: Source) -> Iterator[Item]:
    """file channel speaker start end [<labels>] text."""
    found: dict[str, str] = {}
    for line in read_lines(path):
        if line.error:
            yield bad_line(source, line.number, line.error, "encoding")
            continue
        parts = line.text.split(None, 5)
        if not parts or parts[0].startswith(";;"):
            continue
        if len(parts) < 5:
            yield bad_line(source, line.number, "an STM line is: file channel speaker start end [<label>] text")
            continue
        name, channel, speaker, start, end = parts[:5]
        text = parts[5] if len(parts) > 5 else ""
        label = re.match(r"<[^>]*>\s*", text)
        text = text[label.end() :] if label else text
        audio = found.setdefault(name, audio_named(source.folder, name))
        row: dict[str, Any] = {"id": f"{name}-{channel}-{start}-{end}", "audio": audio, "text": text.strip()}
        row |= {"offset": start, "end": end, "recording": name}
        row["speaker"] = None if speaker == "inter_segment_gap" else speaker
        yield row_item({**row, "channel": _channel(channel)}, source, line.number)


def _channel(name: str) -> Any:
    """STM and CTM count channels from 1 or A."""
    if name in {"A", "B"}:
        return "AB".index(name)
    return int(name) - 1 if re.fullmatch(r"[1-9][0-9]?", name) else name


def read_ctm(path: Path, source: Source) -> Iterator[Item]:
    """file channel start duration word [confidence] -> utterances, cut where words are half a second apart."""
    lines: dict[tuple[str, str], list[Word]] = {}
    for line in read_lines(path):
        parts = line.text.split()
        if line.error:
            yield bad_line(source, line.number, line.error, "encoding")
        elif parts and not parts[0].startswith(";;"):
            try:
                start, length = float(parts[2]), float(parts[3])
                word = Word(line.number, start, start + length, parts[4])
                lines.setdefault((parts[0], parts[1]), []).append(word)
            except (IndexError, ValueError):
                yield bad_line(source, line.number, "a CTM line is: file channel start duration word")
    for (name, channel), words in lines.items():
        row = {"audio": audio_named(source.folder, name), "recording": name, "channel": _channel(channel)}
        yield from _utterances(name, words, row, source)


def _utterances(name: str, words: Iterable[Word], row: dict[str, Any], source: Source) -> Iterator[Item]:
    held: list[Word] = []
    for word in sorted(words, key=lambda w: (w.start, w.line)):
        if held and (word.start - held[-1].end > GAP_S or word.end - held[0].start > MOST_S):
            yield _utterance(name, held, row, source)
            held = []
        held.append(word)
    if held:
        yield _utterance(name, held, row, source)


def _utterance(name: str, words: list[Word], row: dict[str, Any], source: Source) -> Item:
    start, end = words[0].start, max(word.end for word in words)
    text = " ".join(word.text for word in words)
    times = {"id": f"{name}-{start:.3f}-{end:.3f}", "offset": start, "end": end, "text": text}
    return row_item({**row, **times}, source, words[0].line)


def read_cues(path: Path, source: Source) -> Iterator[Item]:
    """SRT and WebVTT: one row a cue, markup taken off, a WebVTT voice as speaker; the audio has the file's name."""
    name = path.name.split(".")[0]
    row: dict[str, Any] = {"audio": audio_named(source.folder, path.stem), "recording": name}
    held: tuple[int, float, float] | None = None
    text: list[str] = []
    for line in read_lines(path):
        if line.error:
            yield bad_line(source, line.number, line.error, "encoding")
            continue
        cue = _CUE.match(line.text)
        if cue:
            held, text = (line.number, _seconds(cue.groups()[1:5]), _seconds(cue.groups()[6:10])), []
        elif line.text.strip() and held:
            text.append(line.text.strip())
        elif held:
            yield _cue(name, held, text, row, source)
            held = None
    if held:
        yield _cue(name, held, text, row, source)


def _cue(name: str, times: tuple[int, float, float], text: list[str], row: dict[str, Any], source: Source) -> Item:
    line, start, end = times
    joined = " ".join(text)
    voice = _VOICE.search(joined)
    more = {"id": f"{name}-{line}", "text": " ".join(_TAGS.sub(" ", joined).split()), "offset": start, "end": end}
    if voice:
        more["speaker"] = voice.group(1).strip()
    return row_item({**row, **more}, source, line)


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = parts
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0) + float(f"0.{fraction}")


def read_textgrid(path: Path, source: Source) -> Iterator[Item]:
    """Praat TextGrid, long and short: intervals with text; a tier's name is the speaker. Tiers of words are joined
    up.
    """
    tiers, broken = _tiers(path)
    whole = {name: words for name, words in tiers.items() if name.lower() not in {"phones", "phone", "words", "word"}}
    row: dict[str, Any] = {"audio": audio_named(source.folder, path.stem), "recording": path.stem}
    for name, words in whole.items():
        for word in words:
            key = f"{path.stem}-{name}-{word.start:.3f}"
            more = {"id": key, "text": word.text, "offset": word.start, "end": word.end, "speaker": name}
            yield row_item({**row, **more}, source, word.line)
    spoken = next((words for name, words in tiers.items() if name.lower() in {"words", "word"}), None)
    if not whole and spoken:
        yield from _utterances(path.stem, spoken, row, source)
    if broken:
        yield bad_line(source, broken, f"the TextGrid cannot be read from line {broken} on")
    elif not tiers:
        yield bad_line(source, 1, "no interval tier with utterances or words")


Value = tuple[int, float | str]  # line, and a number or a quoted text


def _tiers(path: Path) -> tuple[dict[str, list[Word]], int]:
    """Interval tiers by name, empty intervals left out, and the line from which the file is broken (0: it is whole).

    Both forms of the format hold the same values in the same order; only these are looked at.
    """
    text = read_text(path)
    values: list[Value] = []
    line, at = 1, 0
    for found in _VALUE.finditer(text):
        line, at = line + text.count("\n", at, found.start()), found.start()
        quoted, number = found.groups()
        values.append((line, float(number) if number else "<exists>" if quoted is None else quoted.replace('""', '"')))
    begin = next((i + 1 for i, (_, value) in enumerate(values) if value == "<exists>"), len(values))
    count = values[begin][1] if begin < len(values) else ""
    return _walk(values, begin + 1, count) if isinstance(count, float) else ({}, line)


def _walk(values: list[Value], at: int, count: float) -> tuple[dict[str, list[Word]], int]:
    tiers: dict[str, list[Word]] = {}
    seen = 0
    while seen < count and at + 4 < len(values):
        (line, kind), (_, name), (_, many) = values[at], values[at + 1], values[at + 4]
        width = {"IntervalTier": 3, "TextTier": 2}.get(str(kind))
        if width is None or not isinstance(name, str) or not isinstance(many, float) or not 0 <= many < 1e7:
            return tiers, line
        at += 5
        stop = at + width * int(many)
        if width == 3:
            words, broken = _intervals(values[at:stop])
            tiers.setdefault(name, []).extend(words)
            if broken or stop > len(values):
                return tiers, broken or values[-1][0]
        at, seen = stop, seen + 1
    return tiers, 0 if seen >= count else values[-1][0]


def _intervals(values: list[Value]) -> tuple[list[Word], int]:
    """Intervals with text, up to the line of one that is none (0: all are)."""
    out: list[Word] = []
    for i in range(0, len(values) - 2, 3):
        (line, start), (_, end), (_, text) = values[i : i + 3]
        if not isinstance(start, float) or not isinstance(end, float) or not isinstance(text, str):
            return out, line
        if text.strip():
            out.append(Word(line, start, end, text.strip()))
    return out, 0
