"""choose_run: the smallest informative preset that fits the budget, its exposure, and its registration before it starts."""

from __future__ import annotations

import json

from agent.act import Context
from agent.forecast import evaluate_minutes, train_minutes
from agent.presets import choose_preset
from agent.reuse import reuse_answers
from agent.steps.common import SPLITS, clips_of, contract, work_of, write_text
from agent.steps.runs import REGISTRATION, changed_settings, current_run, pool_file, round_of
from agent.steps.seeds import refuse_to_train
from tools.errors import BudgetError, CheckError, UsageError
from tools.select import MOST_UPDATES
from tools.train.config import GspoConfig


def run(context: Context) -> str:
    run = current_run(context)
    if context.last("register", run_id=run) is not None:
        return "ready"
    refuse_to_train(context)
    reuse_answers(context)
    config = _fitting(context)
    pool = json.loads((context.workdir / pool_file(round_of(context))).read_text(encoding="utf-8"))["clips"]
    exposure = config.exposure(len(pool))
    path = context.workdir / "runs" / run / REGISTRATION
    frozen = contract(context)
    body = config.model_dump(mode="json")
    changed = changed_settings(context, body)
    if changed:
        raise CheckError(
            f"{run} would change {', '.join(changed)} with the data: one thing at a time, keep the first run's"
        )
    digest = write_text(
        path, json.dumps({"config": body, "pool": pool}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )
    why = f"the smallest for {len(pool)} training clips; {exposure_in_words(config)}"
    context.decide("preset", config.preset, why, {"exposure": exposure}, round_=round_of(context))
    context.record(
        "register",
        {
            "run_id": run,
            "preset": config.preset,
            "config_sha256": digest,
            "updates": config.updates,
            "random_seed": config.random_seed,
            "metric": frozen["selection"]["metric"],
            "split": frozen["selection"]["split"],
            "retention_limit": frozen["selection"]["retention_limit"],
            "hypothesis": "training on the seed's own better answers lowers the test error, and retention stays within its limit",
            "details": {"exposure": exposure, "config": body, "pool": len(pool)},
        },
    )
    context.notice(f"{exposure_in_words(config)}; {len(pool)} clips in the pool")
    return "ready"


def exposure_in_words(config: GspoConfig) -> str:
    """What a run shows and samples, refills at their worst, and when it is asked whether to go on."""
    told = config.exposure()
    return (
        f"{config.updates} updates of {config.groups} groups x {config.answers} answers: {told['groups']} groups and "
        f"{told['answers']} answers presented, {told['sampled_answers_worst']} sampled at worst with refills; "
        f"{min(config.stage_updates, config.updates)} updates first, then dev decides"
    )


def _fitting(context: Context) -> GspoConfig:
    """The preset, with fewer updates where only fewer fit. Raises BudgetError when not even one update fits."""
    brief, budget = context.session.brief, context.session.budget
    rows = {s: len(clips_of(context, s)) for s in SPLITS}
    limit = contract(context)["decoding"]["limit"]
    config = choose_preset(context.skill, brief, rows, answer_limit=limit)
    if config.updates > MOST_UPDATES:
        raise UsageError(
            f"preset {config.preset} asks for {config.updates} updates: at most {MOST_UPDATES} in a first comparison"
        )
    while True:
        work = work_of(context, config)
        need = budget.price(cpu_hours=(train_minutes(work) + evaluate_minutes(work)) / 60)
        if need <= budget.left:
            return config
        fewer = config.updates - config.checkpoint_every
        if fewer < 1:
            raise BudgetError(
                f"a run of {config.updates} updates with its test may cost {need:.3g} {budget.unit} and {budget.left:.3g} of "
                f"{budget.cap:.3g} are left: it would take a budget of {budget.cap - budget.left + need:.3g} {budget.unit}"
            )
        context.notice(f"{config.updates} updates do not fit the budget, trying {fewer}", level="warn")
        config = config.model_copy(update={"updates": fewer})
