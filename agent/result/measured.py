"""What was measured: the table, the paired comparison, retention, slices, the worst rows; from the stored evaluations alone."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.steps.common import clips_of, contract, countable, figure, labels_of, profile_of, rate
from agent.steps.runs import selected_run
from tools.verbs.evaluate import read_rows

if TYPE_CHECKING:
    from agent.act import Context

WORST = 10


def table(context: Context) -> list[dict[str, Any]]:
    return [_table_row(context, split, model, record) for split, model, record in evaluated(context)]


def evaluated(context: Context) -> list[tuple[str, str, Any]]:
    """(split, model, `eval` record) of seed and candidate on test, dev and retention, where they were measured."""
    found = []
    for split in ("test", "dev", "retention"):
        for model, eval_id in (("seed", f"seed-{split}"), ("candidate", candidate_eval(context, split))):
            record = context.last("eval", eval_id=eval_id) if eval_id else None
            if record is not None:
                found.append((split, model, record))
    return found


def candidate_eval(context: Context, split: str) -> str:
    chosen = context.last("decision", what="select")
    if chosen is None or chosen.payload["chosen"] == "seed":
        return ""
    return "selected-test" if split == "test" else f"{selected_run(context)}-u{chosen.payload['chosen']:04d}-{split}"


def _table_row(context: Context, split: str, model: str, record: Any) -> dict[str, Any]:
    p = record.payload
    scores = json.loads((context.workdir / "evals" / p["eval_id"] / "scores.json").read_text(encoding="utf-8"))
    metric = contract(context)["scoring"]["metric"]
    counts = scores["cer"] if metric == "cer" else scores
    told: dict[str, Any] = {"wer": rate(scores, "wer"), "cer": rate(scores, "cer")}
    if "labels" in scores:
        counts = label_counts(scores)
        told |= {k: p["scores"][k] for k in ("label_error", "macro_error")}
    return {
        "split": split,
        "model": model,
        **told,
        **{k: counts[k] for k in ("insertions", "deletions", "substitutions", "reference_units")},
        "rows": p["rows"],
        "empty": scores["diagnostics"]["empty"],
        "empty_references": scores["empty_references"],
        "truncated": scores["diagnostics"]["truncated"],
        "loops": scores["diagnostics"]["loops"],
        "eval": p["eval_id"],
        "rows_sha256": p["rows_sha256"],
        "record": record.seq,
    }


def label_counts(scores: dict[str, Any]) -> dict[str, int]:
    """A label task's answers as counts of errors: another label is a substitution, no label a deletion."""
    strict = scores["labels"]["strict"]
    wrong = strict["rows"] - strict["correct"] - strict["invalid"]
    return {
        "insertions": 0,
        "deletions": strict["invalid"],
        "substitutions": wrong,
        "reference_units": strict["rows"],
    }


def test_rows(context: Context) -> tuple[list[Any], list[Any]] | None:
    """Rows of the test under seed and candidate; None where there is no candidate."""
    if context.last("eval", eval_id="selected-test") is None:
        return None
    return read_rows(context.workdir / "evals/seed-test"), read_rows(context.workdir / "evals/selected-test")


def block_by(context: Context) -> str:
    """Blocks of the interval: speakers where every test row has one, else recordings."""
    return "speaker" if all(c.speaker for c in clips_of(context, "test")) else "recording"


def comparison(context: Context) -> dict[str, Any] | None:
    from tools.score.compare import compare_rows

    rows = test_rows(context)
    if rows is None:
        return None
    metric = contract(context)["scoring"]["metric"]
    noise = abs(_noise(context)["delta"])
    labels = labels_of(context)
    if labels is not None:
        from tools.score.labelled import compare_labels

        c = compare_labels(*rows, labels, labels.strict, metric, by=block_by(context), noise_floor=noise)
        return {**c, "split": "test", "seed": c["a"], "candidate": c["b"], "draws_seed": c["seed"]}
    unit = "cer" if metric == "cer" else "unit"
    c = compare_rows(*rows, profile_of(context), by=block_by(context), noise_floor=noise, metric=unit).to_json()
    return {**c, "metric": metric, "split": "test", "seed": c["a"], "candidate": c["b"], "draws_seed": c["seed"]}


