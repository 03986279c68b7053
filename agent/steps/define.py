"""define: resolve what the brief names, see that it can be paid for at all, and write the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.act import Context
from agent.forecast import as_rows, mined_minutes, smallest_minutes
from agent.presets import choose_preset, mining_plan, work_sizes
from agent.questions import TASKS
from agent.steps.common import profile_of, recogniser
from agent.steps.rewards import said_reward
from agent.steps.seeds import refuse_to_train
from tools.errors import BudgetError, UsageError


def run(context: Context) -> str:
    session = context.session
    brief = session.brief
    _suits(brief.answer_to("task"), str(brief.answer_to("metric")))
    said_reward(context)
    refuse_to_train(context)
    model = recogniser(context).describe()
    _affordable(context)
    if brief.answer_to("task") == "label":
        _vocabulary(context)
    if context.last("plan") is None:
        steps = [{"id": s.id, "title": s.title, "does": s.does} for s in context.skill.procedure.states]
        context.record("plan", session.plan_payload(steps))
    context.notice(f"seed model {model['digest'][:12]}, {'multilingual' if model['multilingual'] else 'English only'}")
    return "ready"


def _suits(task: str, metric: str) -> None:
    if metric not in TASKS[task]:
        raise UsageError(f"metric {metric} does not belong to task {task}: choose one of {', '.join(TASKS[task])}")


def _vocabulary(context: Context) -> None:
    """The labels of the task: those of the brief, else those in the manifests. Raises UsageError where they cannot be
    told apart under the profile, or a protected one is none of them."""
    from tools.score.labels import label_set, variants

    brief = context.session.brief
    said: Any = brief.answer_to("labels")
    labels = list(said or context.session.found().get("labels") or [])
    if len(labels) < 2:
        raise UsageError("task label needs two labels at least: name them in the brief (labels), or in the manifests")
    known = label_set(profile_of(context), labels)
    for protected in brief.answer_to("protected") or []:
        if known.profile.normalise(protected) not in known.labels:
            raise UsageError(f"the protected label {protected!r} is none of the task's: {', '.join(known.labels)}")
    for spellings in variants(labels).values():
        context.notice(f"one label is written in several ways: {', '.join(map(repr, spellings))}", level="warn")
    context.decide("labels", sorted(labels), "named in the brief" if said else "found in the manifests")


def _affordable(context: Context) -> None:
    """Raises BudgetError when not even one update with its baseline and its test fits."""
    brief, budget = context.session.brief, context.session.budget
    rows = count_rows(brief.manifests())
    work = work_sizes(brief, rows, choose_preset(context.skill, brief, rows), mining_plan(context.skill))
    until_mined = bool(context.scratch.get("until"))
    least = budget.price(cpu_hours=(mined_minutes(work) if until_mined else smallest_minutes(work)) / 60)
    steps = "baseline, mining" if until_mined else "baseline, mining, one update, the test"
    if budget.spent == 0 and least > budget.cap:
        raise BudgetError(
            f"the least that ends in a result ({steps}) may cost {least:.3g} {budget.unit} "
            f"and the cap is {budget.cap:.3g}: raise the budget, or give fewer dev and test rows"
        )
    context.notice("worst case in CPU minutes: " + ", ".join(f"{k} {v:.1f}" for k, v in as_rows(work).items()))


def count_rows(manifests: dict[str, list[Path]]) -> dict[str, int]:
    """Rows by split, counted without opening any audio; a manifest still to be split is dealt by the default shares."""
    from tools.data.manifest import iter_manifest
    from tools.data.splits import FRACTIONS

    rows = {split: sum(1 for path in paths for _ in iter_manifest(path)) for split, paths in manifests.items()}
    kept = rows.pop("train_retention", 0)
    whole = rows.pop("manifest", None)
    if whole is not None:
        rows.update({split: round(share * whole) for split, share in FRACTIONS.items() if split not in rows})
    rows["train"] = rows.get("train", 0) + kept
    return {split: rows.get(split, 0) for split in ("train", "dev", "test", "retention")}
