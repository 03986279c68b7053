"""Going on: after every stage the run was asked, and what was decided is what dev, limits and refills lead to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.ledger.evidence import Evidence, Finding, Rule, Violation
from agent.ledger.rules.selection import eligible_points
from agent.ledger.rules.training import config_of, final_view, registrations


def going(e: Evidence) -> Iterator[Finding]:
    """Every stage of every run has its decision, and it is the one that the rule makes of the figures on record."""
    from tools.select import is_boundary

    told = {
        (r.payload["chosen"]["run_id"], r.payload["chosen"]["update"]): r
        for r in e.of("decision")
        if r.payload["what"] == "go_on"
    }
    for run, record in registrations(e):
        config = config_of(e, run)
        if config is None or "stage_updates" not in config:
            continue
        size, every = config["stage_updates"], config["checkpoint_every"]
        view = final_view(e.jsonl(f"runs/{run}/metrics.jsonl") or [])
        reached = max(view, default=0)
        for update in range(every, config["updates"], every):
            if not is_boundary(update, size, every) or reached < update:
                continue
            decision = told.get((run, update))
            if decision is None and reached > update:
                yield Violation(f"{run} went on after update {update} without being asked", (record.seq,))
            if decision is None:
                continue
            if not decision.payload["chosen"]["go_on"] and reached > update:
                yield Violation(f"{run} went on after update {update} although it was decided not to", (decision.seq,))
            yield from _again(e, run, config, view, decision)


def _again(e: Evidence, run: str, config: dict[str, Any], view: dict[int, Any], decision: Any) -> Iterator[Finding]:
    from tools.select import Point, Stage, going_on
    from tools.select.stage import rises

    update, size = decision.payload["chosen"]["update"], config["stage_updates"]
    lines = [view[u] for u in sorted(view) if u <= update]
    fresh = [x for x in lines if x["update"] > update - size]
    seed = e.last("eval", eval_id="seed-dev")
    noise = e.last("outcome", effect="noise_floor")
    if seed is None or any("offered" not in x or "retained" not in x for x in lines):
        return
    stage = Stage(
        update=update,
        size=size,
        seed_dev=e.score_of(seed) or 0.0,
        noise=abs(float(noise.payload["result"].get("delta") or 0.0)) if noise else 0.0,
        points=tuple(Point(*p) for p in eligible_points(e, run, update)),
        offered=sum(x["offered"] for x in fresh),
        retained=sum(x["retained"] for x in fresh),
        reward_rises=rises([x["reward"] for x in lines if x.get("reward") is not None]),
    )
    due = going_on(stage)
    said = (decision.payload["chosen"]["go_on"], decision.payload["details"]["reason"])
    if said != (due.go_on, due.reason):
        text = f"{run} after update {update}: decided {said}, the figures lead to {(due.go_on, due.reason)}"
        yield Violation(text, (decision.seq,))


def kept(e: Evidence) -> Iterator[Finding]:
    """Runs that differ in data do not differ in estimator, clip, KL or step size as well."""
    from agent.steps.runs import KEPT

    runs = [(run, record, config_of(e, run)) for run, record in registrations(e)]
    for run, record, config in runs[1:]:
        first = runs[0][2]
        changed = [k for k in KEPT if first is not None and config is not None and first.get(k) != config.get(k)]
        if changed:
            yield Violation(f"{run} changed {', '.join(changed)} together with its data", (runs[0][1].seq, record.seq))


RULES = (
    Rule("run-going-on", "After every stage the run was asked, and went on only where the figures say so.", going),
    Rule("run-kept", "A run on refreshed data keeps estimator, clip, KL and step of the first.", kept),
)
