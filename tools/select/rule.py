"""The declared rule over checkpoints: the lowest dev metric among those whose retention stays within the limit.

The seed model is always a candidate and a valid outcome; ties go to the earlier one, the seed first. A candidate with a
missing or non-finite figure is none, and is named. Where classes are protected, none of them may lose more recall than was
agreed. The test split plays no part: there is no place to hand it in. Source: seed 000 sections 2.3, 5 and 6; field case F48.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tools.errors import UsageError

RULE = "lowest dev metric with retention within limit; ties: earlier; seed included"
RULE_CLASSES = "lowest dev metric with retention and protected classes within limit; ties: earlier; seed included"
FIELDS = {"update", "dev", "retention", "digest", "recall", "run"}


@dataclass(frozen=True, slots=True)
class Rule:
    """`retention_limit` is absolute (0.01 = one point of error rate); None where no retention set exists.

    `protected` classes may lose at most `class_limit` of their dev recall, absolute.
    `higher_is_better` only for metrics that are not error rates (accuracy, recall): retention may fall by the limit.
    """

    metric: str = "wer"
    split: str = "dev"
    retention_limit: float | None = 0.01
    higher_is_better: bool = False
    protected: tuple[str, ...] = ()
    class_limit: float = 0.0

    def __post_init__(self) -> None:
        for name, limit in (("retention_limit", self.retention_limit), ("class_limit", self.class_limit)):
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise UsageError(f"{name} is {limit}: give a finite number of 0 or more, or null")

    @property
    def text(self) -> str:
        """The rule in words, as it is declared."""
        return RULE_CLASSES if self.protected else RULE


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate after the rule: `why` is empty for an eligible one, else the reason it is none. `recall` is the dev
    recall of the protected classes, where there are any; `run` is named where there are several runs."""

    update: int | Literal["seed"]
    dev: float | None
    retention: float | None
    digest: str
    eligible: bool
    why: str = ""
    recall: Mapping[str, float] | None = None
    run: str = ""

    def to_json(self) -> dict[str, Any]:
        out = asdict(self)
        return {k: v for k, v in out.items() if not ((k == "recall" and v is None) or (k == "run" and not v))}


@dataclass(frozen=True, slots=True)
class Selection:
    """`update` is the chosen one ("seed" where nothing beat it); `candidates` are all, judged, in order of update."""

    update: int | Literal["seed"]
    why: str
    digest: str
    candidates: tuple[Judged, ...]
    rule: Rule = field(default_factory=Rule)
    run: str = ""

    @property
    def rejected(self) -> list[dict[str, Any]]:
        named = [(c, {"run": c.run} if c.run else {}) for c in self.candidates if not c.eligible]
        return [{"update": c.update, **run, "why": c.why} for c, run in named]

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule.text,
            "metric": self.rule.metric,
            "split": self.rule.split,
            "retention_limit": self.rule.retention_limit,
            "selected": self.update,
            "digest": self.digest,
            "why": self.why,
            "candidates": [c.to_json() for c in self.candidates],
            "rejected": self.rejected,
        }


def select_checkpoint(candidates: Sequence[Mapping[str, Any]], rule: Rule | None = None) -> Selection:
    """Apply the rule to `[{update: int | "seed" | 0, dev, retention, digest}]`.

    `dev` and `retention` are the metric's values or None where missing. Raises UsageError without a seed row, with a
    seed row that has no finite figures, with an update that comes twice, or with any other field (a test figure, say).
    """
    rule = rule or Rule()
    rows = sorted((_read(c) for c in candidates), key=_order)
    doubled = [r for r in rows if sum(_order(r) == _order(s) for s in rows) > 1]
    if doubled:
        raise UsageError(f"update {doubled[0].update} is a candidate twice: give each checkpoint once")
    if not rows or rows[0].update != "seed":
        raise UsageError("the seed model is not among the candidates: add its row with update 'seed'")
    seed = rows[0]
    if why := _missing(seed, rule):
        raise UsageError(f"the seed model's row cannot be used: {why}; evaluate the seed first")
    judged = [_judge(row, seed, rule) for row in rows]
    sign = -1.0 if rule.higher_is_better else 1.0
    best = min((c for c in judged if c.eligible), key=lambda c: (sign * float(c.dev or 0.0), _order(c)))
    return Selection(best.update, _why(best, seed, judged, rule), best.digest, tuple(judged), rule, best.run)


