"""Builds report/result.json a second time, from the ledger as it stood when the report was made, without writing."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from agent.brief import Brief
from agent.budget import Budget
from agent.ledger.chain import Ledger, utc_now
from agent.ledger.evidence import Evidence


def result_again(e: Evidence) -> dict[str, Any]:
    """The result as JSON would hold it. Raises what building it raises where a file it needs is gone."""
    from agent.act import Context
    from agent.result.build import build_result

    made_from = ((e.result or {}).get("provenance") or {}).get("ledger", {}).get("records", len(e.records))
    session = _ReadOnly(e, made_from)
    context = Context(session, SimpleNamespace(name=""), lambda event: None)  # type: ignore[arg-type]
    again: dict[str, Any] = json.loads(json.dumps(build_result(context), ensure_ascii=False))
    return again


class _ReadOnly:
    """What building a result asks of a session: work directory, brief, budget, assumptions, and a ledger to read."""

    def __init__(self, e: Evidence, records: int) -> None:
        self.workdir = e.workdir
        self.ledger = Ledger(e.workdir, skill=None, code=None, clock=utc_now)
        self.ledger._records = e.records[:records]
        answers = {r.payload["id"]: r.payload["value"] for r in self.ledger.records("answer")}
        self.brief = Brief.build(e.brief).answered(answers)

    @property
    def budget(self) -> Budget:
        return Budget(self.ledger, self.brief.budget)

    def assumptions(self) -> list[dict[str, Any]]:
        from agent.session import assumptions_of

        return assumptions_of(self.ledger)
