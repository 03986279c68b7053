"""The one final document of a run (house.md §6), on every way out.

status: finished | paused (a question or the budget; resumable) | failed | interrupted (a signal; resumable).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tools.errors import RehearError

if TYPE_CHECKING:
    from agent.act import Context

SCHEMA_VERSION = 1
SIGNALLED = 130

ARTEFACTS = {
    "report": "report/report.html",
    "result": "report/result.json",
    "model_card": "report/model_card.md",
    "checkpoint": "",
    "export": "",
    "config": "",
    "rollouts": "rollouts",
    "ledger": "ledger.jsonl",
}


def finished_document(context: Context) -> dict[str, Any]:
    """The document of a run that came to its end; its result is read from report/result.json."""
    result = json.loads((context.workdir / "report" / "result.json").read_text(encoding="utf-8"))
    document = _base(context, "finished", result["termination_reason"], 0)
    document["result"] = _result(result)
    document["artefacts"].update({k: str(context.workdir / v) for k, v in result["artefacts"].items() if v})
    return document


def mined_document(context: Context) -> dict[str, Any]:
    """The document of `rehear mine`: the verdict, as report/headroom.json has it. Written once, then read."""
    from agent.headroom import FILES, publish

    verdict = publish(context)
    context.save()
    document = _base(context, "finished", verdict["verdict"]["reason"], 0)
    figures = verdict["figures"] or {}
    kept = ("greedy", "mean_sample", "consensus", "oracle", "headroom", "interval", "blocks")
    document["result"] = {
        "selected": None,
        "metric": verdict["metric"],
        "test": None,
        "retention": None,
        **{k: figures.get(k) for k in kept},
        "learn": verdict["verdict"]["learn"],
        "advice": verdict["verdict"]["advice"],
    }
    named = dict(zip(("headroom", "headroom_text", "headroom_page"), FILES, strict=True))
    document["artefacts"] |= {k: _present(context, v) for k, v in named.items()}
    return document


def paused_document(context: Context, payloads: list[dict[str, Any]]) -> dict[str, Any]:
    """The document of a run that waits: for answers (exit 3), for a larger budget (4), for something to be mended (2, 5, 6)."""
    stop = next((p for p in payloads if "stop" in p), None)
    if stop is None:
        document = _base(context, "paused", "needs_customer", 3)
        document["questions"] = [q for p in payloads for q in p["questions"]]
        return document
    error = stop["error"]
    reason = "budget" if stop["stop"] == "budget" else f"{error['kind']}_failed"
    document = _base(context, "paused" if stop["stop"] == "budget" else "failed", reason, error["exit_code"])
    document["state"] = stop["at"]
    document["error"] = {"kind": error["kind"], "message": error["message"]}
    return document


def stopped_document(context: Context) -> dict[str, Any]:
    return _base(context, "interrupted", "interrupted", SIGNALLED)


def error_document(error: BaseException, workdir: Any = None) -> dict[str, Any]:
    """The document of a run that never got as far as a ledger."""
    known = isinstance(error, RehearError)
    code = error.exit_code if isinstance(error, RehearError) else 1
    kind = error.kind if isinstance(error, RehearError) else "internal"
    return {
        "schema_version": SCHEMA_VERSION,
        "status": "failed",
        "termination_reason": "budget" if kind == "budget" else f"{kind}_failed",
        "exit_code": code,
        "workdir": None if workdir is None else os.fspath(workdir),
        "state": None,
        "budget": None,
        "assumptions": [],
        "questions": [],
        "result": None,
        "artefacts": dict.fromkeys(ARTEFACTS),
        "ledger": None,
        "error": {"kind": kind, "message": str(error) if known else f"{type(error).__name__}: {error}"},
    }


def _base(context: Context, status: str, reason: str, code: int) -> dict[str, Any]:
    ledger = context.ledger
    return {
        "schema_version": SCHEMA_VERSION,
        "status": status,
        "termination_reason": reason,
        "exit_code": code,
        "workdir": str(context.workdir),
        "state": context.state or _last_state(context),
        "budget": context.session.budget.to_json(),
        "assumptions": context.session.assumptions(),
        "questions": [],
        "result": None,
        "artefacts": {k: _present(context, v) for k, v in ARTEFACTS.items()},
        "ledger": {"records": ledger.count, "head": ledger.head},
        "error": None,
    }


def _last_state(context: Context) -> str | None:
    return next((r.state for r in reversed(context.ledger.records()) if r.state), None)


def _present(context: Context, name: str) -> str | None:
    path = context.workdir / name
    return str(path) if name and path.exists() else None


def _result(result: dict[str, Any]) -> dict[str, Any]:
    comparison, selection = result.get("comparison"), result.get("selection")
    mining, retention = result.get("mining"), result.get("retention")
    return {
        "selected": None if selection is None else selection["selected"],
        "metric": result["metric"],
        "test": None
        if comparison is None
        else {k: comparison[k] for k in ("seed", "candidate", "error_reduction", "interval", "blocks", "verdict")},
        "retention": None if retention is None else {k: retention[k] for k in ("seed", "candidate")},
        "oracle": None if mining is None else mining["oracle"],
    }
