"""report/result.json from the ledger and the stored evaluations: every figure with the record it comes from.

Nothing here is remembered from the run: the same ledger and the same files give the same result.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.label_result import label_part
from agent.steps.common import clips_of, contract, countable, figure, labels_of, profile_of, rate
from agent.steps.runs import selected_run
from tools.verbs.evaluate import read_rows

if TYPE_CHECKING:
    from agent.act import Context

WORST = 10
TRAINING = (
    "update", "reward", "offered_reward", "contrast_share", "grad_norm", "ratio_mean", "ratio_p99", "clip_share", "entropy",
    "length_ratio",
)  # fmt: skip


def build_result(context: Context) -> dict[str, Any]:
    """The whole of result.json for the ending that the ledger shows."""
    compared = comparison(context)
    frozen = context.must("freeze")
    metric = frozen.payload["contract"]["scoring"]["metric"]
    result: dict[str, Any] = {
        "schema_version": 1,
        "renderer": "1",
        "name": context.session.brief.name,
        "task": "asr" if labels_of(context) is None else "label",
        "metric": metric,
        "termination_reason": termination(context, compared),
        "table": table(context),
        "profiles": profiles(context),
        "comparison": compared,
        "labels": label_part(context),
        "retention": retention(context, metric),
        "by_speaker": slices(context, "speaker"),
        "by_lang": slices(context, "lang"),
        "worst": worst(context),
        "changes": changes(context),
        "curve": curve(context),
        "other_runs": other_runs(context),
        "going_on": going_on(context),
        "training": training(context),
        "prompts": prompts(context),
        "mining": mining(context),
        "mix": mix(context),
        "selection": selection(context),
        "registrations": registrations(context),
        "test_open": opening(context),
        "data": data(context),
        "budget": budget(context),
        "assumptions": context.session.assumptions(),
        "not_tested": not_tested(context),
        "unsuccessful": unsuccessful(context),
        "contract": {
            "digest": frozen.payload["contract_sha256"],
            "contract": dict(frozen.payload["contract"]),
            "record": frozen.seq,
        },
        "provenance": provenance(context),
        "commands": commands(context),
        "artefacts": artefacts(context),
    }
    from agent.words import next_action
    from tools.report.schema import parse_result
    from tools.report.words import headline

    return {**result, "headline": headline(parse_result(result)), "next_action": next_action(result)}


def termination(context: Context, compared: dict[str, Any] | None) -> str:
    """candidate_wins, seed_wins, not_shown or no_contrast."""
    if context.last("decision", what="select") is None:
        return "no_contrast"
    if context.must("decision", what="select").payload["chosen"] == "seed":
        return "seed_wins"
    verdict = None if compared is None else compared["verdict"]
    return {"better": "candidate_wins", "worse": "seed_wins"}.get(str(verdict), "not_shown")


def table(context: Context) -> list[dict[str, Any]]:
    return [_table_row(context, split, model, record) for split, model, record in evaluated(context)]


def evaluated(context: Context) -> list[tuple[str, str, Any]]:
    """(split, model, `eval` record) of seed and candidate on test, dev and retention, where they were measured."""
    found = []
    for split in ("test", "dev", "retention"):
        for model, eval_id in (("seed", f"seed-{split}"), ("candidate", _candidate_eval(context, split))):
            record = context.last("eval", eval_id=eval_id) if eval_id else None
            if record is not None:
                found.append((split, model, record))
    return found


def _candidate_eval(context: Context, split: str) -> str:
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


def _test_rows(context: Context) -> tuple[list[Any], list[Any]] | None:
    """Rows of the test under seed and candidate; None where there is no candidate."""
    if context.last("eval", eval_id="selected-test") is None:
        return None
    return read_rows(context.workdir / "evals/seed-test"), read_rows(context.workdir / "evals/selected-test")


def block_by(context: Context) -> str:
    """Blocks of the interval: speakers where every test row has one, else recordings."""
    return "speaker" if all(c.speaker for c in clips_of(context, "test")) else "recording"


def comparison(context: Context) -> dict[str, Any] | None:
    from tools.score.compare import compare_rows

    rows = _test_rows(context)
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
        for model, eval_id in (("seed", f"seed-{split}"), ("candidate", _candidate_eval(context, split))):
            if eval_id and context.last("eval", eval_id=eval_id) is not None:
                values[model] = score_rows(read_rows(context.workdir / "evals" / eval_id), other).value
        if values:
            out.append({"profile": other.name, "split": split, "seed": None, "candidate": None, **values})
    return out


def retention(context: Context, metric: str) -> dict[str, Any] | None:
    seed = context.last("eval", eval_id="seed-retention")
    name = _candidate_eval(context, "retention")
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
    rows = _test_rows(context)
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

    rows = _test_rows(context)
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
    rows = _test_rows(context)
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


def curve(context: Context, run: str = "") -> list[dict[str, Any]]:
    """Seed (update 0) and checkpoints on dev and retention, with the rule's view of each: of `run`, or the selected one."""
    chosen = context.last("decision", what="select")
    if chosen is None:
        return []
    own = run or selected_run(context)
    all_ = chosen.payload["details"]["candidates"]
    return [_point(context, c, own) for c in all_ if c["update"] == "seed" or c.get("run", own) == own]


