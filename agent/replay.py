"""Plays a work directory's ledger back as the events a face would have shown. Reads only.

The ledger gives states, figures, questions, decisions and records in their order; where a run's metrics.jsonl is still
there, its updates come before the evaluation of the checkpoint that they led to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from agent.events import Event, LedgerWritten, Measured, Notice, Progress, Question, StateEntered
from agent.ledger.chain import Record, read_ledger
from tools.errors import UsageError

LONGEST_PAUSE_S = 3.0


def replay_events(workdir: Path) -> Iterator[tuple[str, Event]]:
    """(time stamp, event) in order. Raises UsageError where there is no ledger, CheckError where it is broken."""
    records, _ = read_ledger(workdir)
    titles = _titles(records)
    state = None
    curves = _Curves(workdir)
    for record in records:
        if record.state is not None and record.state != state:
            state = record.state
            number = list(titles).index(state) + 1 if state in titles else 0
            yield record.ts, StateEntered(state, titles.get(state, ""), number, len(titles))
        for event in (*curves.before(record), *_told(record)):
            yield record.ts, event
        yield record.ts, LedgerWritten(record.seq, record.kind, record.state, record.hash)


def _titles(records: Sequence[Record]) -> dict[str, str]:
    plan = next((r for r in records if r.kind == "plan"), None)
    return {} if plan is None else {s["id"]: s["title"] for s in plan.payload["steps"]}


def _told(record: Record) -> Iterator[Event]:
    """What a record says to a person."""
    p = record.payload
    match record.kind:
        case "question":
            yield Question(p["id"], p["text"], p["schema"], p["why"])
        case "answer":
            yield Notice(
                "info", f"{p['id']}: {json.dumps(p['value'], ensure_ascii=False)} ({record.actor}: {p['why']})"
            )
        case "decision":
            yield Notice("info", f"{p['what']}: {p['chosen']} ({p['because']})")
        case "eval":
            who = p["model"]["update"] or p["model"]["kind"]
            yield Measured(
                p["split"], p["scores"]["wer"], {"evaluation": p["eval_id"], "model": who, "rows": p["rows"]}
            )
        case "reserve":
            yield Notice("info", f"reserved {p['amount']:.2f} {p['unit']} for {p['for']}")
        case "settle":
            yield Notice("info", f"spent {p['amount']:.2f} {p['unit']} ({p['measured_by']})")
        case "run_end":
            yield Notice("info", f"{p['run_id']} ended: {p['reason']} after {p['updates']} updates")
        case "note" | "recovery" | "override":
            yield Notice("info" if record.kind == "note" else "warn", p.get("text") or p["what"])
        case "claim":
            yield Notice("info", p["text"])


class _Curves:
    """The updates of each run, told once, up to the update that a record speaks of."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        self._left: dict[str, list[dict[str, float]]] = {}
        self._most: dict[str, int] = {}

    def before(self, record: Record) -> Iterator[Event]:
        p = record.payload
        if record.kind == "register":
            self._most[p["run_id"]] = p["updates"]
            self._left[p["run_id"]] = self._read(p["run_id"])
        run, update = None, 0
        if record.kind == "eval" and p["model"]["kind"] == "checkpoint":
            run, update = p["model"]["run"], p["model"]["update"]
        elif record.kind == "run_end":
            run, update = p["run_id"], p["updates"]
        left = self._left.get(run or "", [])
        while left and left[0]["update"] <= update:
            line = left.pop(0)
            yield Progress("training", line["update"], self._most[run or ""])
            yield Measured("reward", line.get("reward"), {"update": line["update"]})

    def _read(self, run: str) -> list[dict[str, float]]:
        path = self.workdir / "runs" / run / "metrics.jsonl"
        if not path.is_file():
            return []
        last: dict[float, dict[str, float]] = {}
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue  # a torn last line
            if "event" not in line and "update" in line:
                last[line["update"]] = line
        return [last[update] for update in sorted(last)]


def replay(workdir: Path, emit: Callable[[Event], None], speed: float, wait: Callable[[float], None]) -> int:
    """Plays all events into `emit` and returns how many; `speed` times as fast as they came, 0 for at once.

    No pause is longer than LONGEST_PAUSE_S. Raises UsageError for a negative speed.
    """
    if not speed >= 0:
        raise UsageError(f"The speed is {speed}: give 0 (at once) or how many times as fast as it was.")
    count, before = 0, None
    for stamp, event in replay_events(workdir):
        now = datetime.fromisoformat(stamp)
        if speed and before is not None:
            wait(min(max((now - before).total_seconds(), 0.0) / speed, LONGEST_PAUSE_S))
        before = now
        emit(event)
        count += 1
    return count
