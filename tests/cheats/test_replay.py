"""A finished run played back from its ledger: the same states, figures and endings, in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.events import Event, LedgerWritten, Measured, Progress, StateEntered, from_json
from agent.ledger.chain import read_ledger
from agent.replay import LONGEST_PAUSE_S, replay
from tests.cheats.workdirs import copy
from tools.errors import CheckError, UsageError


def played(workdir: Path, speed: float = 0.0) -> tuple[list[Event], list[float]]:
    events: list[Event] = []
    pauses: list[float] = []
    assert replay(workdir, events.append, speed, pauses.append) == len(events)
    return events, pauses


def test_a_replay_tells_every_record_once_and_in_order(finished: Path) -> None:
    records, _ = read_ledger(finished)
    events, pauses = played(finished)
    written = [e for e in events if isinstance(e, LedgerWritten)]
    assert [(e.seq, e.kind, e.hash) for e in written] == [(r.seq, r.kind, r.hash) for r in records] and not pauses
    states = [e.state for e in events if isinstance(e, StateEntered)]
    assert states == list(dict.fromkeys(r.state for r in records if r.state)) and all(
        e.title and 0 < e.number <= e.total for e in events if isinstance(e, StateEntered)
    )
    wers = [e.value for e in events if isinstance(e, Measured) and "evaluation" in e.details]
    assert wers == [r.payload["scores"]["wer"] for r in records if r.kind == "eval"]
    assert [from_json(e.to_json()) for e in events] == events


def test_updates_come_before_the_evaluation_of_their_checkpoint(finished: Path) -> None:
    events, _ = played(finished)
    update = 0
    for event in events:
        if isinstance(event, Progress):
            assert event.done == update + 1 <= event.total
            update = int(event.done)
        elif isinstance(event, Measured) and isinstance(event.details.get("model"), int):
            assert event.details["model"] <= update or update == 0


def test_speed_divides_the_pauses_and_none_is_long(finished: Path) -> None:
    _, once = played(finished, 1.0)
    _, fast = played(finished, 1000.0)
    assert sum(fast) <= sum(once) and max(once) <= LONGEST_PAUSE_S
    with pytest.raises(UsageError, match="speed"):
        played(finished, -1.0)


def test_nothing_is_changed_and_a_broken_ledger_is_refused(finished: Path, tmp_path: Path) -> None:
    workdir = copy(finished, tmp_path / "w")
    before = {p: p.read_bytes() for p in workdir.rglob("*") if p.is_file()}
    played(workdir)
    assert {p: p.read_bytes() for p in workdir.rglob("*") if p.is_file()} == before
    ledger = workdir / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"wer":0.', b'"wer":1.', 1))
    with pytest.raises(CheckError):
        played(workdir)
    with pytest.raises(UsageError, match="not a work directory"):
        played(tmp_path)
