"""Named checks that must hold before a state is left. A gate that does not hold raises CheckError (exit 5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from tools.errors import CheckError
from tools.files import file_sha256

if TYPE_CHECKING:
    from agent.act import Context


def brief_complete(context: Context) -> None:
    missing = [q.id for q in context.session.missing() if q.default is None]
    _hold(not missing, f"the brief still lacks {', '.join(missing)}")


def plan_recorded(context: Context) -> None:
    _hold(context.last("plan") is not None, "no plan is on record")
    _hold((context.workdir / "plan.md").is_file(), "plan.md was not written")


def membership_recorded(context: Context) -> None:
    check = context.must("data_check").payload
    digest = _sha256(context, "data/membership.jsonl")
    _hold(digest == check["membership_sha256"], "data/membership.jsonl is not the membership on record: it was changed")


def splits_disjoint(context: Context) -> None:
    seen: dict[tuple[str, str], str] = {}
    for line in (context.workdir / "data/membership.jsonl").read_text(encoding="utf-8").split("\n"):
        row = json.loads(line) if line else {}
        for name in ("id", "audio_sha256", "speaker"):
            if not row.get(name):
                continue
            first = seen.setdefault((name, row[name]), row["split"])
            same = first == row["split"] or (name == "speaker" and "retention" in (first, row["split"]))
            _hold(same, f"{name} {row[name]} is in both {first} and {row['split']}")


def contract_frozen(context: Context) -> None:
    frozen = context.must("freeze").payload["contract_sha256"]
    from agent.contract import contract_digest, read_contract

    now = contract_digest(read_contract(context.workdir))
    _hold(
        now == frozen, "contract.json is not the contract that was frozen: put it back, or start a new work directory"
    )


def test_sealed(context: Context) -> None:
    opened = [r.seq for r in context.ledger.records() if r.kind == "eval" and r.payload["split"] == "test"]
    _hold(not opened, f"the test split was evaluated before it was opened (records {opened})")


def reward_ordered(context: Context) -> None:
    record = context.last("decision", what="reward")
    _hold(record is not None and record.payload["details"]["ok"], "the reward does not order bad outputs as it must")


def run_registered(context: Context) -> None:
    _hold(context.last("register") is not None, "no run is registered")


def run_ended(context: Context) -> None:
    run = context.must("register").payload["run_id"]
    _hold(context.last("run_end", run_id=run) is not None, f"run {run} has no end on record")


def selection_recorded(context: Context) -> None:
    _hold(context.last("decision", what="select") is not None, "no selection is on record")


def test_opened_once(context: Context) -> None:
    opened = [r.seq for r in context.ledger.records() if r.kind == "test_open"]
    _hold(
        len(opened) == 1, f"the test must be opened exactly once, it was opened {len(opened)} times (records {opened})"
    )


def report_written(context: Context) -> None:
    for name in ("report/result.json", "report/report.html"):
        _hold((context.workdir / name).is_file(), f"{name} was not written")


GATES: dict[str, Callable[[Context], None]] = {
    gate.__name__: gate
    for gate in (
        brief_complete,
        plan_recorded,
        membership_recorded,
        splits_disjoint,
        contract_frozen,
        test_sealed,
        reward_ordered,
        run_registered,
        run_ended,
        selection_recorded,
        test_opened_once,
        report_written,
    )
}


def _hold(condition: bool, text: str) -> None:
    if not condition:
        raise CheckError(f"gate failed: {text}")


def _sha256(context: Context, name: str) -> str:
    return file_sha256(context.workdir / name)
