"""Splits that are honest: rows that belong together stay together, whole groups are dealt out, the same seed deals
the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import regex

from tools.errors import CheckError
from tools.rows import Clip

Place = tuple[str, int]  # manifest and physical line

FRACTIONS = {"train": 0.7, "dev": 0.15, "test": 0.15}
ROLES = {
    "train": {"train", "training", "tr"},
    "dev": {"dev", "valid", "validation", "val", "development"},
    "test": {"test", "eval", "evaluation", "heldout"},
    "retention": {"retention", "guard"},
}
TRIES = 64


def role(split: str) -> str:
    """What a split is for, by its name: train, dev, test, retention, or its own name."""
    words = set(regex.split(r"[^a-z]+", split.lower()))
    return next((name for name in ("retention", "test", "dev", "train") if words & ROLES[name]), split)


@dataclass(frozen=True)
class Part:
    """Rows that may not be parted: a connected component over speaker, recording, file and audio."""

    key: str
    rows: tuple[Clip, ...]

    @property
    def weight(self) -> float:
        return sum(clip.duration_s or 1.0 for clip in self.rows)


def make_splits(
    clips: Sequence[Clip],
    by: str = "speaker",
    fractions: Mapping[str, float] | None = None,
    seed: int = 0,
    same: Iterable[tuple[Place, Place]] = (),
) -> dict[str, list[Clip]]:
    """Deal whole groups out to splits; each clip comes back with its `split` set, rows in their given order.

    `by` is speaker or recording: what must not be shared (recordings, files and equal audio never are); `same` are
    pairs of rows by (manifest, row) that are one sound (`CheckReport.same_audio`). Stratified by
    language, label and seconds. The same clips and seed give the same splits, whatever the order of the rows.
    Raises CheckError where the splits cannot be honest, saying why.
    """
    shares = dict(FRACTIONS if fractions is None else fractions)
    if not shares or any(share <= 0 for share in shares.values()):
        raise CheckError(f"split fractions must be positive, not {shares}")
    parts = connected_parts(clips, by, same)
    if len(parts) < len(shares):
        raise CheckError(
            f"{len(clips)} rows form {len(parts)} group(s) that share no {by}, recording or audio: too few for "
            f"{len(shares)} splits ({', '.join(shares)}); give more {by}s or ready-made splits"
        )
    best = min((_deal(parts, shares, f"{seed}:{i}") for i in range(TRIES)), key=lambda deal: deal[0])
    where = {id(clip): split for split, dealt in best[1].items() for part in dealt for clip in part.rows}
    out: dict[str, list[Clip]] = {split: [] for split in shares}
    for clip in clips:
        out[where[id(clip)]].append(replace(clip, split=where[id(clip)]))
    _refuse_dishonest(out, shares)
    return out


def connected_parts(clips: Sequence[Clip], by: str = "speaker", same: Iterable[tuple[Place, Place]] = ()) -> list[Part]:
    """Connected components of the rows over what they share, ordered by key. Raises CheckError without clips."""
    if not clips:
        raise CheckError("there are no rows to split")
    if by not in {"speaker", "recording"}:
        raise CheckError(f"splits go by speaker or recording, not by {by}")
    parent = list(range(len(clips)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    seen: dict[Hashable, int] = {}
    for i, clip in enumerate(clips):
        for key in _ties(clip, by):
            parent[root(i)] = root(seen.setdefault(key, i))
    places = {(clip.manifest, clip.row): i for i, clip in enumerate(clips)}
    for a, b in same:
        if a in places and b in places:
            parent[root(places[a])] = root(places[b])
    groups: dict[int, list[Clip]] = defaultdict(list)
    for i, clip in enumerate(clips):
        groups[root(i)].append(clip)
    return sorted((Part(min(c.id for c in rows), tuple(rows)) for rows in groups.values()), key=lambda p: p.key)


def _ties(clip: Clip, by: str) -> list[Hashable]:
    ties: list[Hashable] = [("file", str(clip.audio))]
    if clip.recording:
        ties.append(("recording", clip.recording))
    if clip.audio_sha256:
        ties.append(("audio", clip.audio_sha256))
    if by == "speaker" and clip.speaker:
        ties.append(("speaker", " ".join(clip.speaker.casefold().split())))
    return ties


def _deal(parts: Sequence[Part], shares: Mapping[str, float], salt: str) -> tuple[float, dict[str, list[Part]]]:
    """One dealing: largest parts first (jittered by the salt), each to the split that lacks most; and how far it
    is off.
    """
    total = sum(shares.values())
    want = {split: share / total for split, share in shares.items()}
    strata = {part.key: _strata(part) for part in parts}
    whole: Counter[Hashable] = Counter()
    for counts in strata.values():
        whole.update(counts)
    order = sorted(parts, key=lambda p: (-p.weight * (0.5 + _unit(salt, p.key)), p.key))
    has: dict[str, Counter[Hashable]] = {split: Counter() for split in want}
    dealt: dict[str, list[Part]] = {split: [] for split in want}
    for i, part in enumerate(order):
        open_splits = [split for split in want if not dealt[split]]
        choice = open_splits if len(open_splits) >= len(order) - i else list(want)
        split = max(choice, key=lambda s: (_lack(strata[part.key], has[s], whole, want[s]), want[s], s))
        dealt[split].append(part)
        has[split].update(strata[part.key])
    off = sum(abs(has[s][k] / whole[k] - want[s]) * (3.0 if k == "rows" else 1.0) for s in want for k in whole)
    absent = sum(1 for s in want for k in whole if role(s) != "train" and has[s][k] and not _in_train(k, has, want))
    return off / len(whole) + 100.0 * absent, dealt


def _in_train(key: Hashable, has: Mapping[str, Counter[Hashable]], want: Mapping[str, float]) -> bool:
    trains = [s for s in want if role(s) == "train"]
    return not trains or any(has[s][key] for s in trains)


def _strata(part: Part) -> Counter[Hashable]:
    counts: Counter[Hashable] = Counter()
    for clip in part.rows:
        counts["rows"] += 1
        counts[("lang", clip.lang)] += 1
        if clip.label is not None:
            counts[("label", clip.label)] += 1
        counts[("seconds", min(int((clip.duration_s or 0.0) // 5), 6))] += 1
    return counts


def _lack(part: Counter[Hashable], has: Counter[Hashable], whole: Counter[Hashable], want: float) -> float:
    """How much of the part's strata the split still lacks, as a share of what it should get."""
    return sum(n * (want - has[k] / whole[k]) / want for k, n in part.items())


