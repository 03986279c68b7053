"""plan.md and progress.md: renderings of the ledger and of nothing else, never edited.

The same records give the same bytes. The last line of a page says which renderer made it and from how many records, so
that an audit can render it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agent.disk import write_atomic
from agent.ledger.chain import GENESIS, Record

RENDERER = 1
PAGES = ("plan.md", "progress.md")
STAMP = re.compile(r"^<!-- rehear pages (\d+), (\d+) records, head ([0-9a-f]{64}) -->$", re.MULTILINE)


def render_pages(workdir: Path, records: Sequence[Record]) -> None:
    """Write both pages."""
    for name in PAGES:
        write_atomic(workdir / name, render(name, records))


def render(name: str, records: Sequence[Record]) -> str:
    """One page as text, from the records alone."""
    parts = {"plan.md": _plan, "progress.md": _progress}[name](records)
    head = records[-1].hash if records else GENESIS
    stamp = f"<!-- rehear pages {RENDERER}, {len(records)} records, head {head} -->"
    return "\n".join([*parts, stamp]) + "\n"


def _of(records: Iterable[Record], kind: str) -> list[Record]:
    return [r for r in records if r.kind == kind]


def _text(value: Any) -> str:
    """External text on one line, with nothing that Markdown or HTML would act on."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(text.split())
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", text)


