"""Mining a label task: strict and parsed readings side by side, which classes are covered, and which have no contrast.

A class whose clips all get one answer, right or wrong, teaches nothing; a class of which nothing was mined is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tools.rows import Clip, Group
from tools.score.labels import INVALID, LabelSet


@dataclass(frozen=True, slots=True)
class ClassMined:
    """One label. Shares are of clips (contrast, better) or answers (right, invalid); `given` what samples say instead."""

    label: str
    pool: int
    clips: int
    contrast: int
    better: int
    greedy_right: int
    answers: int
    right: int
    invalid: int
    given: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "given": dict(self.given)}


def read_classes(
    groups: Sequence[Group], clips: Mapping[str, Clip], labels: LabelSet, reading: str = "strict"
) -> list[ClassMined]:
    """One row a label of the task, in order, mined or not. `clips` are the pool that was mined from."""
    read = labels.strict if reading == "strict" else labels.parse
    truth = {i: labels.profile.normalise(c.text or "") for i, c in clips.items()}
    pool = Counter(truth.values())
    out = []
    for label in labels.labels:
        mine = [g for g in groups if truth[g.clip_id] == label]
        said = [[read(a.text) for a in g.answers] for g in mine]
        hits = [[s == label for s in row] for row in said]
        first = [g.greedy is not None and read(g.greedy.text) == label for g in mine]
        others = Counter(s for row in said for s in row if s != label)
        out.append(
            ClassMined(
                label=label,
                pool=pool[label],
                clips=len(mine),
                contrast=sum(0 < sum(row) < len(row) for row in hits),
                better=sum(any(row) and not right for row, right in zip(hits, first, strict=True)),
                greedy_right=sum(first),
                answers=sum(map(len, said)),
                right=sum(map(sum, hits)),
                invalid=sum(s == INVALID for row in said for s in row),
                given=dict(others.most_common(3)),
            )
        )
    return out


def label_report(groups: Sequence[Group], clips: Mapping[str, Clip], labels: LabelSet) -> dict[str, Any]:
    """{strict, parsed: {accuracy of greedy and of samples, oracle, classes[...]}, uncovered, without_contrast, format}.

    `format` is the share of answers that only the parser understands: a matter of form, which one prompt or a few
    supervised examples mend more cheaply than reinforcement.
    """
    tables = {name: read_classes(groups, clips, labels, name) for name in ("strict", "parsed")}
    out: dict[str, Any] = {name: _totals(rows) for name, rows in tables.items()}
    strict, parsed = tables["strict"], tables["parsed"]
    answers = sum(r.answers for r in strict)
    loose = sum(r.invalid for r in strict) - sum(r.invalid for r in parsed)
    out["uncovered"] = [r.label for r in strict if not r.clips]
    out["without_contrast"] = [r.label for r in strict if r.clips and not r.contrast]
    out["never_right"] = [r.label for r in strict if r.clips and not r.right and not r.greedy_right]
    out["format"] = loose / answers if answers else 0.0
    return out


def _totals(rows: Sequence[ClassMined]) -> dict[str, Any]:
    clips, answers = sum(r.clips for r in rows), sum(r.answers for r in rows)
    return {
        "greedy": sum(r.greedy_right for r in rows) / clips if clips else None,
        "mean_sample": sum(r.right for r in rows) / answers if answers else None,
        "oracle": sum(min(r.clips, r.greedy_right + r.better) for r in rows) / clips if clips else None,
        "invalid": sum(r.invalid for r in rows) / answers if answers else None,
        "classes": [r.to_json() for r in rows],
    }
