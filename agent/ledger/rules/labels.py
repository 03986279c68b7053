"""Label tasks: every figure again from the stored answers, and the comparator again from the seed's dev answers alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from agent.ledger.chain import Record
from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation, near
from agent.ledger.rules.labelpart import part
from tools.errors import RehearError

COMPARATOR = "data/comparator.jsonl"
READINGS = (("", "strict"), ("parsed_", "parse"))


def again(e: Evidence, record: Record, reader: str = "strict") -> dict[str, Any] | None:
    """The label figures of an evaluation by counting its rows; None where they cannot be counted."""
    from tools.score.labels import INVALID
    from tools.verify.labels import recompute_labels

    path = e.path(f"evals/{record.payload['eval_id']}/rows.jsonl")
    if e.labels is None or not path.is_file():
        return None
    try:
        return recompute_labels(path, e.labels.profile.normalise, getattr(e.labels, reader), INVALID)
    except RehearError:
        return None


def compared_again(e: Evidence, pair: list[Any], read: Callable[[str], str], noise: float = 0.0) -> dict[str, Any]:
    """The paired comparison of two evaluations of the test under one reading of their answers."""
    from tools.verify.labels import recompute_label_interval

    one, two = (found.folder / "rows.jsonl" for found in pair)
    by = "speaker" if all(row.get("speaker") for row in pair[0].rows or []) else "recording"
    return recompute_label_interval(one, two, e.labels.profile.normalise, read, e.metric, by=by, noise_floor=noise)


def scores(e: Evidence) -> Iterator[Finding]:
    """Accuracy, recall and invalid answers of every evaluation, strict and parsed, are what its answers give."""
    if e.contract is None or "labels" not in e.contract["scoring"]:
        return
    if e.labels is None:
        yield NotChecked("the normaliser here is another version than the contract's: labels were not read again")
        return
    for record in e.of("eval"):
        told = record.payload["scores"]
        for prefix, reader in READINGS:
            found = again(e, record, reader)
            if found is not None:
                yield from _differing(record, told, prefix, found)


def _differing(record: Record, told: Any, prefix: str, found: dict[str, Any]) -> Iterator[Finding]:
    name = record.payload["eval_id"]
    where = ((f"evals/{name}/rows.jsonl", None),)
    keys = ("label_error", "macro_error", *(() if prefix else ("invalid",)))
    for key in keys:
        if not near(told.get(f"{prefix}{key}"), found[key]):
            text = f"{name}: {prefix}{key} on record is {told.get(f'{prefix}{key}')}, its answers give {found[key]}"
            yield Violation(text, (record.seq,), where)


def comparator(e: Evidence) -> Iterator[Finding]:
    """The comparator on disk is the one that the seed's dev answers give: fitted on nothing else, by no hand."""
    if e.labels is None:
        return
    from tools.score.comparator import fit_comparator
    from tools.verbs.evaluate import read_rows

    record = e.last("outcome", effect="fit_comparator")
    where = ((COMPARATOR, None),)
    if record is None:
        if e.of("register") or e.finished:
            yield Violation("a label task went on without its comparator", (e.frozen.seq if e.frozen else 0,))
        return
    told = e.jsonl(COMPARATOR)
    if not told or not e.path("evals/seed-dev/rows.jsonl").is_file():
        yield NotChecked(f"{COMPARATOR} or the seed's dev answers are not here: the fit was not made again")
        return
    due = fit_comparator(read_rows(e.path("evals/seed-dev")), e.labels).to_json()
    if json.loads(json.dumps(due)) != told[0]:
        yield Violation("the comparator is not the one that the seed's dev answers give", (record.seq,), where)


RULES = (
    Rule("label-scores", "Every label figure, strict and parsed, is what the stored answers give.", scores),
    Rule("label-comparator", "The comparator is fitted on the seed's dev answers and on nothing else.", comparator),
    Rule("label-report", "Every model of the report is read in each way, the comparator applied to all.", part),
)
