"""How it came about: prompts, mining, registered runs with their curves, updates, and the selection."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.steps.common import clips_of, contract
from agent.steps.runs import selected_run

if TYPE_CHECKING:
    from agent.act import Context

TRAINING = (
    "update", "reward", "offered_reward", "contrast_share", "grad_norm", "ratio_mean", "ratio_p99", "clip_share", "entropy",
    "length_ratio",
)  # fmt: skip


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
