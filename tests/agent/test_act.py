import pytest

from agent.act import Context, Interrupted, act, effect_key
from agent.brief import Brief
from agent.driver import load
from agent.procedure import State
from agent.session import Session
from tools.errors import BudgetError, CheckError

BRIEF = {
    "name": "little",
    "task": "asr",
    "languages": ["en"],
    "seed_model": "embedded",
    "data": {"train": "train.json", "dev": "dev.json", "test": "test.json"},
    "budget": {"cpu_minutes": 5},
}


@pytest.fixture
def context(tmp_path):
    events = []
    with Session.open(tmp_path / "work", Brief.build(BRIEF, base=tmp_path)) as session:
        made = Context(session, load(), events.append)
        made.scratch["events"] = events
        yield made


def kinds(context):
    return [r.kind for r in context.ledger.records()]


def test_an_effect_is_announced_done_once_and_its_outcome_given_again(context):
    calls = []
    for _ in range(2):
        result = context.effect("write", {"name": "a"}, lambda: calls.append(1) or {"n": 1})
    assert result == {"n": 1} and calls == [1] and kinds(context) == ["intent", "outcome"]


def test_other_arguments_are_another_effect(context):
    context.effect("write", {"name": "a"}, lambda: {"n": 1})
    assert context.effect("write", {"name": "b"}, lambda: {"n": 2}) == {"n": 2}
    assert effect_key("write", {"name": "a"}) != effect_key("write", {"name": "b"})


def test_a_lost_attempt_is_told_and_taken_up_again(context):
    with pytest.raises(KeyError):
        context.effect("write", {"name": "a"}, lambda: {}["lost"])
    assert context.effect("write", {"name": "a"}, lambda: {"n": 1}) == {"n": 1}
    assert kinds(context) == ["intent", "recovery", "outcome"]


def test_a_decision_is_recorded_once(context):
    for _ in range(2):
        context.decide("colour", "blue", "it is the only one")
    assert kinds(context) == ["decision"]


def test_a_stop_is_heard_before_an_effect_and_in_progress(context):
    context.should_stop = lambda: True
    with pytest.raises(Interrupted):
        context.effect("write", {"name": "a"}, lambda: {"n": 1})
    with pytest.raises(Interrupted):
        context.progress("long work")(1, 2)


@pytest.mark.parametrize(
    ("error", "outcome"), [(BudgetError("too dear"), "stop_budget"), (CheckError("wrong"), "stop_failed")]
)
def test_an_error_of_the_customers_kind_becomes_a_stop_on_record(context, monkeypatch, error, outcome):
    from agent import steps

    class Step:
        @staticmethod
        def run(context):
            raise error

    monkeypatch.setattr(steps, "load", lambda verb: Step)
    result = act(context, State(id="mine", title="Mine", does="mine"))
    assert result["outcome"] == outcome and result["error"]["message"] == str(error)
    assert "note" in kinds(context)
    assert ("question" in kinds(context)) == (outcome == "stop_budget")


def test_a_larger_budget_answers_the_stop_and_any_other_change_is_refused(context, monkeypatch, tmp_path):
    from agent import steps

    class Step:
        @staticmethod
        def run(context):
            raise BudgetError("too dear")

    monkeypatch.setattr(steps, "load", lambda verb: Step)
    act(context, State(id="mine", title="Mine", does="mine"))
    context.session.close()
    more = Brief.build({**BRIEF, "budget": {"cpu_minutes": 50}}, base=tmp_path)
    with Session.open(tmp_path / "work", more) as session:
        assert session.budget.cap == 50
