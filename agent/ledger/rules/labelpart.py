"""The label part of a report, again from the stored answers: no reading applied to one model only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agent.ledger.evidence import Evidence, Finding, Violation, near

WHERE = (("report/result.json", None),)


def part(e: Evidence) -> Iterator[Finding]:
    """Every row of the table has its readings, and each is what that evaluation's answers give."""
    if e.result is None or e.labels is None:
        return
    told = e.result.get("labels")
    if not isinstance(told, dict):
        yield Violation("the report of a label task has no labels part", files=WHERE)
        return
    models = {m.get("eval"): m for m in told.get("models") or []}
    readers = _readers(e)
    for row in e.result.get("table") or []:
        model = models.get(row.get("eval"))
        if model is None:
            yield Violation(f"the labels part leaves {row.get('eval')} out", files=WHERE)
            continue
        for name, read in readers.items():
            yield from _reading(e, model, name, read)


def _readers(e: Evidence) -> dict[str, Callable[[str], str]]:
    from agent.result.labels import read_comparator

    fitted = read_comparator(e.workdir, e.labels)
    readers = {"strict": e.labels.strict, "parsed": e.labels.parse}
    return readers if fitted is None else {**readers, "comparator": fitted.read}


def _reading(e: Evidence, model: dict[str, Any], name: str, read: Callable[[str], str]) -> Iterator[Finding]:
    from tools.errors import RehearError
    from tools.score.labels import INVALID
    from tools.verify.labels import recompute_labels

    path, shown = e.path(f"evals/{model['eval']}/rows.jsonl"), model.get(name)
    if not path.is_file():
        return
    if not isinstance(shown, dict):
        yield Violation(f"{model['eval']} is not read by {name} in the report", files=WHERE)
        return
    try:
        due = recompute_labels(path, e.labels.profile.normalise, read, INVALID)
    except RehearError:
        return
    for key, value in (("accuracy", 1 - due["label_error"]), ("macro_recall", 1 - due["macro_error"])):
        if not near(shown.get(key), value):
            yield Violation(
                f"{model['eval']}, {name}: the report says {key} {shown.get(key)}, its answers {value}", files=WHERE
            )
