"""Which clips to train on: useful contrast, all strata kept, and not only the largest gaps."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.groups import Errors, is_scored, spread, why_unused
from tools.mine.strata import MiningStats
from tools.mine.subset import allot, group_by, order_key
from tools.rows import Answer, Clip, Group

AGREE_MIN = 4  # so many answers must agree before a reference is doubted
DOUBT_ERROR = 0.5  # and be wrong by at least this share of the reference


@dataclass(frozen=True, slots=True)
class Chosen:
    """`selected` clip ids in stable order; `rejected` says by clip id why a mined clip is left out."""

    selected: tuple[str, ...]
    rejected: Mapping[str, str]
    by_stratum: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return {
            "selected": list(self.selected),
            "rejected": dict(self.rejected),
            "by_stratum": dict(self.by_stratum),
        }


@dataclass(frozen=True, slots=True)
class Pool:
    """Training clips after mining; `excluded` says by clip id why one of the split is not among them."""

    clips: tuple[Clip, ...]
    excluded: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {"clips": len(self.clips), "excluded": dict(self.excluded)}


def loose(text: str) -> str:
    """A text stripped to what carries meaning in every language: letters, vowel signs and digits, without case.

    Two answers equal here differ only by case, spaces, punctuation or symbols: a quirk of writing, not of hearing.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")


def _valid(group: Group) -> list[Answer]:
    return [a for a, r in zip(group.answers, group.rewards) if is_scored(r) and a.finish != "length"]


def quirk_only(group: Group, same: Callable[[str], str] = loose) -> bool:
    """True where the answers get different rewards but say the same: nothing of the task is in that difference."""
    return not why_unused(group.rewards) and len({same(a.text) for a in _valid(group)}) <= 1


def reference_doubtful(group: Group, errors: Errors, same: Callable[[str], str] = loose) -> bool:
    """True where four or more answers agree with each other and get half of the reference or more wrong.

    Either the reference does not belong to the audio (F16) or the model is confidently wrong: a person has to listen.
    """
    valid = _valid(group)
    if len(valid) < AGREE_MIN or len({same(a.text) for a in valid}) != 1 or not same(valid[0].text):
        return False
    wrong, units = errors(group.clip_id, valid[0].text)
    return units > 0 and wrong / units >= DOUBT_ERROR


def doubtful_references(groups: Iterable[Group], errors: Errors) -> list[str]:
    """Ids of the clips whose reference should be listened to, in order."""
    return [g.clip_id for g in groups if reference_doubtful(g, errors)]


def select_contrast(
    groups: Iterable[Group],
    strata: Mapping[str, str],
    *,
    size: int | None = None,
    seed: int = 0,
    doubtful: Sequence[str] = (),
    same: Callable[[str], str] = loose,
) -> Chosen:
    """Mined clips that train: groups with contrast that is more than a quirk of writing and a trusted reference.

    With `size`, every stratum keeps its share of the picks, and inside a stratum the picks are spread evenly over the
    range of gaps from the smallest to the largest, so the largest do not fill the set (seed 000 section 3).
    """
    rejected: dict[str, str] = {}
    kept: list[Group] = []
    for group in groups:
        why = _why_not(group, doubtful, same)
        if why:
            rejected[group.clip_id] = why
        else:
            kept.append(group)
    members = group_by(kept, lambda g: strata.get(g.clip_id, "all"))
    picks = allot({k: len(v) for k, v in members.items()}, len(kept) if size is None else size, seed)
    selected: list[str] = []
    for name, rows in members.items():
        rows.sort(key=lambda g: (spread(g.rewards), order_key(seed, g.clip_id)))
        take = {i * len(rows) // picks[name] + len(rows) // (2 * picks[name]) for i in range(picks[name])}
        selected += [g.clip_id for i, g in enumerate(rows) if i in take]
        rejected |= {g.clip_id: "stratum_full" for i, g in enumerate(rows) if i not in take}
    chosen = set(selected)
    ordered = tuple(g.clip_id for g in kept if g.clip_id in chosen)
    return Chosen(ordered, rejected, {k: picks[k] for k in members})


def _why_not(group: Group, doubtful: Sequence[str], same: Callable[[str], str]) -> str:
    if group.clip_id in doubtful:
        return "reference_doubtful"
    return why_unused(group.rewards) or ("normalisation_only" if quirk_only(group, same) else "")


def training_pool(
    clips: Sequence[Clip], chosen: Chosen, stats: MiningStats, strata: Mapping[str, str], min_share: float = 0.2
) -> Pool:
    """The clips to train on: those selected, and the unmined ones of strata that showed contrast often enough.

    A small mined sample stands for its stratum: its other clips are offered in training too, where groups without
    contrast are passed over anyway. Clips found flat or doubtful, and strata below `min_share`, stay out.
    """
    share = {s.name: s.stats.contrast_share for s in stats.strata}
    mined, selected = set(stats.stratum_of), set(chosen.selected)
    excluded: dict[str, str] = {}
    kept: list[Clip] = []
    for clip in clips:
        stratum = strata.get(clip.id, "all")
        if clip.id in selected:
            kept.append(clip)
        elif clip.id in mined:
            excluded[clip.id] = chosen.rejected.get(clip.id, "not_selected")
        elif stratum not in share:
            excluded[clip.id] = "stratum_not_mined"
        elif share[stratum] < min_share:
            excluded[clip.id] = "stratum_without_contrast"
        else:
            kept.append(clip)
    return Pool(tuple(kept), excluded)