def _read(row: Mapping[str, Any]) -> Judged:
    extra = set(row) - FIELDS
    if extra:
        raise UsageError(
            f"candidate {row.get('update')} carries {sorted(extra)}: the rule takes {sorted(FIELDS)} alone"
        )
    update, digest = row.get("update"), str(row.get("digest") or "")
    if update in (0, "seed") and not isinstance(update, bool):
        return Judged("seed", row.get("dev"), row.get("retention"), digest, True, recall=row.get("recall"))
    if not isinstance(update, int) or isinstance(update, bool) or update < 0:
        raise UsageError(f"candidate update {update!r} is neither 'seed' nor a whole number of 1 or more")
    recall, run = row.get("recall"), str(row.get("run") or "")
    return Judged(update, row.get("dev"), row.get("retention"), digest, True, recall=recall, run=run)


def _order(row: Judged) -> tuple[str, int]:
    """Earlier first: the seed, then run by run, update by update."""
    return ("", 0) if row.update == "seed" else (row.run, row.update)


def _finite(value: float | None) -> bool:
    """Rates, accuracies and recalls are numbers from 0; anything else is no figure of an evaluation."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _missing(row: Judged, rule: Rule) -> str:
    if not _finite(row.dev):
        return f"{rule.split} {rule.metric} is {'missing' if row.dev is None else repr(row.dev)}"
    if rule.retention_limit is not None and not _finite(row.retention):
        return f"retention {rule.metric} is {'missing' if row.retention is None else repr(row.retention)}"
    missing = [name for name in rule.protected if not _finite((row.recall or {}).get(name))]
    return f"the recall of protected class {missing[0]} is missing" if missing else ""


def _judge(row: Judged, seed: Judged, rule: Rule) -> Judged:
    why = _missing(row, rule)
    if not why and rule.retention_limit is not None and row.retention is not None and seed.retention is not None:
        loss = (seed.retention - row.retention) if rule.higher_is_better else (row.retention - seed.retention)
        if loss > rule.retention_limit + 1e-12:
            bound = seed.retention + (-1 if rule.higher_is_better else 1) * rule.retention_limit
            why = f"retention {rule.metric} {row.retention:.4f} is beyond the limit of {bound:.4f}"
    why = why or _lost_class(row, seed, rule)
    return replace(row, eligible=not why, why=why)


def _lost_class(row: Judged, seed: Judged, rule: Rule) -> str:
    """The protected class that lost most beyond the limit, in words; "" where none did."""
    if not rule.protected or row.recall is None or seed.recall is None:
        return ""
    before, now = seed.recall, row.recall
    worst = min(rule.protected, key=lambda name: (now[name] - before[name], name))
    if before[worst] - now[worst] <= rule.class_limit + 1e-12:
        return ""
    bound = before[worst] - rule.class_limit
    return f"recall of protected class {worst} {now[worst]:.4f} is below the limit of {bound:.4f}"


def _why(best: Judged, seed: Judged, judged: Sequence[Judged], rule: Rule) -> str:
    others = [c for c in judged if c.update != "seed"]
    if best.update == "seed":
        if not others:
            return "there is no checkpoint to choose from: the seed model stays"
        if not any(c.eligible for c in others):
            return f"none of {len(others)} checkpoints is a candidate: the seed model stays"
        return f"no checkpoint has a better {rule.split} {rule.metric} than the seed model's {seed.dev:.4f}"
    within = "" if rule.retention_limit is None else f", retention {best.retention:.4f} against {seed.retention:.4f}"
    return f"best {rule.split} {rule.metric} {best.dev:.4f} (seed {seed.dev:.4f}){within}"
