from pathlib import Path

import pytest

from agent.brief import Brief
from agent.ledger.audit import RULES, audit
from agent.ledger.chain import Ledger
from agent.ledger.rules import ALL
from agent.session import Session
from tools.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]


def test_rules_have_ids_and_sentences_of_their_own_and_are_documented() -> None:
    assert len(RULES) == len(ALL) >= 50
    page = (ROOT / "docs" / "audit.md").read_text()
    for rule in ALL:
        assert f"| `{rule.id}` | {rule.text} |" in page
        assert rule.text.endswith(".") and rule.check.__module__.startswith("agent.ledger.rules.")


def test_a_work_directory_that_has_just_begun_is_clean(tmp_path: Path) -> None:
    brief = Brief.build({"name": "x", "data": {"train": "a.jsonl"}})
    with Session.open(tmp_path / "w", brief) as session:
        session.commit_state("intake")
    report = audit(tmp_path / "w")
    assert report.ok, report.to_text()
    assert report.to_json()["violations"] == []
    assert "clean:" in report.to_text()


def test_an_empty_ledger_is_clean_and_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a work directory"):
        audit(tmp_path)
    Ledger.open(tmp_path).close()
    assert audit(tmp_path).ok


@pytest.mark.parametrize("head", ["", "abc", "a" * 64, "a" * 63 + ":5", "g" * 64 + ":1"])
def test_a_head_that_is_none_is_refused(tmp_path: Path, head: str) -> None:
    Ledger.open(tmp_path).close()
    with pytest.raises(UsageError, match="HASH:COUNT"):
        audit(tmp_path, head)


def test_every_broken_line_is_listed_and_the_rest_still_audited(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    for n in range(6):
        ledger.append("note", {"text": f"number {n}"})
    ledger.append("settle", {"reservation": "never", "unit": "cpu_minutes", "amount": 1, "measured_by": "clock"})
    ledger.close()
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"number 1", b"number 9")
    lines[4] = b"{}\n"
    ledger.path.write_bytes(b"".join(lines))
    report = audit(tmp_path)
    chain = [v for v in report.violations if v["rule"] == "ledger-chain"]
    assert {f["line"] for v in chain for f in v["files"]} >= {2, 5}
    assert "budget-settled" in report.rules
    assert "VIOLATED  ledger-chain: ledger line 2: its hash does not cover its content" in report.to_text()


def test_evidence_that_no_run_writes_is_a_violation_and_never_a_crash(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.append("decision", {"what": "select", "chosen": 3, "because": "", "details": {"candidates": [{}]}})
    ledger.append("decision", {"what": "prompt", "chosen": "", "because": "", "details": {"evals": 7}})
    ledger.close()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/membership.jsonl").write_text("[]\nnot json\n{}\n")
    (tmp_path / "report").mkdir()
    (tmp_path / "report/result.json").write_text('{"table": 3}')
    report = audit(tmp_path)
    assert not report.ok and {"select-complete", "data-rows", "report-table"} <= set(report.rules)


def test_a_rule_that_finds_very_much_is_cut_short(tmp_path: Path) -> None:
    Ledger.open(tmp_path).close()
    for n in range(60):
        (tmp_path / "evals" / f"e{n:02d}").mkdir(parents=True)
    found = [v for v in audit(tmp_path).violations if v["rule"] == "eval-hidden"]
    assert len(found) == 21 and found[-1]["text"] == "and 40 more of this kind"
