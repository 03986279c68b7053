"""select: the declared rule over the checkpoints, the seed among them. The test plays no part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent.act import Context
from agent.steps.common import clips_of, contract, figure
from agent.steps.runs import current_run, registered_runs

if TYPE_CHECKING:
    from tools.select import Judged, Rule


def run(context: Context) -> str:
    from tools.select import select_checkpoint

    chosen = select_checkpoint(candidates(context), rule_of(context))
    details = {**chosen.to_json(), "run_id": chosen.run or (registered_runs(context) or [current_run(context)])[-1]}
    context.decide("select", chosen.update, chosen.why, details)
    return "seed" if chosen.update == "seed" else "candidate"


def rule_of(context: Context) -> Rule:
    """The rule as it was frozen; retention counts only where there is a set for it."""
    from tools.select import Rule

    frozen = contract(context)["selection"]
    limit = frozen["retention_limit"] if clips_of(context, "retention") else None
    protected, lost = tuple(frozen.get("protected") or ()), frozen.get("class_limit") or 0.0
    return Rule(frozen["metric"], frozen["split"], limit, protected=protected, class_limit=lost)


def candidates(context: Context) -> list[dict[str, Any]]:
    """The seed and every checkpoint at the final end of every run, with dev and retention figures from the ledger."""
    runs = registered_runs(context)
    points = [(r, p) for r in runs for p in context.must("run_end", run_id=r).payload["checkpoints"]]
    named = [({"run": r} if len(runs) > 1 else {}, r, p) for r, p in points]
    return [_seed(context), *({**p, **name, **_figures(context, f"{r}-u{p['update']:04d}")} for name, r, p in named)]


def judged(context: Context, points: list[tuple[str, int]]) -> list[Judged]:
    """The declared rule's view of the seed and these (run, update), as far as they have been evaluated."""
    from tools.select import select_checkpoint

    rows = [_seed(context)]
    for name, update in points:
        record = context.last("eval", eval_id=f"{name}-u{update:04d}-dev")
        if record is not None:
            digest = record.payload["model"]["digest"]
            rows.append({"update": update, "digest": digest, **_figures(context, f"{name}-u{update:04d}")})
    return list(select_checkpoint(rows, rule_of(context)).candidates)


def _seed(context: Context) -> dict[str, Any]:
    digest = context.must("eval", eval_id="seed-dev").payload["model"]["digest"]
    return {"update": "seed", "digest": digest, **_figures(context, "seed")}


def _figures(context: Context, prefix: str) -> dict[str, Any]:
    """Dev and retention of one candidate, and the dev recall of the protected classes where there are any."""
    frozen = contract(context)["selection"]
    out: dict[str, Any] = {}
    for split in ("dev", "retention"):
        record = context.last("eval", eval_id=f"{prefix}-{split}")
        out[split] = None if record is None else figure(record, frozen["metric"])
    if frozen.get("protected") and out["dev"] is not None:
        scores = json.loads((context.workdir / "evals" / f"{prefix}-dev" / "scores.json").read_text(encoding="utf-8"))
        recall = scores["labels"]["strict"]["recall"]
        out["recall"] = {name: recall[name] for name in frozen["protected"] if name in recall}
    return out
