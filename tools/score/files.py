"""`rehear score` and `rehear compare`: hypotheses and references from files, keyed by id, streamed."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score.blocks import BLOCK_FIELDS, Blocks, sum_blocks, sum_slices
from tools.score.changes import block_changes
from tools.score.compare import Comparison, compare_blocks
from tools.score.confusions import confusions, keyword_score, worst_rows
from tools.score.effects import rule_effects
from tools.score.external import external_score
from tools.score.formats import LABEL_KEYS
from tools.score.inference import NoiseFloor, holm, mapsswe_pairs, noise_floor_pairs, non_inferior_blocks
from tools.score.labels import label_set, score_labels
from tools.score.lines import lines_of
from tools.score.sclite import write_trn
from tools.score.slices import by_domain, duration_slice, has_number, switch_slice
from tools.score.store import RowStore
from tools.score.transcripts import score_by, score_rows
from tools.text import Profile
from tools.text import profile as profile_of

HEADLINE = (
    "metric", "value", "insertions", "deletions", "substitutions", "reference_units", "rows", "empty_references",
)  # fmt: skip
SLICES = ("lang", "speaker", "recording", "domain", "duration", "script", "numbers")
ALPHA = 0.05
Key = Callable[[ScoredRow], str | None]


def read_rows(hyp: Path | str, ref: Path | str, lang: str | None = None) -> list[ScoredRow]:
    """Scored rows sorted by id, all in memory. `lang` fills in where the reference's row names none.

    Raises CheckError for a missing, doubled or foreign id, UsageError for a file that cannot be read.
    """
    return list(RowStore(ref, [hyp], lang).rows())


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


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What `rehear score` is asked for beyond the totals.

    `by`: slices, of SLICES. `keywords`: a customer's list (`read_keywords`). `worst`, `confused`: how many to list.
    `rules`: which rule of the profile moved the score. `script`: the customer's own scoring program.
    """

    by: Sequence[str] = ()
    keywords: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    worst: int = 0
    confused: int = 0
    rules: bool = False
    script: str = ""


def score_files(
    hyp: Path | str,
    ref: Path | str,
    profile: str = "basic",
    lang: str | None = None,
    wanted: Wanted | None = None,
) -> dict[str, Any]:
    """The document of `rehear score` (house.md §6), with the score under a second profile in `profiles`."""
    store, chosen, wanted = RowStore(ref, [hyp], lang), profile_of(profile), wanted or Wanted()
    out = score_rows(store.rows(), chosen, ordered=True).to_json()
    other = score_rows(store.rows(), second_profile(chosen), ordered=True)
    return {
        **{key: out[key] for key in HEADLINE},
        "profile": out["profile"],
        **{key: value for key, value in out.items() if key not in HEADLINE},
        "profiles": [
            {"profile": out["profile"]["name"], "metric": out["metric"], "value": out["value"]},
            {"profile": other.profile["name"], "metric": other.metric, "value": other.value},
        ],
        **_details(store, chosen, wanted),
    }


def _details(store: RowStore, profile: Profile, wanted: Wanted) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if wanted.by:
        out["slices"] = {
            by: {
                name: _brief(s.to_json())
                for name, s in score_by(store.rows(), _key(by, store, profile), profile).items()
            }
            for by in wanted.by
        }
    if wanted.keywords:
        out["keywords"] = {
            name: keyword_score(store.rows(), profile, words).to_json() for name, words in wanted.keywords.items()
        }
    if wanted.confused:
        found = confusions(store.rows(), profile, wanted.confused)
        out["confusions"] = {
            kind: [{"said": said, "heard": heard, "times": n} for said, heard, n in rows]
            for kind, rows in found.items()
        }
    if wanted.worst:
        out["worst"] = [row.to_json() for row in worst_rows(store.rows(), profile, wanted.worst, store.notes("audio"))]
    if wanted.rules:
        out["rules"] = [effect.to_json() for effect in rule_effects(store.rows(), profile)]
    if wanted.script:
        out["script"] = external_score(wanted.script, store.rows()).to_json()
    return out


def _brief(score: Mapping[str, Any]) -> dict[str, Any]:
    return {key: score[key] for key in HEADLINE}


