"""report/result.json from the ledger and the stored evaluations: every figure with the record it comes from.

Nothing here is remembered from the run: the same ledger and the same files give the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.result import measured, told, training
from agent.result.labels import label_part
from agent.steps.common import labels_of

if TYPE_CHECKING:
    from agent.act import Context


def build_result(context: Context) -> dict[str, Any]:
    """The whole of result.json for the ending that the ledger shows."""
    compared = measured.comparison(context)
    frozen = context.must("freeze")
    metric = frozen.payload["contract"]["scoring"]["metric"]
    result: dict[str, Any] = {
        "schema_version": 1,
        "renderer": "1",
        "name": context.session.brief.name,
        "task": "asr" if labels_of(context) is None else "label",
        "metric": metric,
        "termination_reason": termination(context, compared),
        "table": measured.table(context),
        "profiles": measured.profiles(context),
        "comparison": compared,
        "labels": label_part(context),
        "retention": measured.retention(context, metric),
        "by_speaker": measured.slices(context, "speaker"),
        "by_lang": measured.slices(context, "lang"),
        "worst": measured.worst(context),
        "changes": measured.changes(context),
        "curve": training.curve(context),
        "other_runs": training.other_runs(context),
        "going_on": training.going_on(context),
        "training": training.training(context),
        "prompts": training.prompts(context),
        "mining": training.mining(context),
        "mix": training.mix(context),
        "selection": training.selection(context),
        "registrations": training.registrations(context),
        "test_open": told.opening(context),
        "data": told.data(context),
        "budget": told.budget(context),
        "assumptions": context.session.assumptions(),
        "not_tested": told.not_tested(context),
        "unsuccessful": told.unsuccessful(context),
        "contract": {
            "digest": frozen.payload["contract_sha256"],
            "contract": dict(frozen.payload["contract"]),
            "record": frozen.seq,
        },
        "provenance": told.provenance(context),
        "commands": told.commands(context),
        "artefacts": told.artefacts(context),
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
