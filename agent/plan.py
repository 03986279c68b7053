"""`rehear plan BRIEF`: what a brief would do and what it would cost at worst. Reads manifests, opens no audio, starts nothing."""

from __future__ import annotations

from typing import Any

from agent.brief import Brief
from agent.driver import load
from agent.findings import look
from agent.forecast import as_rows, smallest_minutes
from agent.presets import choose_preset, mining_plan, work_sizes
from agent.steps.define import count_rows


def plan_document(brief: Brief) -> dict[str, Any]:
    """{name, states, questions, assumptions, rows, preset, exposure, worst_cpu_minutes, least_cpu_minutes, budget}."""
    skill = load()
    missing = brief.missing(look(brief))
    document: dict[str, Any] = {
        "name": brief.name,
        "skill": skill.name,
        "states": {s.id: s.title for s in skill.procedure.states if not s.stop},
        "questions": [q.to_json() for q in missing if q.default is None],
        "assumptions": {q.id: q.assumed for q in missing if q.default is not None},
    }
    if any(q.id == "data" for q in missing):
        return document
    brief.check_files()
    rows = count_rows(brief.manifests())
    config = choose_preset(skill, brief, rows)
    work = work_sizes(brief, rows, config, mining_plan(skill))
    worst = as_rows(work)
    return {
        **document,
        "rows": rows,
        "preset": config.preset,
        "exposure": config.exposure(rows["train"]),
        "worst_cpu_minutes": {**worst, "total": round(sum(worst.values()), 2)},
        "least_cpu_minutes": round(smallest_minutes(work), 2),
        "budget": None if brief.budget is None else {"unit": brief.budget.unit, "cap": brief.budget.cap},
    }
