"""Findings about audio that is the same: inside a split a warning with the count, across splits a block with names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tools.audio.near import COVERED
from tools.data.identity import LEAST_S, NearSearch, Pair
from tools.data.report import BLOCK, INFO, WARN, Finding, Place
from tools.data.setchecks import NAMED, count, ordered
from tools.data.table import Ints, Refs, RowTable

MOST_TIES = 2_000_000


@dataclass(frozen=True)
class Heard:
    """All stretches that were heard and the rows that name them (rows that may mean any channel among them)."""

    table: RowTable
    rows: Ints
    stretch: Ints  # of each row
    digest: dict[int, str]
    identity: Ints  # by stretch: stretches with one digest have one number

    def file(self, stretch: int) -> int:
        return int(self.table["file"][self.rows_of([stretch])[0]])

    def rows_of(self, stretches: Sequence[int] | Ints) -> Ints:
        return self.rows[np.isin(self.stretch, np.asarray(stretches))]


def identities(stretches: int, groups: Sequence[Ints]) -> Ints:
    """A number by stretch that stretches with one digest have in common."""
    out = np.arange(stretches)
    for group in groups:
        out[group] = out[group].min()
    return out


def exact_findings(heard: Heard) -> list[Finding]:
    """Stretches with one digest, and stretches that several rows name -> findings."""
    out = []
    identity = heard.identity[heard.stretch]
    split = heard.table["split"][heard.rows]
    twice = _repeated(np.stack([identity, split]))
    if twice.any():
        kinds = len(np.unique(identity[twice]))
        text = f"{kinds} clip(s) of audio occur more than once inside a split ({count(twice)})"
        out.append(Finding("audio_duplicate", WARN, text, Refs(heard.table, heard.rows[twice])))
    return _shared_audio(heard, identity, split) + out


def _repeated(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if not keys.shape[1]:
        return np.zeros(0, dtype=bool)
    _, inverse, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse.ravel()] > 1)


def _shared_audio(heard: Heard, identity: Ints, split: Ints) -> list[Finding]:
    out = []
    codes = ordered(heard.table, {int(c) for c in np.unique(split)})
    for at, (left, left_name) in enumerate(codes):
        for right, right_name in codes[at + 1 :]:
            common = np.intersect1d(identity[split == left], identity[split == right])
            if not len(common):
                continue
            told = [
                _told(heard, identity, split, int(i), (left, left_name), (right, right_name)) for i in common[:NAMED]
            ]
            more = f"; and {len(common) - NAMED} more" if len(common) > NAMED else ""
            text = f"{len(common)} clip(s) of audio in both {left_name} and {right_name}: {'; '.join(told)}{more}"
            chosen = np.isin(identity, common) & ((split == left) | (split == right))
            rows = heard.rows[chosen][np.argsort(split[chosen] != left, kind="stable")]
            out.append(Finding("audio_shared", BLOCK, text, Refs(heard.table, rows), (left_name, right_name)))
    return out


def _told(heard: Heard, identity: Ints, split: Ints, which: int, left: tuple[int, str], right: tuple[int, str]) -> str:
    clips = [heard.table.clip(int(heard.rows[(identity == which) & (split == code)][0])) for code, _ in (left, right)]
    one, two = clips
    digest = heard.digest.get(int(heard.stretch[(identity == which) & (split == left[0])][0]), "")
    differ = f", their texts differ: {one.text!r:.80} / {two.text!r:.80}" if one.text != two.text else ""
    return (
        f"{one.id} ({left[1]}, {one.audio}) = {two.id} ({right[1]}, {two.audio}), decoded sha256 {digest[:16]}{differ}"
    )


def near_findings(heard: Heard, pairs: Sequence[Pair]) -> list[Finding]:
    """Pairs found by sound -> findings; those equal to the sample and those of one file (arithmetic tells) left out."""
    table, out = heard.table, []
    by_splits: dict[tuple[str, str, bool], dict[tuple[int, int], Pair]] = {}
    names = {int(s): _splits_of(heard, int(s)) for s in {p.a for p in pairs} | {p.b for p in pairs}}
    for pair in pairs:
        if heard.identity[pair.a] == heard.identity[pair.b] or heard.file(pair.a) == heard.file(pair.b):
            continue
        for left, right in _between(table, names[pair.a], names[pair.b]):
            group = by_splits.setdefault((left, right, pair.match.whole), {})
            key = (min(pair.a, pair.b), max(pair.a, pair.b))
            if key not in group or pair.match.coherence > group[key].match.coherence:
                group[key] = pair
    for (left, right, whole), found in sorted(by_splits.items(), key=lambda item: (item[0][2], item[0][:2])):
        out.append(_near_finding(heard, left, right, whole, list(found.values())))
    return out


def _splits_of(heard: Heard, stretch: int) -> set[str]:
    return {heard.table.splits[int(c)] for c in np.unique(heard.table["split"][heard.rows_of([stretch])])}


def _between(table: RowTable, a: set[str], b: set[str]) -> list[tuple[str, str]]:
    """Pairs of splits that the two stand in, train first; within one split only where there is no other."""
    pairs = {(x, y) if x <= y else (y, x) for x in a for y in b}
    across = [p for p in pairs if p[0] != p[1]] or sorted(pairs)
    order = [name for _, name in ordered(table, range(len(table.splits)))]
    return sorted({tuple(sorted(p, key=order.index)) for p in across})  # type: ignore[arg-type,misc]


def _near_finding(heard: Heard, left: str, right: str, whole: bool, found: Sequence[Pair]) -> Finding:
    told = []
    for pair in sorted((_faced(heard, p, left) for p in found), key=lambda p: (-p.match.share, p.a, p.b))[:NAMED]:
        one, two = (heard.table.clip(int(heard.rows_of([s])[0])) for s in (pair.a, pair.b))
        match = pair.match
        speed = "" if abs(match.speed - 1) < 1e-3 else f", speed {match.speed:.3f}"
        told.append(
            f"{one.id} ({one.split}) in {two.id} ({two.split}) at {match.offset_s:.3f} s, {match.shared_s:.1f} s "
            f"shared ({match.share:.0%} of the shorter), coherence {match.coherence:.2f}{speed}"
        )
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    rows = heard.rows_of([s for pair in found for s in (pair.a, pair.b)])
    names = np.array([heard.table.splits[int(c)] for c in heard.table["split"][rows]])
    rows = np.concatenate([rows[names == left], rows[names == right]]) if left != right else rows
    refs = Refs(heard.table, rows)
    if left == right:
        text = f"{len(found)} pair(s) inside {left or 'the manifest'} are one sound: {'; '.join(told)}{more}"
        return Finding("audio_similar_inside", WARN, text, refs)
    if not whole:
        text = f"{len(found)} pair(s) of {left} and {right} share part of their sound: {'; '.join(told)}{more}"
        return Finding("audio_partly_shared", WARN, text, refs, (left, right))
    text = f"{len(found)} clip(s) in both {left} and {right} by sound: {'; '.join(told)}{more}"
    return Finding("audio_similar", BLOCK, text, refs, (left, right))


def _faced(heard: Heard, pair: Pair, left: str) -> Pair:
    """The pair told from the first split (or, inside one, from the earlier clip)."""
    sides = [left in _splits_of(heard, stretch) for stretch in (pair.a, pair.b)]
    return pair.facing(sides[0] if sides[0] != sides[1] else pair.a < pair.b)


def identity_note(seconds: npt.NDArray[np.float64], search: NearSearch | None, why_not: str) -> Finding:
    """What the identity checks covered, always said; `seconds` of the distinct stretches."""
    short, stretches = int((seconds < LEAST_S).sum()), len(seconds)
    exact = f"exact identity: {stretches} distinct stretches by decoded samples"
    if not stretches:
        return Finding("identity", INFO, "no audio was compared: no row can be used")
    if search is None:
        return Finding("identity", INFO, f"{exact}; near copies not looked for ({why_not})")
    exactly = f"; {short} clip(s) under {LEAST_S} s compared exactly only" if short else ""
    pairs = f"highest of {search.calibrated_on} pairs known to differ: {search.highest:.2f}"
    if not search.calibrated_on:
        pairs = "no pairs known to differ to set it by"
    text = (
        f"{exact}; near copies of {stretches - short} clips looked for among {len(search.index.seconds)}: {COVERED}; "
        f"coherence threshold {search.index.threshold:.2f} ({pairs}){exactly}"
    )
    return Finding("identity", INFO, text)


def ties(heard: Heard, groups: Sequence[Ints], pairs: Sequence[Pair]) -> list[tuple[Place, Place]]:
    """Pairs of rows, by place, that are one sound: a chain through each exact group, an edge a near pair."""
    out: list[tuple[Place, Place]] = []
    for group in groups:
        rows = heard.rows_of(group)[:MOST_TIES]
        out += [(_place(heard, a), _place(heard, b)) for a, b in pairwise(rows)]
    for a, b in sorted({(min(p.a, p.b), max(p.a, p.b)) for p in pairs if p.match.whole}):
        one, two = heard.rows_of([a]), heard.rows_of([b])
        if len(one) and len(two):
            out.append((_place(heard, one[0]), _place(heard, two[0])))
    return out[:MOST_TIES]


def _place(heard: Heard, row: int | np.int64) -> Place:
    columns = heard.table.columns
    return heard.table.manifests[int(columns["manifest"][row])], int(columns["row"][row])
