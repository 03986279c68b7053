"""Renderings: plan.md, progress.md from the ledger, result.json from ledger and files, the report from result.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation, near
from agent.ledger.pages import PAGES, RENDERER, STAMP, render
from tools.errors import RehearError

RESULT = "report/result.json"
PLACES = ("commands", "artefacts")  # depend on where the work directory stands


def pages(e: Evidence) -> Iterator[Finding]:
    """plan.md and progress.md are what the ledger renders to, at the record that their last line names."""
    committed = max((r.records or 0 for r in e.revisions), default=0)
    for name in PAGES:
        path = e.path(name)
        if not path.is_file():
            if committed:
                yield Violation(f"{name} is missing", files=((name, None),))
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        stamp = STAMP.search(text)
        if stamp is None or int(stamp[1]) > RENDERER:
            yield Violation(f"{name} does not carry the mark of its renderer", files=((name, None),))
        elif int(stamp[1]) < RENDERER:
            yield NotChecked(f"{name} was rendered by version {stamp[1]}, this is version {RENDERER}")
        elif not committed <= int(stamp[2]) <= len(e.records):
            yield Violation(
                f"{name} shows {stamp[2]} records, {committed} were committed with it", files=((name, None),)
            )
        else:
            yield from _same(name, text, render(name, e.records[: int(stamp[2])]))


def _same(name: str, there: str, due: str) -> Iterator[Finding]:
    if there == due:
        return
    old, new = due.splitlines(), there.splitlines()
    line = next((i for i, (a, b) in enumerate(zip(old, new), start=1) if a != b), min(len(old), len(new)) + 1)
    yield Violation(f"{name} was edited: line {line} is not what the ledger renders to", files=((name, line),))


def rebuilt(e: Evidence) -> Iterator[Finding]:
    """result.json is what ledger and files give again, figure by figure."""
    if e.result is None:
        if e.finished:
            yield Violation(f"{RESULT} is missing", files=((RESULT, None),))
        return
    if not e.path("data/clips.jsonl").is_file():
        yield NotChecked(f"data/clips.jsonl is not here: {RESULT} was compared figure by figure, not made again")
        return
    if e.profile is None:
        yield NotChecked(f"the normaliser here is another version than the contract's: {RESULT} was not made again")
        return
    from agent.ledger.replica import result_again

    again = result_again(e)
    found = list(_differences(e.result, again, ""))
    if found and e.report_code is not None:
        text = f"{RESULT} was made by {e.report_code[:20]}; this code would write {found[0][0]} otherwise"
        yield NotChecked(text)
        return
    for where, told, due in found:
        yield Violation(f"{RESULT}: {where} is {_short(told)}, made again it is {_short(due)}", files=((RESULT, None),))


def _differences(told: Any, due: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(told, dict) and isinstance(due, dict):
        for key in sorted({*told, *due}):
            if where or key not in PLACES:
                yield from _differences(told.get(key), due.get(key), f"{where}.{key}" if where else key)
    elif isinstance(told, list) and isinstance(due, list) and len(told) == len(due):
        for i, (a, b) in enumerate(zip(told, due)):
            yield from _differences(a, b, f"{where}[{i}]")
    elif not _equal(told, due):
        yield where, told, due


def _equal(told: Any, due: Any) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (told, due))
    return near(told, due, 1e-9) if numbers else bool(told == due)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def report(e: Evidence) -> Iterator[Finding]:
    """Page, figures and model card are what result.json renders to."""
    if e.result is None:
        return
    from tools.report import check_rendering

    try:
        found = check_rendering(e.workdir)
    except RehearError as err:
        yield Violation(f"the report cannot be rendered: {err}", files=((RESULT, None),))
        return
    made = {n for r in e.of("outcome") for n in r.payload["result"].get("files") or {} if n.startswith("report/")}
    if found.differing and e.report_code is not None:
        yield NotChecked(
            f"{', '.join(found.differing)}: rendered by {e.report_code[:20]}, another version of this code"
        )
        found.differing.clear()
    for name in found.differing:
        yield Violation(f"report/{name} is not what {RESULT} renders to", files=((f"report/{name}", None),))
    for name in found.missing:
        if f"report/{name}" in made or e.finished:
            yield Violation(f"report/{name} is missing", files=((f"report/{name}", None),))
    for name, why in found.not_checked:
        yield NotChecked(f"report/{name}: {why}")


RULES = (
    Rule("pages-rendered", "plan.md and progress.md are what the ledger renders to.", pages),
    Rule("report-rebuilt", "report/result.json is what ledger and stored evaluations give again.", rebuilt),
    Rule("report-rendered", "The report's page, figures and model card are what result.json renders to.", report),
)
