"""Where a work directory stands, from its ledger alone. Reads only; never calls a model, never takes the lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.budget import budget_of
from agent.ledger.chain import read_ledger
from tools.errors import UsageError


def status_document(workdir: Path) -> dict[str, Any]:
    """{state, finished, records, head, budget, evaluations, run, last}. Raises UsageError where there is no ledger."""
    if not (workdir / "ledger.jsonl").is_file():
        raise UsageError(f"{workdir} is not a work directory: it has no ledger.jsonl")
    records, _ = read_ledger(workdir)
    plan = next((r for r in records if r.kind == "plan"), None)
    state = next((r.state for r in reversed(records) if r.state), None)
    notes = [r.payload["text"] for r in records if r.kind == "note"]
    return {
        "workdir": str(workdir.absolute()),
        "state": state,
        "finished": (workdir / "report" / "result.json").is_file(),
        "records": len(records),
        "head": records[-1].hash if records else None,
        "budget": _budget(records, None if plan is None else plan.payload["brief"]),
        "evaluations": {r.payload["eval_id"]: r.payload["scores"]["wer"] for r in records if r.kind == "eval"},
        "last": notes[-1] if notes else None,
    }


def _budget(records: list[Any], brief: dict[str, Any] | None) -> dict[str, Any] | None:
    given = None if brief is None else budget_of(brief)
    if given is None:
        return None
    settled = {r.payload["reservation"]: r.payload["amount"] for r in records if r.kind == "settle"}
    reserved = [r.payload for r in records if r.kind == "reserve"]
    return {
        "unit": given.unit,
        "cap": given.cap,
        "reserved": sum(p["amount"] for p in reserved if p["reservation"] not in settled),
        "spent": sum(settled.values()),
    }
