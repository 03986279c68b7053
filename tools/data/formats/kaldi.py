"""Kaldi data directories: wav.scp, segments, text, utt2spk, utt2lang, reco2file_and_channel.

A command in wav.scp is never run: its rows are set aside. Rows carry the line of `segments` (or of wav.scp without
one).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.data.fields import Source
from tools.data.lines import read_lines
from tools.data.reading import Item, Quarantined, bad_line, row_item

Table = dict[str, tuple[int, str]]  # key -> (line, rest)


def read(path: Path, source: Source) -> Iterator[Item]:
    """Utterances of a Kaldi directory."""
    source = replace(source, folder=path)
    tables: dict[str, Table] = {}
    for name in ("wav.scp", "segments", "text", "utt2spk", "utt2lang", "reco2file_and_channel"):
        tables[name] = {}
        if (path / name).is_file():
            yield from _load(path / name, replace(source, manifest=str(path / name)), tables[name])
    listing = "segments" if tables["segments"] else "wav.scp"
    for utterance, (line, rest) in tables[listing].items():
        yield _row(utterance, line, rest, tables, replace(source, manifest=str(path / listing)))
    for utterance, (line, _) in tables["text"].items():
        if utterance not in tables[listing]:
            yield Quarantined(str(path / "text"), line, utterance, f"a text without audio in {listing}", source.split)


def _load(path: Path, source: Source, table: Table) -> Iterator[Item]:
    """Fill a table; lines that cannot be read and keys that come twice are set aside."""
    for line in read_lines(path):
        if line.error:
            yield bad_line(source, line.number, line.error, "encoding")
            continue
        key, _, rest = line.text.strip().partition(" ")
        if "\t" in key:
            key, _, rest = line.text.strip().partition("\t")
        if not key:
            continue
        if key in table:
            yield Quarantined(source.manifest, line.number, key, f"line {table[key][0]} has this key too", source.split)
        else:
            table[key] = (line.number, rest.strip())


def _row(utterance: str, line: int, rest: str, tables: dict[str, Table], source: Source) -> Item:
    row: dict[str, Any] = {"id": utterance}

    def set_aside(why: str, kind: str = "row") -> Quarantined:
        return Quarantined(source.manifest, line, utterance, why, source.split, kind)

    recording, wav = utterance, rest
    if tables["segments"]:
        parts = rest.split()
        if len(parts) < 3:
            return set_aside("a segment is: utterance recording start end")
        recording, row["offset"] = parts[0], parts[1]
        if not parts[2].startswith("-"):  # -1: to the end
            row["end"] = parts[2]
        row["recording"] = recording
        if recording not in tables["wav.scp"]:
            return set_aside(f"recording {recording} is not in wav.scp")
        wav = tables["wav.scp"][recording][1]
    if wav.endswith("|") or wav.startswith("|"):
        why = f"wav.scp holds a command for {recording}, which is never run: write it out as a file"
        return set_aside(why, "command")
    if wav.rpartition(":")[2].isdigit() and ".ark" in wav:
        return set_aside(f"wav.scp points into an archive ({wav}): write it out as a file", "archive")
    row["audio"] = wav
    for name, key in (("text", "text"), ("utt2spk", "speaker"), ("utt2lang", "lang")):
        if utterance in tables[name]:
            row[key] = tables[name][utterance][1]
    channel = tables["reco2file_and_channel"].get(recording, (0, ""))[1].split()
    if len(channel) == 2:
        row["channel"] = {"A": 0, "B": 1, "1": 0, "2": 1}.get(channel[1], channel[1])
    return row_item(row, source, line)
