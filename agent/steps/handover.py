"""handover: claims with their evidence, the report, and the ledger's head. Also the ending without training."""

from __future__ import annotations

import json
from typing import Any

from agent.act import Context
from agent.disk import write_atomic
from agent.result.build import build_result
from agent.steps.runs import selected_run
from tools.files import file_sha256


def run(context: Context) -> str:
    draft = build_result(context)
    _claim(context, draft)
    publish(context, build_result(context))
    return "done"


def publish(context: Context, result: dict[str, Any]) -> None:
    """Writes result.json and everything rendered from it; their digests go on record."""
    from tools.report import render_all

    text = json.dumps(result, ensure_ascii=False, sort_keys=True, indent=1) + "\n"

    def do() -> dict[str, Any]:
        write_atomic(context.workdir / "report" / "result.json", text)
        written = [context.workdir / "report" / "result.json", *render_all(context.workdir).values()]
        export = context.workdir / "runs" / selected_run(context) / "export"
        if export.is_dir():
            write_atomic(export / "README.md", (context.workdir / "report" / "model_card.md").read_bytes())
        files = {p.relative_to(context.workdir).as_posix(): p for p in written if p.is_file()}
        return {"files": {name: file_sha256(p) for name, p in sorted(files.items())}}

    # The key does not depend on the text: after a kill in here the ledger has grown, and so has what the text cites.
    ending = {"contract": result["contract"]["digest"], "ending": result["termination_reason"]}
    context.effect("report", ending, do)
    context.decide("finish", result["termination_reason"], result["headline"])


def _claim(context: Context, result: dict[str, Any]) -> None:
    """The headline as a claim on record: its value, its interval, its evaluations and its registration."""
    if context.last("claim", id="headline") is not None:
        return
    compared = result["comparison"]
    registered = context.last("register", run_id=selected_run(context))
    context.record(
        "claim",
        {
            "id": "headline",
            "text": result["headline"],
            "value": None if compared is None else compared["error_reduction"],
            "evals": ["seed-test"] if compared is None else ["seed-test", "selected-test"],
            "register": None if registered is None else registered.seq,
            "interval": None if compared is None else compared["interval"],
            "details": {"termination_reason": result["termination_reason"]},
        },
    )
