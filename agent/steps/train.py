"""train: launch or resume the registered run; each checkpoint is evaluated on dev and retention under the frozen contract."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.act import Context, Interrupted
from agent.contract import contract_digest
from agent.forecast import train_minutes
from agent.spending import spending
from agent.steps.common import (
    clips_of,
    contract,
    evaluate_model,
    rate,
    recogniser,
    seed_folder,
    work_of,
)
from agent.steps.rewards import frozen_reward
from agent.steps.runs import REGISTRATION, current_run
from agent.steps.stages import judge, outcome_of
from tools.errors import BudgetError, CheckError
from tools.files import file_sha256
from tools.rows import Clip

if TYPE_CHECKING:
    from tools.train.config import GspoConfig
    from tools.train.trainer import RunResult


UNFINISHED = ("lost", "interrupted", "budget")


def run(context: Context) -> str:
    from tools.train import trainer as training

    if context.last("register", run_id=current_run(context)) is None:
        return "refresh"  # decided on, and a kill came before the way back to mining
    end = context.last("run_end", run_id=current_run(context))
    if end is not None and end.payload["reason"] not in UNFINISHED:
        return outcome_of(context)
    config, pool = registered(context)
    minutes = train_minutes(work_of(context, config))
    with spending(context, "train", minutes) as paid:
        _launch(context, paid.reservation)
        try:
            result = _train(context, config, pool)
        except Interrupted:
            _end(context, "interrupted", None)
            raise
        except training.Interrupted as stopped:
            _end(context, "interrupted" if context.should_stop() else "budget", None)
            context.check_stop()  # says which of the two it was
            raise Interrupted from stopped
        except BudgetError:
            _end(context, "budget", None)
            raise
        _end(context, result.reason, result)
    ending = f"the run ended after {result.updates} updates: {result.reason} {result.detail}".rstrip()
    context.notice(ending, "info" if result.reason == "finished" else "warn")
    for sentence in result.diagnosis:
        context.notice(sentence, "warn")
    return outcome_of(context)


def registered(context: Context) -> tuple[GspoConfig, list[Clip]]:
    """The registered settings and pool. Raises CheckError when the registration is not the one on record."""
    from tools.train.config import make_config

    record = context.must("register", run_id=current_run(context)).payload
    raw = (_folder(context) / REGISTRATION).read_bytes()
    if hashlib.sha256(raw).hexdigest() != record["config_sha256"]:
        raise CheckError(
            f"runs/{current_run(context)}/{REGISTRATION} is not the one on record: put it back, or start a new work directory"
        )
    body = json.loads(raw)
    by_id = {c.id: c for c in clips_of(context, "train")}
    return make_config(body["config"], where=f"runs/{current_run(context)}/{REGISTRATION}"), [
        by_id[i] for i in body["pool"]
    ]


def _launch(context: Context, reservation: str) -> None:
    """One `launch` record an attempt; an attempt that a kill ended is told as lost by the next one."""
    run = current_run(context)
    launches = [r for r in context.ledger.records("launch") if r.payload["run_id"] == run]
    ends = {r.payload["attempt"] for r in context.ledger.records("run_end") if r.payload["run_id"] == run}
    for lost in launches:
        if lost.payload["attempt"] not in ends:
            _end(context, "lost", None, attempt=lost.payload["attempt"])
            context.record(
                "recovery", {"what": f"attempt {lost.payload['attempt']} of {run} was lost", "details": {"run_id": run}}
            )
    context.record(
        "launch",
        {
            "run_id": run,
            "attempt": len(launches) + 1,
            "from_update": _resumable(context),
            "reservation": reservation,
        },
    )


def _resumable(context: Context) -> int:
    from tools.train.checkpoint import find_checkpoints

    found = find_checkpoints(_folder(context) / "checkpoints").resumable
    return 0 if found is None else found.update


def _folder(context: Context) -> Path:
    return context.workdir / "runs" / current_run(context)


def _train(context: Context, config: GspoConfig, pool: list[Clip]) -> RunResult:
    from tools.decode.encoder_cache import training_encode
    from tools.policy.load import load_policy
    from tools.train.trainer import train

    frozen, heard = contract(context), recogniser(context)
    policy = load_policy(seed_folder(context))
    prompt = frozen["prompt"]["text"]
    return train(
        policy,
        pool,
        training_encode(policy, heard.cache),
        frozen_reward(context),
        config,
        _folder(context),
        prompts=lambda clip: policy.prompt_ids(prompt, clip.lang, clip_id=clip.id),
        on_event=lambda event: _told(context, event, config),
        should_stop=lambda: _stop(context),
        evaluate=lambda update: _evaluate(context, update),
        judge=lambda update: judge(context, config, update),
    )


def _stop(context: Context) -> bool:
    """Whether to stop between two updates: the customer asked, or the budget has no room for more."""
    try:
        context.check_stop()
    except (Interrupted, BudgetError):
        return True
    return False


def _told(context: Context, event: dict[str, Any], config: GspoConfig) -> None:
    if event.get("event") == "update":
        context.progress("training")(event["update"], config.updates)


def _evaluate(context: Context, update: int) -> dict[str, Any]:
    """Dev and retention of one checkpoint, from the weights on disk. Done before, it is only read."""
    from tools.train.checkpoint import find_markers

    frozen, run = contract(context), current_run(context)
    checkpoint = next(c for c in find_markers(_folder(context) / "checkpoints") if c.update == update)
    metric = frozen["selection"]["metric"]
    values: dict[str, float | None] = {}
    for split in ("dev", "retention"):
        if not clips_of(context, split):
            continue
        scores = evaluate_model(
            context,
            f"{run}-u{checkpoint.update:04d}-{split}",
            split,
            model={"kind": "checkpoint", "run": run, "update": checkpoint.update, "digest": checkpoint.digest},
            weights=checkpoint.folder / "trainable.safetensors",
            prompt=frozen["prompt"]["text"],
            limit=frozen["decoding"]["limit"],
            contract_sha256=contract_digest(frozen),
        )
        values[split] = rate(scores, metric)
    context.measured("dev", values["dev"] or 0.0, update=checkpoint.update, retention=values.get("retention"))
    return values


def _end(context: Context, reason: str, result: RunResult | None, attempt: int | None = None) -> None:
    from tools.train.checkpoint import find_markers

    run, metrics = current_run(context), _folder(context) / "metrics.jsonl"
    found = [c for c in find_markers(_folder(context) / "checkpoints") if c.candidate]
    context.record(
        "run_end",
        {
            "run_id": run,
            "attempt": attempt or len([r for r in context.ledger.records("launch") if r.payload["run_id"] == run]),
            "reason": reason,
            "updates": max((c.update for c in found), default=0),
            "checkpoints": [{"update": c.update, "digest": c.digest} for c in found],
            "trained_sha256": found[-1].digest if found else None,
            "metrics_sha256": file_sha256(metrics) if metrics.is_file() else None,
            "details": {} if result is None else {k: v for k, v in result.to_json().items() if k != "checkpoints"},
        },
    )
