"""Money: reserved before it is spent, settled afterwards, never beyond the cap, the cap never raised by the agent."""

from __future__ import annotations

from collections.abc import Iterator

from agent.budget import SLACK, budget_of
from agent.ledger.chain import Record
from agent.ledger.evidence import Evidence, Finding, Rule, Violation


def reservations(e: Evidence) -> Iterator[Finding]:
    """Each launch under an open reservation; no work that costs before there is one."""
    made: dict[str, Record] = {}
    settled: set[str] = set()
    for record in e.records:
        payload = record.payload
        if record.kind == "reserve":
            if payload["reservation"] in made:
                seqs = (made[payload["reservation"]].seq, record.seq)
                yield Violation(f"reservation {payload['reservation']} was made twice", seqs)
            made[payload["reservation"]] = record
        elif record.kind == "settle":
            settled.add(payload["reservation"])
        elif record.kind == "launch":
            name = payload["reservation"]
            if name not in made:
                text = f"{payload['run_id']} attempt {payload['attempt']} was launched without a reservation ({name})"
                yield Violation(text, (record.seq,))
            elif name in settled:
                yield Violation(
                    f"{payload['run_id']} was launched on reservation {name}, settled before", (record.seq,)
                )
        elif record.kind == "eval" and not made:
            yield Violation(f"{payload['eval_id']} was decoded before anything was reserved", (record.seq,))


def settlements(e: Evidence) -> Iterator[Finding]:
    made = {r.payload["reservation"]: r for r in reversed(e.of("reserve"))}
    seen: dict[str, int] = {}
    for record in e.of("settle"):
        name = record.payload["reservation"]
        if name not in made or made[name].seq > record.seq:
            yield Violation(f"{name} was settled and never reserved before", (record.seq,))
        elif made[name].payload["unit"] != record.payload["unit"]:
            yield Violation(f"{name} was reserved and settled in different units", (made[name].seq, record.seq))
        if name in seen:
            yield Violation(f"{name} was settled twice", (seen[name], record.seq))
        seen[name] = record.seq
    if e.finished:
        for name, record in made.items():
            if name not in seen:
                yield Violation(f"{name} was reserved and never settled", (record.seq,))


def cap(e: Evidence) -> Iterator[Finding]:
    """At every moment: spent plus still reserved within the cap, which only a customer's answer changes."""
    plan = e.last("plan")
    limit = budget_of(plan.payload["brief"]) if plan else None
    spent, open_ = 0.0, {}
    for record in e.records:
        payload = record.payload
        if record.kind == "answer" and payload["id"] == "budget" and record.actor == "customer":
            limit = budget_of({"budget": payload["value"]})
        if record.kind not in ("reserve", "settle"):
            continue
        if limit is None:
            yield Violation("something was spent and no budget was given", (record.seq,))
            return
        if payload["unit"] != limit.unit:
            yield Violation(f"reckoned in {payload['unit']}, the budget is in {limit.unit}", (record.seq,))
        if record.kind == "reserve":
            open_[payload["reservation"]] = payload["amount"]
        else:
            open_.pop(payload["reservation"], None)
            spent += payload["amount"]
        if spent + sum(open_.values()) > limit.cap + SLACK:
            total = spent + sum(open_.values())
            yield Violation(f"{total:.4g} {limit.unit} spent and reserved, the cap is {limit.cap:.4g}", (record.seq,))


RULES = (
    Rule(
        "budget-reserved",
        "Every launch stands under an open reservation, and nothing is decoded before one.",
        reservations,
    ),
    Rule("budget-settled", "Every reservation is settled once, in its unit, after it was made.", settlements),
    Rule("budget-cap", "What was spent and is still reserved never exceeds the customer's cap.", cap),
)