def _point(context: Context, c: dict[str, Any], run: str) -> dict[str, Any]:
    prefix = "seed" if c["update"] == "seed" else f"{run}-u{c['update']:04d}"
    dev, kept = (context.last("eval", eval_id=f"{prefix}-{s}") for s in ("dev", "retention"))
    return {
        "update": 0 if c["update"] == "seed" else c["update"],
        "dev": c["dev"],
        "retention": c["retention"],
        "eligible": c["eligible"],
        "digest": c["digest"],
        "dev_eval": f"{prefix}-dev",
        "dev_record": None if dev is None else dev.seq,
        "retention_record": None if kept is None else kept.seq,
    }


def other_runs(context: Context) -> list[dict[str, Any]]:
    """Every other registered run with its curve: one of several is never told as the only one."""
    if context.last("decision", what="select") is None:
        return []
    runs = [r.payload["run_id"] for r in context.ledger.records("register")]
    return [{"run_id": r, "curve": curve(context, r)} for r in runs if r != selected_run(context)]


def going_on(context: Context) -> list[dict[str, Any]]:
    """Where a run was asked whether to go on, whether the selection was refreshed, and why."""
    asked = [r for r in context.ledger.records("decision") if r.payload["what"] in ("go_on", "refresh")]
    return [
        {**r.payload["chosen"], "what": r.payload["what"], "why": r.payload["because"], "record": r.seq} for r in asked
    ]


def training(context: Context) -> list[dict[str, Any]]:
    path = context.workdir / "runs" / selected_run(context) / "metrics.jsonl"
    if not path.is_file():
        return []
    from tools.train.metrics import final_view

    return [{k: row.get(k) for k in TRAINING} for row in final_view(path)]


def prompts(context: Context) -> list[dict[str, Any]]:
    record = context.must("decision", what="prompt")
    d = record.payload["details"]
    out = []
    for prompt, value, eval_id in zip(d["prompts"], d["errors"], d["evals"], strict=True):
        found = context.last("eval", eval_id=eval_id)
        out.append(
            {
                "prompt": prompt,
                "wer": value,
                "eval": eval_id,
                "record": None if found is None else found.seq,
                "chosen": prompt == record.payload["chosen"],
            }
        )
    return out


def mining(context: Context) -> dict[str, Any] | None:
    record = context.last("decision", what="learn")
    if record is None:
        return None
    d = record.payload["details"]
    s = d["stats"]
    keys = (
        "clips",
        "valid_share",
        "truncated_share",
        "contrast_share",
        "better_share",
        "greedy",
        "mean_sample",
        "oracle",
    )
    sampling = contract(context)["sampling"]
    return {
        **{k: s[k] for k in keys},
        "answers_per_clip": sampling["n"],
        "temperature": sampling["temperature"],
        "strata": [
            {k: x.get(k) for k in ("name", "clips", "answers", "contrast_share", "better_share", "greedy", "oracle")}
            for x in s["strata"]
        ],
        "extended": d["extended"],
        "selected": d["selected"],
        "record": record.seq,
        "reason": d["reason"],
        "advice": d["advice"],
        "pool": d["pool"],
        "summary": d.get("summary"),
    }


def mix(context: Context) -> dict[str, Any] | None:
    """How many clips of each part of the training mix are in the pool, and how many groups of each were trained on."""
    record = context.last("decision", what="mix")
    path = context.workdir / "runs" / selected_run(context) / "metrics.jsonl"
    if record is None:
        return None
    from agent.steps.summary import MIX, TARGET
    from tools.train.metrics import final_view

    part = {c.id: str(c.extras.get(MIX, TARGET)) for c in clips_of(context, "train")}
    lines = final_view(path) if path.is_file() else []
    presented = Counter(part[i] for line in lines for i in line.get("clips") or [])
    return {"pool": dict(record.payload["chosen"]), "presented": dict(sorted(presented.items())), "record": record.seq}


def selection(context: Context) -> dict[str, Any] | None:
    record = context.last("decision", what="select")
    if record is None:
        return None
    p = record.payload
    return {
        "rule": p["details"]["rule"],
        "selected": p["chosen"],
        "run_id": p["details"]["run_id"],
        "why": p["because"],
        "rejected": p["details"]["rejected"],
        "record": record.seq,
    }


def registrations(context: Context) -> list[dict[str, Any]]:
    out = []
    for r in context.ledger.records("register"):
        end = context.last("run_end", run_id=r.payload["run_id"])
        keys = ("run_id", "preset", "config_sha256", "updates", "random_seed", "hypothesis")
        out.append(
            {**{k: r.payload[k] for k in keys}, "end": "" if end is None else end.payload["reason"], "record": r.seq}
        )
    return out