def _noise(context: Context) -> dict[str, Any]:
    """What the seed differs from itself in other batches, on dev."""
    found = [r for r in context.ledger.records("outcome") if r.payload["effect"] == "noise_floor"]
    return dict(found[-1].payload["result"])


def profiles(context: Context) -> list[dict[str, Any]]:
    """The same hypotheses under a second profile: a gain that one profile alone shows is a gain of style."""
    from tools.score.transcripts import score_rows
    from tools.text import profile

    if labels_of(context) is not None:
        return []  # strict, parsed and comparator readings stand beside each other instead
    own = profile_of(context).name
    other = profile("basic" if own != "basic" else "exact")
    out = []
    for split in ("test", "retention"):
        values = {}
        for model, eval_id in (("seed", f"seed-{split}"), ("candidate", candidate_eval(context, split))):
            if eval_id and context.last("eval", eval_id=eval_id) is not None:
                values[model] = score_rows(read_rows(context.workdir / "evals" / eval_id), other).value
        if values:
            out.append({"profile": other.name, "split": split, "seed": None, "candidate": None, **values})
    return out


def retention(context: Context, metric: str) -> dict[str, Any] | None:
    seed = context.last("eval", eval_id="seed-retention")
    name = candidate_eval(context, "retention")
    candidate = context.last("eval", eval_id=name) if name else None
    if seed is None or candidate is None:
        return None
    a, b = figure(seed, metric) or 0.0, figure(candidate, metric) or 0.0
    limit = contract(context)["selection"]["retention_limit"]
    return {"seed": a, "candidate": b, "delta": b - a, "limit": limit, "within": b - a <= limit}


def slices(context: Context, key: str) -> list[dict[str, Any]]:
    from tools.score.transcripts import score_by

    if context.last("eval", eval_id="seed-test") is None:
        return []
    own, profile = countable(context, read_rows(context.workdir / "evals/seed-test"))
    seed = score_by(own, key, profile)
    rows = test_rows(context)
    candidate = {} if rows is None else score_by(countable(context, rows[1])[0], key, profile)
    cer = contract(context)["scoring"]["metric"] == "cer"
    return [
        {
            key: name or None,
            "rows": s.rows,
            "reference_units": s.characters.reference_units if cer else s.reference_units,
            "seed": s.cer if cer else s.value,
            "candidate": (candidate[name].cer if cer else candidate[name].value) if name in candidate else None,
        }
        for name, s in seed.items()
    ]


def _errors_by_id(context: Context) -> dict[str, tuple[int, int]]:
    from tools.score.transcripts import Tally

    rows = test_rows(context)
    if rows is None:
        return {}
    (one, profile), (two, _) = (countable(context, x) for x in rows)
    tally, cer = Tally(profile), contract(context)["scoring"]["metric"] == "cer"
    counts = {}
    for a, b in zip(one, two, strict=True):
        ours, theirs = tally.measure(a), tally.measure(b)
        counts[a.id] = tuple(_sum(m.characters if cer else m.words) for m in (ours, theirs))
    return counts  # type: ignore[return-value]


def _sum(errors: Any) -> int:
    return int(errors.insertions + errors.deletions + errors.substitutions)


def worst(context: Context) -> list[dict[str, Any]]:
    """Test rows with the most errors left; texts only where the brief lets them be kept."""
    by_id = _errors_by_id(context)
    audio = {c.id: str(c.audio) for c in clips_of(context, "test")}
    keep = bool(context.session.brief.answer_to("keep_text"))
    rows = test_rows(context)
    texts = {} if rows is None else {a.id: (a.ref, a.hyp, b.hyp) for a, b in zip(*rows, strict=True)}
    order = sorted(by_id, key=lambda i: (-by_id[i][1], -by_id[i][0], i))[:WORST]
    out = []
    for i in order:
        row: dict[str, Any] = {"id": i, "seed_errors": by_id[i][0], "candidate_errors": by_id[i][1], "audio": audio[i]}
        if keep:
            row.update(zip(("ref", "seed_hyp", "candidate_hyp"), texts[i], strict=True))
        out.append(row)
    return out


def changes(context: Context) -> list[dict[str, Any]]:
    counts = Counter(b - a for a, b in _errors_by_id(context).values())
    return [{"errors": e, "clips": n} for e, n in sorted(counts.items())]
