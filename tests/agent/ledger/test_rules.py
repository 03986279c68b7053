"""Rules on ledgers of a few records, case by case; whole work directories are in tests/cheats."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agent.contract import SELECTION_RULE
from agent.ledger.audit import audit
from agent.ledger.chain import Ledger, digest

SHA = "a" * 64
CONTRACT: dict[str, Any] = {
    "selection": {"rule": SELECTION_RULE, "metric": "wer", "split": "dev", "retention_limit": 0.01},
    "seed_model": {"digest": "0" * 64},
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path)
    (tmp_path / "data").mkdir()
    return book


def found(ledger: Ledger, *rules: str) -> list[str]:
    ledger.close()
    return audit(ledger.path.parent, only=set(rules)).rules


# F48: dev {base 0.20, s10 0.15, s20 NaN, s30 0.12, s40 missing}, retention {0.10, 0.10, -, 0.18, -}, limit +0.01
F48 = [
    {"update": "seed", "dev": 0.20, "retention": 0.10, "digest": "0" * 64, "eligible": True, "why": ""},
    {"update": 10, "dev": 0.15, "retention": 0.10, "digest": "1" * 64, "eligible": True, "why": ""},
    {"update": 20, "dev": None, "retention": None, "digest": "2" * 64, "eligible": False, "why": "dev wer is missing"},
    {"update": 30, "dev": 0.12, "retention": 0.18, "digest": "3" * 64, "eligible": False, "why": "beyond the limit"},
    {"update": 40, "dev": None, "retention": None, "digest": "4" * 64, "eligible": False, "why": "dev wer is missing"},
]


def selected(ledger: Ledger, chosen: Any, candidates: list[dict[str, Any]], retention: bool = True) -> list[str]:
    row = {"id": "r", "split": "retention" if retention else "dev"}
    (ledger.path.parent / "data/membership.jsonl").write_text(json.dumps(row) + "\n")
    ledger.append("freeze", {"contract_sha256": digest(CONTRACT), "contract": CONTRACT})
    details = {"candidates": candidates, "run_id": "run1"}
    ledger.append("decision", {"what": "select", "chosen": chosen, "because": "", "details": details})
    return found(ledger, "select-rule")


@pytest.mark.parametrize(
    "chosen, right", [(10, True), (30, False), ("seed", False), (20, False), (40, False), (50, False)]
)
def test_the_rule_of_selection_on_the_field_case(ledger: Ledger, chosen: Any, right: bool) -> None:
    assert selected(ledger, chosen, F48) == ([] if right else ["select-rule"])


def test_when_none_passes_the_seed_stays(ledger: Ledger) -> None:
    assert selected(ledger, "seed", [F48[0], *F48[2:]]) == []


def test_a_tie_goes_to_the_earlier_update(ledger: Ledger) -> None:
    tie = {**F48[1], "update": 12}
    assert selected(ledger, 12, [F48[0], F48[1], tie]) == ["select-rule"]


def test_without_a_retention_set_dev_alone_decides(ledger: Ledger) -> None:
    told = [{**c, "eligible": c["dev"] is not None} for c in F48]
    assert selected(ledger, 30, told, retention=False) == []


def launched(
    ledger: Ledger, lines: list[dict[str, Any]], launches: list[dict[str, Any]], ends: list[dict[str, Any]]
) -> list[str]:
    """run1 of five updates: its launches and ends in order, its metrics as given."""
    folder = ledger.path.parent / "runs/run1"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sha = hashlib.sha256((folder / "metrics.jsonl").read_bytes()).hexdigest()
    register = {"run_id": "run1", "preset": "p", "config_sha256": SHA, "updates": 5, "random_seed": 0, "metric": "wer"}
    ledger.append("register", {**register, "split": "dev", "retention_limit": 0.01, "hypothesis": "h"})
    for number, launch in enumerate(launches):
        ledger.append("launch", {"run_id": "run1", "reservation": "r", **launch})
        if number < len(ends):
            end = {"run_id": "run1", "updates": 5, "checkpoints": [], "trained_sha256": None, "metrics_sha256": sha}
            ledger.append("run_end", {**end, "attempt": launch["attempt"], **ends[number]})
    return found(ledger, "run-attempts", "run-metrics")


def line(update: int, attempt: int = 1) -> dict[str, Any]:
    return {"run": "run1", "attempt": attempt, "update": update}


RESUME = {"event": "resume", "attempt": 2, "from_update": 2, "lost": [3]}
# F46: killed after update 3 and before its checkpoint, resumed from update 2
KILLED = [line(1), line(2), line(3), RESUME, line(3, 2), line(4, 2), line(5, 2)]
TWO = [{"attempt": 1, "from_update": 0}, {"attempt": 2, "from_update": 2}]


@pytest.mark.parametrize(
    "lines, launches, ends, rules",
    [
        (KILLED, TWO, ["lost", "finished"], []),
        (KILLED[:3], TWO[:1], [], []),
        (KILLED, TWO[:1], ["finished"], ["run-attempts"]),
        ([line(u) for u in (1, 2, 3)] + [line(u, 2) for u in (3, 4, 5)], TWO, ["lost", "finished"], []),
        ([line(1), line(2), line(3), line(3), line(4), line(5)], TWO[:1], ["finished"], ["run-metrics"]),
        ([line(1), line(2), RESUME, line(4, 2), line(5, 2)], TWO, ["lost", "finished"], ["run-metrics"]),
        ([line(u) for u in range(1, 7)], TWO[:1], ["finished"], ["run-metrics"]),
        ([line(2), line(3)], TWO[:1], ["stopped"], ["run-attempts", "run-metrics"]),
        (KILLED, [TWO[0], {"attempt": 3, "from_update": 2}], ["lost", "finished"], ["run-attempts"]),
        (KILLED, [TWO[0], {"attempt": 2, "from_update": 0}], ["lost", "finished"], ["run-attempts"]),
        ([line(1)], [{"attempt": 1, "from_update": 3}], ["stopped"], ["run-attempts"]),
    ],
    ids=[
        "killed and resumed", "running", "a hidden attempt", "attempts without an event", "an update twice", "an update skipped",
        "an update too many", "a beginning cut off", "an attempt skipped", "a resume told as a fresh start", "a first attempt from nowhere",
    ],
)  # fmt: skip
def test_attempts_and_updates(
    ledger: Ledger, lines: list[dict[str, Any]], launches: list[dict[str, Any]], ends: list[str], rules: list[str]
) -> None:
    assert launched(ledger, lines, launches, [{"reason": reason} for reason in ends]) == rules


MONEY = [
    ([("reserve", "a", 6), ("settle", "a", 2), ("reserve", "b", 8)], []),
    ([("reserve", "a", 6), ("reserve", "b", 6)], ["budget-cap"]),
    ([("reserve", "a", 6), ("settle", "a", 12)], ["budget-cap"]),
    ([("settle", "a", 1), ("reserve", "a", 6)], ["budget-settled"]),
    ([("reserve", "a", 6), ("settle", "a", 1), ("settle", "a", 1)], ["budget-settled"]),
    ([("reserve", "a", 1), ("reserve", "a", 1)], ["budget-reserved"]),
]


@pytest.mark.parametrize("moves, rules", MONEY)
def test_money(ledger: Ledger, moves: list[tuple[str, str, float]], rules: list[str]) -> None:
    brief = {"name": "x", "budget": {"cpu_minutes": 10}}
    plan = {"brief_sha256": SHA, "brief": brief, "steps": [], "versions": {}, "source": {}, "machine": {}}
    ledger.append("plan", plan)
    for kind, name, amount in moves:
        more = {"for": "x"} if kind == "reserve" else {"measured_by": "clock"}
        ledger.append(kind, {"reservation": name, "unit": "cpu_minutes", "amount": amount, **more})
    assert found(ledger, "budget-reserved", "budget-settled", "budget-cap") == rules