def opening(context: Context) -> dict[str, Any] | None:
    record = context.last("test_open")
    if record is None:
        return None
    return {"record": record.seq, **{k: record.payload[k] for k in ("update", "digest", "reused")}}


def data(context: Context) -> dict[str, Any]:
    record = context.must("data_check")
    p = record.payload
    return {
        "splits": p["splits"],
        "quarantined": p["quarantined"],
        "findings": p["findings"],
        "reused_benchmark": bool(context.session.brief.answer_to("reused_benchmark")),
        "membership_sha256": p["membership_sha256"],
        "record": record.seq,
    }


def budget(context: Context) -> dict[str, Any] | None:
    total = context.session.budget.to_json()
    if total is None:
        return None
    items = [
        {"what": x.purpose, "reserved": x.amount, "spent": x.spent, "record": x.seq}
        for x in context.session.budget.lines()
    ]
    return {**total, "items": items}


def not_tested(context: Context) -> list[str]:
    out = ["other seeds of the run: one run was registered, so the luck of its seed is not measured"]
    if not clips_of(context, "retention"):
        out.append("retention: no retention set was given, so what the model may have lost elsewhere is unmeasured")
    out.append("serving stacks other than transformers, quantised weights, streaming and long recordings")
    if context.last("register") is not None:
        moved = (
            "the speech encoder moved, so that frozen timestamp weights do not show that they still hold"
            if provenance(context)["encoder_moved"]
            else "the decoder moved, and they were not evaluated"
        )
        out.append(f"word timestamps: {moved}")
    return out


def unsuccessful(context: Context) -> list[str]:
    """What was tried without success: prompts that lost, checkpoints refused, attempts that were lost."""
    record = context.must("decision", what="prompt").payload
    tried = zip(record["details"]["prompts"], record["details"]["errors"], strict=True)
    out = [f"prompt {p!r} on dev: {e:.4f}" for p, e in tried if p != record["chosen"]]
    chosen = context.last("decision", what="select")
    if chosen is not None:
        out += [f"update {r['update']}: {r['why']}" for r in chosen.payload["details"]["rejected"]]
    ends = (r.payload for r in context.ledger.records("run_end"))
    out += [
        f"{p['run_id']}, attempt {p['attempt']}, ended early: {p['reason']} {p['details'].get('detail', '')}".rstrip()
        for p in ends
        if p["reason"] != "finished"
    ]
    out += [f"lost attempt: {r.payload['what']}" for r in context.ledger.records("recovery")]
    return out


def provenance(context: Context) -> dict[str, Any]:
    plan = context.must("plan").payload
    chosen = context.last("decision", what="select")
    exported = [r for r in context.ledger.records("outcome") if r.payload["effect"] == "export"]
    registered = context.last("register", run_id=selected_run(context))
    frozen = contract(context)
    return {
        "seed_model_digest": frozen["seed_model"]["digest"],
        "seed_model": {"name": frozen["seed_model"]["name"], "license": frozen["seed_model"]["licence"].lower()},
        "selected_digest": "" if chosen is None else chosen.payload["details"]["digest"],
        "export_digest": exported[-1].payload["result"]["digest"] if exported else "",
        "surface": "" if registered is None else str(registered.payload["details"]["config"]["surface"]),
        "encoder_moved": None
        if registered is None
        else registered.payload["details"]["config"]["surface"] != "decoder",
        "source": plan["source"],
        "versions": {k: v for k, v in plan["versions"].items() if v},
        "ledger": {"records": context.ledger.count, "head": context.ledger.head},
    }


def commands(context: Context) -> list[dict[str, str]]:
    where = context.workdir.name
    return [
        {"what": "run or resume", "command": f"rehear run {where}/brief.yaml --workdir {where}"},
        {"what": "audit", "command": f"rehear audit {where}"},
        {"what": "render this report again", "command": f"rehear report {where}"},
    ]


def artefacts(context: Context) -> dict[str, str]:
    named = {
        "report": "report/report.html",
        "result": "report/result.json",
        "model_card": "report/model_card.md",
        "checkpoint": _checkpoint(context),
        "export": f"runs/{selected_run(context)}/export"
        if (context.workdir / "runs" / selected_run(context) / "export").is_dir()
        else "",
        "config": f"runs/{selected_run(context)}/config.json",
        "rollouts": "rollouts",
        "ledger": "ledger.jsonl",
    }
    made = ("report/",)
    return {k: v for k, v in named.items() if v and (v.startswith(made) or (context.workdir / v).exists())}


def _checkpoint(context: Context) -> str:
    chosen = context.last("decision", what="select")
    if chosen is None or chosen.payload["chosen"] == "seed":
        return ""
    return f"runs/{selected_run(context)}/checkpoints/u{chosen.payload['chosen']:04d}"
