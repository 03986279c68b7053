"""Recomputes what a report claims, by other means than the code that made it: jiwer for the totals, plain sums else.

Only the text profile is shared with the scoring room (the same normalised text is the point); alignment, totals,
blocks, resampling and intervals are written here a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jiwer

from tools.errors import CheckError
from tools.text import Profile

CHUNK = 2_000


SUPPORTED = "4"


def require_jiwer() -> None:
    """Raises CheckError at the start where jiwer is a version that counts empty references in another way."""
    found = version("jiwer")
    if found.split(".")[0] != SUPPORTED:
        raise CheckError(f"jiwer {found} is installed, and scores are recomputed with {SUPPORTED}.x: install that.")


def read_rows(path: Path | str) -> Iterator[dict[str, Any]]:
    """The rows of a rows.jsonl. Raises CheckError naming file and line for a broken, incomplete or doubled row."""
    seen: set[str] = set()
    with open(path, encoding="utf-8", newline="\n") as stream:
        for number, line in enumerate(stream, 1):
            try:
                row = json.loads(line)
                key, _, _ = row["id"], row["ref"] + "", row["hyp"] + ""
            except (ValueError, KeyError, TypeError) as error:
                raise CheckError(f"{path}, line {number} is not a scored row ({error}): restore the file.") from error
            if key in seen:
                raise CheckError(f"{path}, line {number} repeats the id {key!r}: each clip counts once.")
            seen.add(key)
            yield row


def cut(profile: Profile, row: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """(reference, hypothesis, both as spaced units; the same as characters; unit kind) of a row."""
    lang = row.get("lang")
    said, heard = profile.normalise(row["ref"], lang), profile.normalise(row["hyp"], lang)
    ref, hyp, kind = profile.cut(said, heard, lang)
    glue = " " if kind == "word" else ""
    return " ".join(ref), " ".join(hyp), glue.join(said.split()), glue.join(heard.split()), kind


def jiwer_totals(refs: list[str], hyps: list[str], characters: bool = False) -> list[int]:
    """[insertions, deletions, substitutions, reference units] by jiwer over a list of pairs."""
    if not refs:
        return [0, 0, 0, 0]
    out = jiwer.process_characters(refs, hyps) if characters else jiwer.process_words(refs, hyps)
    return [out.insertions, out.deletions, out.substitutions, out.hits + out.deletions + out.substitutions]


def recompute_scores(rows_path: Path | str, profile: Profile) -> dict[str, Any]:
    """metric, value, insertions, deletions, substitutions, reference_units, rows, empty_references, hallucinated_units
    and cer of a rows.jsonl, with the keys of `TranscriptScore.to_json`."""
    require_jiwer()
    words, chars = [0] * 4, [0] * 4
    rows = empty = hallucinated = 0
    kinds: set[str] = set()
    batch: list[tuple[str, str, str, str, str]] = []
    for row in read_rows(rows_path):
        pair = cut(profile, row)
        rows += 1
        kinds.add(pair[4])
        if not pair[0]:
            empty += 1
            hallucinated += len(pair[1].split(" ")) if pair[1] else 0
        batch.append(pair)
        if len(batch) == CHUNK:
            words, chars, batch = _add(words, chars, batch)
    words, chars, _ = _add(words, chars, batch)
    kind = kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "word"
    return {
        "metric": {"word": "wer", "char": "cer", "mixed": "mer"}[kind],
        **_rates(words),
        "rows": rows,
        "empty_references": empty,
        "hallucinated_units": hallucinated,
        "cer": _rates(chars),
        "profile": profile.to_json(),
    }


def _add(
    words: list[int], chars: list[int], batch: list[tuple[str, str, str, str, str]]
) -> tuple[list[int], list[int], list[tuple[str, str, str, str, str]]]:
    more = jiwer_totals([p[0] for p in batch], [p[1] for p in batch])
    moar = jiwer_totals([p[2] for p in batch], [p[3] for p in batch], characters=True)
    return [a + b for a, b in zip(words, more)], [a + b for a, b in zip(chars, moar)], []


def _rates(counts: list[int]) -> dict[str, Any]:
    insertions, deletions, substitutions, units = counts
    return {
        "value": (insertions + deletions + substitutions) / units if units else None,
        "insertions": insertions,
        "deletions": deletions,
        "substitutions": substitutions,
        "reference_units": units,
    }