def _unit(salt: str, key: str) -> float:
    return int.from_bytes(hashlib.sha256(f"{salt}\0{key}".encode()).digest()[:6]) / 2**48


def _refuse_dishonest(splits: Mapping[str, Sequence[Clip]], shares: Mapping[str, float]) -> None:
    empty = [split for split, rows in splits.items() if not rows]
    if empty:
        raise CheckError(f"the {empty[0]} split would be empty: its share is too small for the groups there are")
    train = [clip for split, rows in splits.items() if role(split) == "train" for clip in rows]
    if not train:
        return
    wanted = sum(share for split, share in shares.items() if role(split) == "train")
    for split, rows in splits.items():
        if shares[split] < wanted and len(rows) > len(train):
            raise CheckError(
                f"{split} would be larger than train ({len(rows)} and {len(train)} rows): one group of rows that belong "
                "together is too large to be dealt out; give ready-made splits"
            )
    for split, rows in splits.items():
        for what, known, seen in (
            ("language", {c.lang for c in train}, {c.lang for c in rows}),
            ("label", {c.label for c in train}, {c.label for c in rows}),
        ):
            new = sorted(str(value) for value in seen - known if value is not None)
            if new:
                raise CheckError(
                    f"{what}(s) {', '.join(new[:5])} would be in {split} and never in train: too few groups have them; "
                    "give more of them or ready-made splits"
                )