def _key(by: str, store: RowStore, profile: Profile) -> Key:
    """The slice key of that name. Raises UsageError for another one."""
    if by in ("lang", "speaker", "recording"):
        return lambda row: getattr(row, by)
    if by == "domain":
        return by_domain(store.notes("domain"))
    keys: dict[str, Key] = {
        "duration": duration_slice,
        "script": switch_slice(profile),
        "numbers": lambda row: "with numbers" if has_number(row) else "without numbers",
    }
    if by not in keys:
        raise UsageError(f"Slices cannot be made by {by!r}: choose of {', '.join(SLICES)}.")
    return keys[by]


def read_keywords(path: Path | str) -> dict[str, list[str]]:
    """A customer's list: one keyword or phrase a line, or JSON `{"class": ["phrase", ...]}`. Raises UsageError."""
    text = "\n".join(line for _, line in lines_of(Path(path)))
    if not text.lstrip().startswith(("{", "[")):
        found: Any = {"keywords": [line.strip() for line in text.splitlines()]}
    else:
        try:
            found = json.loads(text)
        except ValueError as error:
            raise UsageError(f"{path} is no JSON ({error}): write one keyword a line, or classes of them.") from error
        found = {"keywords": found} if isinstance(found, list) else found
    good = all(isinstance(words, list) and words and all(isinstance(w, str) for w in words) for words in found.values())
    if not found or not good:
        raise UsageError(f"{path} holds no keywords: write one a line, or JSON lists of them by class.")
    return {str(name): words for name, words in found.items()}


def label_files(
    hyp: Path | str, ref: Path | str, profile: str = "basic", labels: Sequence[str] = (), lang: str | None = None
) -> dict[str, Any]:
    """The document of `rehear score --task label`: strict and parsed scores side by side. Without `labels` the classes
    are those of the references, which may stand in the field `label`."""
    rows, chosen = list(RowStore(ref, [hyp], lang, LABEL_KEYS).rows()), profile_of(profile)
    return score_labels(rows, label_set(chosen, labels or dict.fromkeys(row.ref for row in rows))).to_json()


def trn_files(
    hyp: Path | str, ref: Path | str, folder: Path | str, profile: str = "", lang: str | None = None
) -> list[str]:
    """Writes `ref.trn` and `hyp.trn` for sclite, in the order of ids, normalised where a profile is named."""
    store, out = RowStore(ref, [hyp], lang), Path(folder)
    normalise = profile_of(profile).normalise if profile else (lambda text, lang: text)
    make_folder(out)
    for name in ("ref", "hyp"):
        write_trn(out / f"{name}.trn", ((row.id, normalise(getattr(row, name), row.lang)) for row in store.rows()))
    return [str(out / "ref.trn"), str(out / "hyp.trn")]


