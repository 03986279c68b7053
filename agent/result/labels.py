"""The part of report/result.json that label tasks have: every model read strictly, parsed, and through the comparator.

The comparator is fitted on the seed's dev answers and needs no training; it reads every model that is compared, so that a
gain is seen beside what aliases, priors and parsing alone would gain.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.result.measured import block_by, evaluated
from agent.steps.common import contract, labels_of
from tools.verbs.evaluate import read_rows

if TYPE_CHECKING:
    from agent.act import Context
    from tools.score.comparator import Comparator
    from tools.score.labels import LabelSet, Reading

COMPARATOR = "data/comparator.jsonl"


def read_comparator(workdir: Path, labels: LabelSet) -> Comparator | None:
    """The fitted comparator of a work directory, None before there is one."""
    path = workdir / COMPARATOR
    if not path.is_file():
        return None
    from tools.score.comparator import Comparator

    told = json.loads(path.read_text(encoding="utf-8"))
    return Comparator(labels, told["aliases"], told["remap"], told["fallback"], told["fitted_on"], told["split"])


def label_part(context: Context) -> dict[str, Any] | None:
    """{names, protected, comparator, models[...], confusion{seed, candidate}, compared} of a label task; else None."""
    labels = labels_of(context)
    if labels is None:
        return None
    fitted = read_comparator(context.workdir, labels)
    pairs = [(split, model, record.payload["eval_id"]) for split, model, record in evaluated(context)]
    rows = {eval_id: read_rows(context.workdir / "evals" / eval_id) for _, _, eval_id in pairs}
    models = [
        {"split": split, "model": model, "eval": eval_id, **_readings(rows[eval_id], labels, fitted)}
        for split, model, eval_id in pairs
    ]
    test = {model: rows[eval_id] for split, model, eval_id in pairs if split == "test"}
    return {
        "names": list(labels.labels),
        "protected": list(contract(context)["selection"].get("protected") or []),
        "comparator": None
        if fitted is None
        else {"fitted_on": fitted.fitted_on, "aliases": len(fitted.aliases), "remap": len(fitted.remap)},
        "models": models,
        "confusion": {model: _confusion(kept, labels) for model, kept in test.items()},
        "compared": _compared(context, test, labels, fitted),
    }


def _readings(rows: list[Any], labels: LabelSet, fitted: Comparator | None) -> dict[str, Any]:
    from tools.score.labels import score_labels

    score = score_labels(rows, labels)
    out = {"strict": _short(score.strict), "parsed": _short(score.parsed), "recall": dict(score.strict.recall)}
    return out if fitted is None else {**out, "comparator": _short(fitted.score(rows))}


def _short(reading: Reading) -> dict[str, float]:
    return {
        "accuracy": reading.accuracy,
        "macro_recall": reading.macro_recall,
        "invalid_rate": reading.invalid_rate,
    }


def _confusion(rows: list[Any], labels: LabelSet) -> dict[str, dict[str, int]]:
    """label -> {what was read strictly: rows}, without the zeros."""
    from tools.score.labels import score_labels

    table = score_labels(rows, labels).strict.confusion
    return {label: {answer: n for answer, n in row.items() if n} for label, row in table.items() if any(row.values())}


def _compared(
    context: Context, test: dict[str, list[Any]], labels: LabelSet, fitted: Comparator | None
) -> list[dict[str, Any]]:
    """The paired comparison again under the other readings: parsed, and both models through the comparator."""
    if set(test) != {"seed", "candidate"}:
        return []
    from tools.score.labelled import compare_labels

    metric, by = contract(context)["scoring"]["metric"], block_by(context)
    readers = {"parsed": labels.parse} | ({} if fitted is None else {"comparator": fitted.read})
    keys = ("error_reduction", "interval", "delta", "blocks", "verdict")
    out = []
    for name, read in readers.items():
        c = compare_labels(test["seed"], test["candidate"], labels, read, metric, by=by)
        out.append({"reading": name, "seed": c["a"], "candidate": c["b"], **{k: c[k] for k in keys}})
    return out
