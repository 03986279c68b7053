"""`rehear compare`: two systems' hypotheses and the references from files, keyed by id, streamed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.errors import UsageError
from tools.score.blocks import BLOCK_FIELDS, Blocks, primed_pairs, sum_blocks, sum_slices
from tools.score.changes import block_changes
from tools.score.compare import Comparison, compare_blocks
from tools.score.files import second_profile, slice_key
from tools.score.inference import NoiseFloor, holm, mapsswe_pairs, noise_floor_pairs, non_inferior_blocks
from tools.score.store import RowStore
from tools.score.transcripts import THIS_SCORER
from tools.text import Profile
from tools.text import profile as profile_of

ALPHA = 0.05


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
    second = sum_blocks(store.pairs(), beside, by)
    noise = _floor(store, beside, terms) if second.units.any() else None
    other = compare_blocks(second, terms.resamples, terms.seed, noise.delta if noise else 0.0)
    notes = [*_notes(store, terms.by, by), *_style(main, other)]
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
        "mapsswe": mapsswe_pairs(primed_pairs(store.pairs(), chosen), chosen).to_json(),
        "by_block": [change.to_json() for change in block_changes(blocks)],
        "clip_changes": [{"errors": errors, "clips": n} for errors, n in blocks.changes.items()],
        **({"noise": floor.to_json()} if floor else {}),
        **({} if terms.margin is None else {"non_inferiority": _margin(blocks, terms)}),
        **({"slices": _slices(store, chosen, by, terms, floor)} if terms.slices else {}),
        **({"notes": notes} if notes else {}),
        "scorer": dict(THIS_SCORER),
    }


def _floor(store: RowStore, profile: Profile, terms: Terms) -> NoiseFloor | None:
    return noise_floor_pairs(primed_pairs(store.pairs(1, 3), profile), profile) if terms.again else None


def _notes(store: RowStore, wished: str, by: str) -> list[str]:
    """What a reader must know about the blocks before the verdict."""
    if by != "id":
        return []
    clips = "Blocks are clips, taken for independent: the interval is too short where speakers come more than once."
    if wished == "id":
        return [clips]
    return [f"{store.rows_without(wished)} rows have no {wished}. {clips}"]


def _style(main: Comparison, other: Comparison) -> list[str]:
    """A verdict that one profile alone carries is a verdict on style."""
    if not _claims(main) or other.verdict == main.verdict:
        return []
    verdict, name = other.verdict.replace("_", " "), other.profile["name"]
    return [f"Under {name} the verdict is {verdict}: case, punctuation or spelling make the change, at least in part."]


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
        key = slice_key(kind, store, profile)
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
