"""`rehear score` and `rehear compare`: hypotheses and references from files, keyed by id."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.errors import CheckError
from tools.rows import ScoredRow
from tools.score.changes import block_changes, clip_changes, histogram
from tools.score.compare import compare_rows
from tools.score.formats import (
    HYP_KEYS,
    IGNORED,
    REF_KEYS,
    Text,
    kind_of,
    lines_of,
    read_ctm,
    read_texts,
    words_in_segments,
)
from tools.score.transcripts import score_rows
from tools.text import Profile
from tools.text import profile as profile_of


def read_rows(hyp: Path | str, ref: Path | str, lang: str | None = None) -> list[ScoredRow]:
    """Scored rows sorted by id. `lang` fills in where the reference's row names none.

    Raises CheckError for a missing, doubled or foreign id, UsageError for a file that cannot be read.
    """
    refs = read_texts(ref, REF_KEYS)
    if kind_of(Path(hyp)) == "ctm" and kind_of(Path(ref)) == "stm":
        hyps: Mapping[str, Text] = words_in_segments(read_ctm(Path(hyp)), refs, Path(hyp))
    else:
        hyps = read_texts(hyp, HYP_KEYS)
    if not refs:
        raise CheckError(f"{ref} holds no reference: there is nothing to score.")
    for key, one in refs.items():
        if key not in hyps:
            raise CheckError(f"{hyp} has no text for the id {key!r} ({ref}, line {one.line}): decode every clip.")
    for key, one in hyps.items():
        if key not in refs:
            raise CheckError(f"{hyp}, line {one.line} has the id {key!r}, which {ref} does not have: remove it.")
    return [_row(refs[key], hyps[key], lang) for key in sorted(refs) if refs[key].text != IGNORED]


def _row(ref: Text, hyp: Text, lang: str | None) -> ScoredRow:
    return ScoredRow(
        id=ref.id,
        ref=ref.text,
        hyp=hyp.text,
        speaker=ref.speaker or hyp.speaker,
        recording=ref.recording or hyp.recording,
        lang=ref.lang or lang or hyp.lang,
        finish=hyp.finish,
        tokens=hyp.tokens,
        duration_s=ref.duration_s or hyp.duration_s,
    )


def stream_rows(path: Path | str) -> Iterator[ScoredRow]:
    """The rows of a rows.jsonl one at a time (`score_rows(stream_rows(path), profile, ordered=True)` needs no memory).

    Raises CheckError naming the line that is no scored row.
    """
    for number, line in lines_of(Path(path)):
        try:
            yield ScoredRow.from_json(json.loads(line))
        except (ValueError, TypeError, AttributeError) as error:
            raise CheckError(f"{path}, line {number} is not a scored row ({error}): restore the file.") from error


def second_profile(profile: Profile) -> Profile:
    """The profile that stands beside `profile`, so that a gain of style alone shows: basic, or exact beside basic."""
    return profile_of("exact" if profile.name == "basic" else "basic")


def score_files(hyp: Path | str, ref: Path | str, profile: str = "basic", lang: str | None = None) -> dict[str, Any]:
    """The document of `rehear score` (house.md §6), with the score under a second profile in `profiles`."""
    rows, chosen = read_rows(hyp, ref, lang), profile_of(profile)
    other = score_rows(rows, second_profile(chosen))
    out = score_rows(rows, chosen).to_json()
    keys = (
        "metric",
        "value",
        "insertions",
        "deletions",
        "substitutions",
        "reference_units",
        "rows",
        "empty_references",
    )
    return {
        **{key: out[key] for key in keys},
        "profile": out["profile"],
        **{key: value for key, value in out.items() if key not in keys},
        "profiles": [
            {"profile": out["profile"]["name"], "metric": out["metric"], "value": out["value"]},
            {"profile": other.profile["name"], "metric": other.metric, "value": other.value},
        ],
    }


def compare_files(
    hyp_a: Path | str,
    hyp_b: Path | str,
    ref: Path | str,
    by: str = "speaker",
    profile: str = "basic",
    lang: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """The document of `rehear compare` (house.md §6). `interval` is that of `delta` (b - a); the error reduction and
    its interval stand beside it."""
    a, b = read_rows(hyp_a, ref, lang), read_rows(hyp_b, ref, lang)
    chosen = profile_of(profile)
    out = compare_rows(a, b, chosen, by, resamples, seed).to_json()
    other = compare_rows(a, b, second_profile(chosen), by, resamples, seed).to_json()
    reduction, delta = out.pop("interval"), out.pop("delta_interval")
    out.pop("interval_of")
    keys = ("a", "b", "delta")
    return {
        **{key: out[key] for key in keys},
        "interval": delta,
        "blocks": out["blocks"],
        "verdict": out["verdict"],
        "interval_of": "delta",
        "error_reduction_interval": reduction,
        **{key: value for key, value in out.items() if key not in keys},
        "profiles": [
            {"profile": one["profile"]["name"], **{key: one[key] for key in (*keys, "verdict")}} for one in (out, other)
        ],
        "by_block": [change.to_json() for change in block_changes(a, b, chosen, by)],
        "clip_changes": [{"errors": errors, "clips": n} for errors, n in histogram(clip_changes(a, b, chosen))],
    }
