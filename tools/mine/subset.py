"""A small, shuffled, stratified subset of the training split: what to sample first, and the strata it covers.

Deterministic: the order inside a stratum comes from sha256(seed, clip id), so the same clips in another order, or with
other clips removed, give the same picks where they can.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from tools.errors import UsageError
from tools.rows import Clip

StrataKey = Callable[[Clip], str]
KEYS = ("lang", "domain", "duration", "speaker")
DURATION_EDGES_S = (2.0, 5.0, 10.0, 20.0)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StratumCount:
    """How many clips of a stratum there are and how many were picked."""

    name: str
    pool: int
    picked: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Subset:
    """`clips` in shuffled order; `strata` maps every clip id of the pool (picked or not) to its stratum."""

    clips: tuple[Clip, ...]
    strata: Mapping[str, str]
    counts: tuple[StratumCount, ...]
    keys: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "clips": [c.id for c in self.clips],
            "keys": list(self.keys),
            "strata": [c.to_json() for c in self.counts],
        }


def order_key(seed: int, name: str) -> bytes:
    """A reproducible random sort key for a name."""
    return hashlib.sha256(f"{seed}:{name}".encode()).digest()


def duration_bucket(seconds: float | None) -> str:
    """ "2-5 s" and the like; "unknown" where the length was never read."""
    if seconds is None:
        return "unknown"
    low = max((e for e in (0.0, *DURATION_EDGES_S) if seconds >= e), default=0.0)
    high = next((e for e in DURATION_EDGES_S if seconds < e), None)
    return f"{low:g}-{high:g} s" if high is not None else f"{low:g} s and more"


def key_value(clip: Clip, key: str) -> str:
    """One part of a clip's stratum: lang, speaker, recording, label, duration, or an extra manifest field."""
    if key == "duration":
        return duration_bucket(clip.duration_s)
    if key in ("lang", "speaker", "recording", "label"):
        return getattr(clip, key) or "unknown"
    return str(clip.extras.get(key, "unknown"))


def by_keys(keys: Sequence[str]) -> StrataKey:
    """A stratum name from several keys, such as "lang=en duration=2-5 s"; "all" with none."""
    return lambda clip: " ".join(f"{k}={key_value(clip, k)}" for k in keys) or "all"


def useful_keys(clips: Sequence[Clip], size: int, keys: Sequence[str] = KEYS) -> tuple[str, ...]:
    """The keys that split these clips, added in order while strata stay large enough: at most one for four picks."""
    chosen: tuple[str, ...] = ()
    for key in keys:
        if len({key_value(c, key) for c in clips}) < 2:
            continue
        name = by_keys((*chosen, key))
        if len({name(c) for c in clips}) <= max(1, size // 4):
            chosen = (*chosen, key)
    return chosen


def allot(pools: Mapping[str, int], size: int, seed: int = 0) -> dict[str, int]:
    """Share `size` picks over strata in proportion to their pools (largest remainders), one each if it fits."""
    total = sum(pools.values())
    size = min(size, total)
    floor = 1 if size >= len(pools) else 0
    exact = {k: size * v / total for k, v in pools.items()} if total else {}
    out = {k: min(pools[k], max(floor, int(x))) for k, x in exact.items()}
    order = sorted(pools, key=lambda k: (-(exact[k] - int(exact[k])), order_key(seed, k))) if total else []
    while sum(out.values()) < size:
        for k in order:
            if sum(out.values()) < size and out[k] < pools[k]:
                out[k] += 1
    while sum(out.values()) > size:
        widest = max((k for k in out if out[k] > floor), key=lambda k: (out[k] - exact[k], order_key(seed, k)))
        out[widest] -= 1
    return out


def pick_subset(
    clips: Iterable[Clip], size: int, seed: int = 0, strata_key: StrataKey | Sequence[str] | None = None
) -> Subset:
    """A shuffled stratified subset of at most `size` clips. `strata_key`: a function, key names, or None.

    Raises UsageError for a size below 1, no clips, or a clip id that comes twice.
    """
    pool = list(clips)
    if size < 1 or not pool:
        raise UsageError(f"cannot pick {size} of {len(pool)} clips: give at least one clip and a size of 1 or more")
    ids = [c.id for c in pool]
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise UsageError(f"clip id {twice} comes twice in the split: ids must be unique")
    keys: tuple[str, ...] = ()
    if strata_key is None or not callable(strata_key):
        keys = useful_keys(pool, size) if strata_key is None else tuple(strata_key)
        strata_key = by_keys(keys)
    strata = {c.id: strata_key(c) for c in pool}
    members = group_by(pool, lambda c: strata[c.id])
    picks = allot({k: len(v) for k, v in members.items()}, size, seed)
    chosen = [c for k, v in members.items() for c in sorted(v, key=lambda c: order_key(seed, c.id))[: picks[k]]]
    chosen.sort(key=lambda c: order_key(seed + 1, c.id))
    counts = tuple(StratumCount(k, len(members[k]), picks[k]) for k in sorted(members))
    return Subset(tuple(chosen), strata, counts, keys)


def group_by(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Items by key, in sorted order of the keys."""
    out: dict[str, list[T]] = {}
    for item in items:
        out.setdefault(key(item), []).append(item)
    return {k: out[k] for k in sorted(out)}
