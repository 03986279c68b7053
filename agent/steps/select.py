"""select: the declared rule over the checkpoints, the seed among them. The test plays no part."""

from __future__ import annotations

import json
from typing import Any

from agent.act import Context
from agent.steps.choose_run import RUN
from agent.steps.common import clips_of, contract, figure


def run(context: Context) -> str:
    from tools.select import Rule, select_checkpoint

    frozen = contract(context)["selection"]
    retained = bool(clips_of(context, "retention"))
    limit = frozen["retention_limit"] if retained else None
    protected, lost = tuple(frozen.get("protected") or ()), frozen.get("class_limit") or 0.0
    rule = Rule(frozen["metric"], frozen["split"], limit, protected=protected, class_limit=lost)
    chosen = select_checkpoint(candidates(context), rule)
    details = {**chosen.to_json(), "run_id": RUN}
    context.decide("select", chosen.update, chosen.why, details)
    return "seed" if chosen.update == "seed" else "candidate"


def candidates(context: Context) -> list[dict[str, Any]]:
    """The seed and every checkpoint of the run's final end, with its dev and retention figures from the ledger."""
    end = context.must("run_end", run_id=RUN).payload
    seed = context.must("eval", eval_id="seed-dev").payload
    out = [{"update": "seed", "digest": seed["model"]["digest"], **_figures(context, "seed")}]
    for checkpoint in end["checkpoints"]:
        out.append({**checkpoint, **_figures(context, f"{RUN}-u{checkpoint['update']:04d}")})
    return out


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
