import json

import pytest

from agent.events import EVENTS, Finished, LedgerWritten, Measured, Notice, Progress, Question, StateEntered, from_json

SAMPLES = [
    StateEntered("train", "Train", 7, 11),
    Progress("decoding", 3, 10, eta_s=4.5),
    Progress("decoding", 0, 10),
    Measured("dev", 0.25, {"update": 10}),
    Measured("dev", None),
    Question("budget", "How much?", {"type": "object"}, "a limit"),
    Notice("warn", "no retention set"),
    LedgerWritten(3, "note", None, "a" * 64),
    Finished({"exit_code": 0, "questions": []}),
]


@pytest.mark.parametrize("event", SAMPLES, ids=lambda e: e.event)
def test_events_survive_json(event: object) -> None:
    row = json.loads(json.dumps(event.to_json()))  # type: ignore[attr-defined]
    assert row["event"] in EVENTS
    assert from_json(row) == event


def test_every_event_has_a_name_of_its_own_and_a_sample() -> None:
    assert {type(e) for e in SAMPLES} == set(EVENTS.values())
    assert all(EVENTS[name].event == name for name in EVENTS)
