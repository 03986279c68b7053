"""What belongs beside the figures: data, budget, what was not tested or tried in vain, provenance, commands, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.steps.common import clips_of, contract
from agent.steps.runs import selected_run

if TYPE_CHECKING:
    from agent.act import Context


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
