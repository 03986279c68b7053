"""The end of a stage of training: is it worth going on, what to look at, and when to refresh what is trained on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.act import Context
from agent.forecast import baseline_minutes, evaluate_minutes, mine_minutes, train_minutes
from agent.steps.common import contract, countable, figure, rate, work_of
from agent.steps.runs import current_run, refreshes
from agent.steps.select import judged

if TYPE_CHECKING:
    from tools.select import Going, Stage
    from tools.train.config import GspoConfig

MOST_REFRESHES = 1


def judge(context: Context, config: GspoConfig, update: int) -> tuple[str, str] | None:
    """After an evaluated checkpoint: (reason, sentence) where the run ends here; None where it goes on."""
    from tools.select import going_on, is_boundary

    if not is_boundary(update, config.stage_updates, config.checkpoint_every):
        return None
    run = current_run(context)
    stage = stage_of(context, run, config.model_dump(), update)
    going = going_on(stage)
    details = {"run_id": run, "reason": going.reason, "stage": _figures(stage)}
    if going.reason == "inspect":
        details["paired"] = inspect(context, run, update)
    context.decide("go_on", {"run_id": run, "update": update, "go_on": going.go_on}, going.because, details)
    return None if going.go_on else _ended(going)


def _ended(going: Going) -> tuple[str, str]:
    return going.reason, going.because


def stage_of(context: Context, run: str, config: dict[str, Any], update: int) -> Stage:
    """What ledger and metrics say at the end of a stage."""
    from tools.select import Point, Stage
    from tools.select.stage import rises
    from tools.train.metrics import final_view

    size = config["stage_updates"]
    lines = [x for x in final_view(context.workdir / "runs" / run / "metrics.jsonl") if x["update"] <= update]
    fresh = [x for x in lines if x["update"] > update - size]
    every = config["checkpoint_every"]
    points = judged(context, [(run, u) for u in range(every, update + 1, every)])
    metric = contract(context)["selection"]["metric"]
    return Stage(
        update=update,
        size=size,
        seed_dev=figure(context.must("eval", eval_id="seed-dev"), metric) or 0.0,
        noise=noise_of(context),
        points=tuple(Point(int(p.update), p.dev, p.eligible) for p in points if p.update != "seed"),
        offered=sum(x["offered"] for x in fresh),
        retained=sum(x["retained"] for x in fresh),
        reward_rises=rises([x["reward"] for x in lines if x.get("reward") is not None]),
    )


def noise_of(context: Context) -> float:
    outcome = context.last("outcome", effect="noise_floor")
    return abs(float(outcome.payload["result"]["delta"])) if outcome else 0.0


def _figures(stage: Stage) -> dict[str, Any]:
    return {
        "update": stage.update,
        "offered": stage.offered,
        "retained": stage.retained,
        "refill_share": round(stage.refill_share, 6),
        "reward_rises": stage.reward_rises,
        "noise": stage.noise,
    }


def inspect(context: Context, run: str, update: int) -> dict[str, Any]:
    """The reward rises and dev does not: the dev answers of seed and checkpoint side by side, by id and counts, and the
    scoring contract looked at again. Texts stay where they are."""
    from tools.score.transcripts import Tally, score_rows
    from tools.verbs.evaluate import read_rows

    folders = [context.workdir / "evals" / name for name in ("seed-dev", f"{run}-u{update:04d}-dev")]
    rows = [read_rows(folder) for folder in folders]
    (a, profile), (b, _) = (countable(context, x) for x in rows)
    tally = Tally(profile)
    pairs: list[dict[str, Any]] = []
    for one, two in zip(a, b, strict=True):
        before, after = tally.measure(one).words.total, tally.measure(two).words.total
        pairs.append({"id": one.id, "seed_errors": before, "checkpoint_errors": after})
    text = "".join(json.dumps(p, sort_keys=True) + "\n" for p in pairs)
    path = _write(context.workdir / "runs" / run / f"paired-u{update:04d}.jsonl", text)
    changed = sum(one.hyp != two.hyp for one, two in zip(*rows, strict=True))
    again = [rate(score_rows(x, p).to_json(), "wer") for x, p in ((a, profile), (b, profile))]
    context.notice(f"the reward rises and dev does not: see {path.relative_to(context.workdir)}", level="warn")
    return {
        "better": sum(p["checkpoint_errors"] < p["seed_errors"] for p in pairs),
        "worse": sum(p["checkpoint_errors"] > p["seed_errors"] for p in pairs),
        "texts_changed": changed,
        "rows": len(pairs),
        "seed_again": again[0],
        "checkpoint_again": again[1],
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def _write(path: Path, text: str) -> Path:
    from agent.disk import write_atomic

    write_atomic(path, text)
    return path


def outcome_of(context: Context) -> str:
    """trained, or refresh: refills dominated, another selection fits the budget at its worst, and none was made before."""
    run = current_run(context)
    end = context.must("run_end", run_id=run).payload
    if end["reason"] != "refills":
        return "trained"
    again = refreshes(context) < MOST_REFRESHES and _fits(context)
    why = "strata that still have contrast are mined anew, from training rows alone"
    context.decide("refresh", {"after": run, "again": again}, why if again else "no room for another selection and run")
    return "refresh" if again else "trained"


def _fits(context: Context) -> bool:
    """Whether two selections and two runs fit the cap at their forecast worst: nothing measured decides it."""
    work, budget = work_of(context), context.session.budget
    twice = 2 * (mine_minutes(work) + train_minutes(work))
    worst = budget.price(cpu_hours=(baseline_minutes(work) + twice + evaluate_minutes(work)) / 60)
    return bool(worst <= budget.cap)
