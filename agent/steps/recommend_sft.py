"""recommend_sft: the ending before any training. The evidence, what to do instead, and a test that stays sealed."""

from __future__ import annotations

from agent.act import Context
from agent.result.build import build_result
from agent.steps.handover import publish


def run(context: Context) -> str:
    advice = context.must("decision", what="learn").payload["details"]["advice"]
    context.decide("no_training", True, str(advice))
    publish(context, build_result(context))
    return "done"
