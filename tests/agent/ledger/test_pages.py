from pathlib import Path

from agent.brief import Brief
from agent.ledger.chain import Ledger, read_ledger
from agent.ledger.pages import STAMP, render, render_pages
from agent.session import Session


def test_pages_are_a_function_of_the_records(tmp_path: Path) -> None:
    brief = Brief.build({"name": "x", "data": {"train": "a.jsonl"}, "budget": {"cpu_minutes": 3}})
    with Session.open(tmp_path / "w", brief) as session:
        session.assume_defaults()
        session.ledger.append("plan", session.plan_payload([{"id": "a", "title": "Begin", "does": "a"}]))
        session.budget.reserve("r-1", 2, "baseline", state="baseline")
        session.ledger.append(
            "decision", {"what": "prompt", "chosen": "", "because": "lowest dev wer"}, state="baseline"
        )
        session.render_pages()
    records, _ = read_ledger(tmp_path / "w")
    for name in ("plan.md", "progress.md"):
        there = (tmp_path / "w" / name).read_text()
        assert there == render(name, records) == render(name, list(records))
        stamp = STAMP.search(there)
        assert stamp is not None and stamp[2] == str(len(records)) and stamp[3] == records[-1].hash
    plan, progress = (render(n, records) for n in ("plan.md", "progress.md"))
    assert "| retention | none |" in plan and "1. Begin (a: a)" in plan
    assert "lowest dev wer" in progress and "| baseline | cpu_minutes | 2 | open | - |" in progress


def test_an_empty_ledger_has_pages_too(tmp_path: Path) -> None:
    render_pages(tmp_path, [])
    assert "No plan is on record yet" in (tmp_path / "plan.md").read_text()


def test_text_from_outside_cannot_act(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path)
    nasty = "| end | <script>alert(1)</script>\n# heading [x](http://evil) `code`"
    book.append("note", {"text": nasty})
    book.append("decision", {"what": nasty, "chosen": {"a": nasty}, "because": nasty})
    page = render("progress.md", book.records())
    assert "<script>" not in page and "\n# heading" not in page and "[x](" not in page
    rows = [line for line in page.splitlines() if "end" in line and line.startswith("|")]
    assert rows and all(line.replace("\\|", "").count("|") == 5 for line in rows)