def make_folder(folder: Path) -> None:
    """The folder, made where it is not there. Raises UsageError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be a folder ({error.strerror or error}): choose another one.") from error


# --- two systems ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Terms:
    """How `rehear compare` compares, all declared beforehand.

    `again`: a second decode of system a (another batch shape), for the noise floor. `margin`: absolute, for
    non-inferiority (retention). `slices`: of SLICES, p-values corrected over them (Holm).
    """

    by: str = "speaker"
    resamples: int = 10_000
    seed: int = 0
    again: Path | None = None
    margin: float | None = None
    slices: Sequence[str] = ()


def compare_files(
    hyp_a: Path | str,
    hyp_b: Path | str,
    ref: Path | str,
    profile: str = "basic",
    lang: str | None = None,
    terms: Terms | None = None,
) -> dict[str, Any]:
    """The document of `rehear compare` (house.md §6). `interval` is that of `delta` (b - a); the error reduction and
    its interval stand beside it."""
    chosen, terms = profile_of(profile), terms or Terms()
    store = RowStore(ref, [hyp_a, hyp_b, *([terms.again] if terms.again else [])], lang)
    by = _block_of(store, terms.by)
    floor = _floor(store, chosen, terms)
    blocks = sum_blocks(store.pairs(), chosen, by)
    main = compare_blocks(blocks, terms.resamples, terms.seed, floor.delta if floor else 0.0)
    beside = second_profile(chosen)
    noise = _floor(store, beside, terms)
    second = sum_blocks(store.pairs(), beside, by)
    other = compare_blocks(second, terms.resamples, terms.seed, noise.delta if noise else 0.0)
    notes = _notes(store, terms.by, by)
    return {
        **_compare_head(main),
        "profiles": [
            {
                "profile": one.profile["name"],
                "metric": one.metric,
                "a": one.a,
                "b": one.b,
                "delta": one.delta,
                "verdict": one.verdict,
            }
            for one in (main, other)
        ],
        "mapsswe": mapsswe_pairs(store.pairs(), chosen).to_json(),
        "by_block": [change.to_json() for change in block_changes(blocks)],
        "clip_changes": [{"errors": errors, "clips": n} for errors, n in blocks.changes.items()],
        **({"noise": floor.to_json()} if floor else {}),
        **({} if terms.margin is None else {"non_inferiority": _margin(blocks, terms)}),
        **({"slices": _slices(store, chosen, by, terms, floor)} if terms.slices else {}),
        **({"notes": notes} if notes else {}),
    }


def _floor(store: RowStore, profile: Profile, terms: Terms) -> NoiseFloor | None:
    return noise_floor_pairs(store.pairs(1, 3), profile) if terms.again else None


def _notes(store: RowStore, wished: str, by: str) -> list[str]:
    """What a reader must know about the blocks before the verdict."""
    if by != "id":
        return []
    clips = "Blocks are clips, taken for independent: the interval is too short where speakers come more than once."
    if wished == "id":
        return [clips]
    return [f"{store.rows_without(wished)} rows have no {wished}. {clips}"]


def _block_of(store: RowStore, by: str) -> str:
    """`by`, or the next coarser thing that every row has: a missing speaker is never taken for one speaker."""
    if by not in BLOCK_FIELDS:
        raise UsageError(f"Blocks cannot be made by {by!r}: choose one of {', '.join(BLOCK_FIELDS)}.")
    return next((f for f in BLOCK_FIELDS[BLOCK_FIELDS.index(by) :] if f == "id" or not store.rows_without(f)), "id")


def _compare_head(comparison: Comparison) -> dict[str, Any]:
    out = comparison.to_json()
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
    }


def _margin(blocks: Blocks, terms: Terms) -> dict[str, Any]:
    assert terms.margin is not None
    if not 0 <= terms.margin < math.inf:
        raise UsageError(f"The margin is {terms.margin!r}: give a number from 0.")
    return non_inferior_blocks(blocks, terms.margin, terms.resamples, terms.seed).to_json()


def _slices(
    store: RowStore, profile: Profile, by: str, terms: Terms, floor: NoiseFloor | None
) -> dict[str, dict[str, Any]]:
    """Comparisons by slice. All slices are one family: a slice is better or worse only where Holm's p says so as well,
    and where its change exceeds the noise floor, that of the whole and its own."""
    made: dict[tuple[str, str], Comparison] = {}
    for kind in dict.fromkeys(terms.slices):
        key = _key(kind, store, profile)
        noise = sum_slices(store.pairs(1, 3), profile, by, key) if floor else {}
        for name, part in sum_slices(store.pairs(), profile, by, key).items():
            least = max(floor.delta, _change(noise[name])) if floor else 0.0
            made[kind, name] = compare_blocks(part, terms.resamples, terms.seed, least)
    adjusted = holm({name: one.permutation_p for name, one in made.items() if one.permutation_p is not None})
    keep = ("a", "b", "delta", "delta_interval", "blocks", "rows", "verdict", "permutation_p")
    out: dict[str, dict[str, Any]] = {kind: {} for kind in terms.slices}
    for (kind, name), one in made.items():
        p = adjusted.get((kind, name))
        out[kind][name] = {
            **{key: value for key, value in one.to_json().items() if key in keep},
            "holm_p": p,
            "verdict": "not_shown" if _claims(one) and (p is None or p > ALPHA) else one.verdict,
        }
    return out


def _change(blocks: Blocks) -> float:
    """The absolute change of the rate, 0 where there is none."""
    return abs(float(blocks.errors_b.sum() - blocks.errors_a.sum())) / max(float(blocks.units.sum()), 1.0)


def _claims(comparison: Comparison) -> bool:
    return comparison.verdict in ("better", "worse")