def _figure(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "-" if value is None else _text(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    body = [f"| {' | '.join(_figure(cell) for cell in row)} |" for row in rows]
    if not body:
        return ["none", ""]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *body, ""]


def _plan(records: Sequence[Record]) -> list[str]:
    plans = _of(records, "plan")
    if not plans:
        return ["# Plan", "", "No plan is on record yet.", ""]
    plan = plans[-1].payload
    brief = plan["brief"]
    return [
        f"# Plan: {_text(brief.get('name', ''))}",
        "",
        "Rendered from the ledger; edits here change nothing and are found by the audit.",
        "",
        "## What was asked",
        "",
        *_table(("key", "value"), sorted(brief.items())),
        "## Assumptions",
        "",
        *_assumptions(records),
        "## Steps",
        "",
        *(f"{i}. {_text(s['title'])} ({_text(s['id'])}: {_text(s['does'])})" for i, s in enumerate(plan["steps"], 1)),
        "",
        "## Data",
        "",
        *_data(records),
        "## Contract",
        "",
        *_contract(records),
        "## Runs announced before they started",
        "",
        *_registrations(records),
        "## Code and machine",
        "",
        *_table(("what", "value"), sorted({**plan["versions"], **plan["source"], **plan["machine"]}.items())),
    ]


def _assumptions(records: Sequence[Record]) -> list[str]:
    latest = {r.payload["id"]: r for r in _of(records, "answer")}
    rows = [
        (r.payload["id"], r.payload["value"], r.payload["why"], r.seq) for r in latest.values() if r.payload["default"]
    ]
    return _table(("question", "assumed", "why", "record"), rows)


def _data(records: Sequence[Record]) -> list[str]:
    checks = _of(records, "data_check")
    if not checks:
        return ["not checked yet", ""]
    data = checks[-1].payload
    rows = [(name, s["rows"], s["speakers"], s["seconds"]) for name, s in sorted(data["splits"].items())]
    found = [(f["severity"], f["check"], f["rows"], f["text"]) for f in data["findings"]]
    return [
        f"{data['rows_in']} rows read, {data['kept']} kept, {data['quarantined']} set aside (record {checks[-1].seq}).",
        "",
        *_table(("split", "rows", "speakers", "seconds"), rows),
        *_table(("severity", "check", "rows", "finding"), found),
    ]


def _contract(records: Sequence[Record]) -> list[str]:
    frozen = _of(records, "freeze")
    if not frozen:
        return ["not frozen yet", ""]
    contract = frozen[-1].payload["contract"]
    return [
        f"Frozen in record {frozen[-1].seq}, sha256 {frozen[-1].payload['contract_sha256']}.",
        "",
        *_table(("key", "value"), sorted(contract.items())),
    ]


def _registrations(records: Sequence[Record]) -> list[str]:
    head = ("run", "preset", "updates", "seed", "metric", "split", "hypothesis", "record")
    keys = ("run_id", "preset", "updates", "random_seed", "metric", "split", "hypothesis")
    return _table(head, [(*(r.payload[k] for k in keys), r.seq) for r in _of(records, "register")])


def _progress(records: Sequence[Record]) -> list[str]:
    return [
        "# Progress",
        "",
        "Rendered from the ledger; edits here change nothing and are found by the audit.",
        "",
        "## States",
        "",
        *_table(("state", "first record", "last record", "from", "to"), _states(records)),
        "## Evaluations",
        "",
        *_evaluations(records),
        "## Decisions",
        "",
        *_decisions(records),
        "## Runs",
        "",
        *_runs(records),
        "## Claims",
        "",
        *_claims(records),
        "## Budget",
        "",
        *_budget(records),
        "## Notes, recoveries, overrides and failed effects",
        "",
        *_table(("record", "time", "kind", "text"), _events(records)),
    ]


def _states(records: Sequence[Record]) -> list[tuple[str, int, int, str, str]]:
    spans: list[list[Record]] = []
    for record in records:
        if record.state is None:
            continue
        if spans and spans[-1][0].state == record.state:
            spans[-1].append(record)
        else:
            spans.append([record])
    return [(s[0].state or "", s[0].seq, s[-1].seq, s[0].ts, s[-1].ts) for s in spans]


def _evaluations(records: Sequence[Record]) -> list[str]:
    rows = []
    for r in _of(records, "eval"):
        p, scores, model = r.payload, r.payload["scores"], r.payload["model"]
        who = "seed" if model["kind"] == "seed" else f"{model['run']} update {model['update']}"
        counts = [scores.get(k, 0) for k in ("insertions", "deletions", "substitutions", "reference_units")]
        rows.append((r.seq, p["eval_id"], p["split"], who, p["rows"], scores["wer"], scores["cer"], *counts))
    head = ("record", "evaluation", "split", "model", "rows", "WER", "CER", "ins", "del", "sub", "reference units")
    return _table(head, rows)


def _decisions(records: Sequence[Record]) -> list[str]:
    keys = ("what", "chosen", "because")
    return _table(("record", *keys), [(r.seq, *(r.payload[k] for k in keys)) for r in _of(records, "decision")])


def _claims(records: Sequence[Record]) -> list[str]:
    rows = [
        (r.seq, r.payload["text"], r.payload["value"], ", ".join(r.payload["evals"])) for r in _of(records, "claim")
    ]
    return _table(("record", "claim", "value", "evaluations"), rows)


def _runs(records: Sequence[Record]) -> list[str]:
    ends = {(r.payload["run_id"], r.payload["attempt"]): r for r in _of(records, "run_end")}
    rows = []
    for r in _of(records, "launch"):
        end = ends.get((r.payload["run_id"], r.payload["attempt"]))
        how = (
            (end.payload["reason"], end.payload["updates"], len(end.payload["checkpoints"]))
            if end
            else ("no end", "-", "-")
        )
        rows.append((r.seq, r.payload["run_id"], r.payload["attempt"], r.payload["from_update"], *how))
    return _table(("record", "run", "attempt", "from update", "end", "updates", "checkpoints"), rows)


def _budget(records: Sequence[Record]) -> list[str]:
    settled = {r.payload["reservation"]: r.payload for r in _of(records, "settle")}
    rows = []
    for r in _of(records, "reserve"):
        p, s = r.payload, settled.get(r.payload["reservation"])
        rows.append(
            (r.seq, p["for"], p["unit"], p["amount"], s["amount"] if s else "open", s["measured_by"] if s else "-")
        )
    return _table(("record", "for", "unit", "reserved", "spent", "measured by"), rows)


def _events(records: Sequence[Record]) -> list[tuple[int, str, str, str]]:
    out = []
    for r in records:
        p = r.payload
        if r.kind in ("note", "recovery"):
            out.append((r.seq, r.ts, r.kind, p.get("text") or p.get("what", "")))
        elif r.kind == "override":
            out.append((r.seq, r.ts, r.kind, f"{p['what']}: {p['why']}"))
        elif r.kind == "outcome" and not p["ok"]:
            out.append((r.seq, r.ts, "failed", p["effect"]))
    return out
