"""The table of the skill's folder names nothing that does not exist: no state, gate, rule, question, decision or test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.brief import QUESTION_IDS
from agent.driver import load
from agent.gates import GATES
from agent.ledger.audit import RULES

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "skills/nemotron-transcribe-rl/references/sentence-by-sentence.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "held by" not in line
]
SECTIONS = ("Purpose", *(f"{n} " for n in range(1, 7)))


def known(kind: str, name: str) -> bool:
    if kind == "state":
        return name in {s.id for s in load().procedure.states}
    if kind == "decision":
        steps = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "agent").rglob("*.py"))
        return f'"{name}"' in steps
    if kind == "file":
        return (TABLE.parent.parent / name).is_file()
    return name in {"gate": GATES, "rule": RULES, "question": QUESTION_IDS}[kind]


def test_every_section_of_the_skill_is_in_the_table() -> None:
    headings = re.findall(r"^## (.+)$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) == len(SECTIONS) and all(h.startswith(s) for h, s in zip(headings, SECTIONS))
    assert len(ROWS) > 70


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_what_a_row_names_exists(row: list[str]) -> None:
    assert len(row) == 3, row
    held = re.findall(r"(state|gate|rule|question|decision|file) `([^`]+)`", row[1])
    assert held and all(known(kind, name) for kind, name in held), row[1]
    shown = re.findall(r"`([^`]+)::([^`]+)`", row[2])
    assert shown
    for path, name in shown:
        assert re.search(rf"^\s*def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)
