"""select: the declared rule over the checkpoints, the seed among them. The test plays no part."""

from __future__ import annotations

from typing import Any

from agent.act import Context
from agent.steps.choose_run import RUN
from agent.steps.common import clips_of, contract


def run(context: Context) -> str:
    from tools.select import Rule, select_checkpoint

    frozen = contract(context)["selection"]
    retained = bool(clips_of(context, "retention"))
    limit = frozen["retention_limit"] if retained else None
    chosen = select_checkpoint(candidates(context), Rule(frozen["metric"], frozen["split"], limit))
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


def _figures(context: Context, prefix: str) -> dict[str, float | None]:
    metric = contract(context)["selection"]["metric"]
    out = {}
    for split in ("dev", "retention"):
        record = context.last("eval", eval_id=f"{prefix}-{split}")
        value = None if record is None else record.payload["scores"]["cer" if metric == "cer" else "wer"]
        out[split] = value
    return out
