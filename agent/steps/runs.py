"""Which run is the current one: the first, or the next after the selection was refreshed; and which one was selected.

A refresh is a decision on record (`refresh`, chosen true). Each makes one more round: other clips mined, another pool,
another registration, training from the seed model under the same estimator.
"""

from __future__ import annotations

from typing import Any

from agent.act import Context

REGISTRATION = "registration.json"
# What stays as it was while the data is being looked at (seed 000 section 5): else two runs cannot be told apart by data.
KEPT = (
    "method", "estimator", "std_floor", "clip_low", "clip_high", "kl_weight", "truncated", "answers", "groups",
    "offer_factor", "temperature", "optimiser_steps", "passes", "lr", "warmup_updates", "surface",
)  # fmt: skip


def refreshes(context: Context) -> int:
    return sum(
        r.payload["what"] == "refresh" and r.payload["chosen"]["again"] is True
        for r in context.ledger.records("decision")
    )


def round_of(context: Context) -> int:
    """1 for the first selection and run, 2 after the selection was refreshed."""
    return 1 + refreshes(context)


def current_run(context: Context) -> str:
    return f"run{round_of(context)}"


def pool_file(round_: int) -> str:
    """Where the training pool of a round lies, relative to the work directory."""
    return "data/pool.json" if round_ == 1 else f"data/pool-{round_}.json"


def registered_runs(context: Context) -> list[str]:
    """Every run that was registered, in order."""
    return [r.payload["run_id"] for r in context.ledger.records("register")]


def selected_run(context: Context) -> str:
    """The run that the selection was made from; the current one before there is a selection, or where the seed won."""
    chosen = context.last("decision", what="select")
    return current_run(context) if chosen is None else str(chosen.payload["details"]["run_id"])


def changed_settings(context: Context, config: dict[str, Any]) -> list[str]:
    """Settings of `KEPT` in which `config` differs from the first registered run."""
    first = next(iter(context.ledger.records("register")), None)
    if first is None:
        return []
    before = first.payload["details"]["config"]
    return [key for key in KEPT if before.get(key) != config.get(key)]
