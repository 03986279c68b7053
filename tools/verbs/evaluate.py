"""Evaluate a model on a split: greedy answers, one row a clip, scores from the rows alone.

`rows.jsonl` is sorted by id and written whole or not at all; `scores.json` is derived from it and can be derived again by anyone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.rows import Clip, ScoredRow
from tools.score.labels import LabelSet, score_labels
from tools.score.transcripts import score_rows
from tools.text import Profile
from tools.verbs.recogniser import Progress, Recogniser, silent

HEADLINE = ("wer", "cer", "insertions", "deletions", "substitutions", "reference_units", "empty", "truncated", "loops")


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation left behind: digests of its two files, the digest of each row, and the headline scores."""

    rows: int
    rows_sha256: str
    scores_sha256: str
    row_sha256: tuple[str, ...]
    scores: dict[str, Any]


def decode_rows(
    recogniser: Recogniser, clips: Sequence[Clip], prompt: str, limit: int, progress: Progress = silent
) -> list[ScoredRow]:
    """Greedy answers as scored rows, sorted by id."""
    ordered = sorted(clips, key=lambda c: c.id)
    answers = recogniser.greedy(ordered, prompt, limit, progress)
    return [
        ScoredRow(
            id=c.id,
            ref=c.text or "",
            hyp=a.text,
            speaker=c.speaker,
            recording=c.recording,
            lang=c.lang,
            finish=a.finish,
            tokens=len(a.tokens),
            duration_s=c.duration_s or 0.0,
        )
        for c, a in zip(ordered, answers, strict=True)
    ]


def write_evaluation(
    folder: Path, rows: Sequence[ScoredRow], profile: Profile, labels: LabelSet | None = None
) -> Evaluated:
    """Writes rows.jsonl and scores.json and returns their digests; with `labels` the scores hold theirs as well."""
    lines = [json.dumps(r.to_json(), ensure_ascii=False, sort_keys=True) for r in rows]
    scores = score_rows(rows, profile).to_json()
    if labels is not None:
        scores["labels"] = score_labels(rows, labels).to_json()
    folder.mkdir(parents=True, exist_ok=True)
    rows_sha256 = _write(folder / "rows.jsonl", "".join(line + "\n" for line in lines))
    scores_sha256 = _write(
        folder / "scores.json", json.dumps(scores, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    )
    return Evaluated(
        len(rows), rows_sha256, scores_sha256, tuple(hashlib.sha256(x.encode()).hexdigest()[:16] for x in lines), scores
    )


def read_rows(folder: Path) -> list[ScoredRow]:
    with open(folder / "rows.jsonl", encoding="utf-8", newline="\n") as file:
        return [ScoredRow.from_json(json.loads(line)) for line in file]


def _write(path: Path, text: str) -> str:
    data = text.encode()
    tmp = path.with_suffix(".tmp")
    with open(tmp, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(tmp, path)
    return hashlib.sha256(data).hexdigest()
