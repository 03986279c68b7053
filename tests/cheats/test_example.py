"""The auditor's example that is handed out with the code: clean as it is, and it shows what was changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.ledger.audit import audit
from agent.replay import replay

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "workdirs" / "example"
HEAD = "cd16d53bea014bb7a525234edab0ea586804623a80d6c4b1068ce7116bcf126a:74"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLE, tmp_path / "example")


def test_the_example_is_clean_and_what_cannot_be_seen_in_it_is_said() -> None:
    report = audit(EXAMPLE, expect_head=HEAD)
    assert report.ok, report.to_text()
    assert {"ledger-git", "run-checkpoints"} <= {n["rule"] for n in report.to_json()["not_checked"]}
    assert HEAD in (ROOT / "workdirs" / "README.md").read_text(encoding="utf-8")


def test_it_names_nobodys_machine_and_is_small() -> None:
    files = [p for p in EXAMPLE.rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < 2_000_000
    for path in files:
        assert not any(word in path.read_bytes() for word in (b"/home/", b"/root/", b"/Users/", b"/tmp/")), path


def swap(path: str, old: str, new: str) -> Callable[[Path], None]:
    def change(workdir: Path) -> None:
        text = (workdir / path).read_text(encoding="utf-8")
        assert old in text
        (workdir / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    "change, rule",
    [
        (swap("ledger.jsonl", '"actor":"agent"', '"actor":"customer"'), "ledger-chain"),
        (swap("evals/seed-test/rows.jsonl", '"hyp": "', '"hyp": "well '), "eval-files"),
        (swap("report/result.json", '"termination_reason": "seed_wins"', '"termination_reason": "candidate_wins"'), ""),
        (swap("progress.md", "seed-test", "seed-tests"), "pages-rendered"),
        (swap("contract.json", '"limit": 40', '"limit": 80'), ""),
    ],
)
def test_a_changed_example_is_caught(example: Path, change: Callable[[Path], None], rule: str) -> None:
    change(example)
    report = audit(example, expect_head=HEAD)
    assert not report.ok and (not rule or rule in {v["rule"] for v in report.to_json()["violations"]}), report.to_text()


def test_it_can_be_played_back() -> None:
    events: list[object] = []
    assert replay(EXAMPLE, events.append, 0.0, lambda seconds: None) == len(events) > 74
