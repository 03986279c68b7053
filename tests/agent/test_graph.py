import sqlite3

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from agent.graph import compile_graph
from agent.procedure import Procedure

THREAD = {"configurable": {"thread_id": "t"}}
PROCEDURE = Procedure.model_validate(
    {
        "name": "small",
        "version": 1,
        "start": "first",
        "states": [
            {"id": "first", "title": "First", "does": "a", "needs": ["colour"], "next": {"ready": "second"}},
            {"id": "second", "title": "Second", "does": "b", "next": {"left": "end", "right": "first"}},
            {"id": "stop_budget", "title": "Stop", "stop": "budget"},
            {"id": "stop_failed", "title": "Stop", "stop": "failed"},
        ],
    }
)


class World:
    """What the nodes see: the outcomes they are to have, and what they did."""

    def __init__(self, *outcomes, questions=None):
        self.outcomes, self.done, self.questions = list(outcomes), [], questions

    def act(self, state):
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        self.done.append(state.id)
        error = {"kind": "budget", "message": "no", "exit_code": 4} if outcome.startswith("stop") else None
        return {"outcome": outcome, "error": error}

    def ask(self, state):
        return self.questions


@pytest.fixture
def saver(tmp_path):
    connection = sqlite3.connect(tmp_path / "graph.sqlite", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()


def go(world, saver, given):
    graph = compile_graph(PROCEDURE, world.act, world.ask, saver)
    graph.invoke(given, THREAD, durability="sync")
    return graph.get_state(THREAD)


def test_outcomes_choose_the_next_state_and_back_edges_work(saver):
    world = World("ready", "right", "ready", "left")
    state = go(world, saver, {"skill": "x"})
    assert world.done == ["first", "second", "first", "second"] and not state.next


def test_an_open_question_waits_and_the_same_state_is_asked_again_until_it_is_answered(saver):
    world = World("ready", "left", questions={"at": "first", "questions": []})
    state = go(world, saver, {"skill": "x"})
    assert state.next == ("ask_first",) and world.done == []
    world.questions = None
    go(world, saver, Command(resume={i.id: {"go": True} for i in state.interrupts}))
    assert world.done == ["first", "second"]


@pytest.mark.parametrize("stop", ["stop_budget", "stop_failed"])
def test_a_stop_waits_and_leads_back_to_the_state_that_stopped(saver, stop):
    world = World("ready", stop, "left")
    state = go(world, saver, {"skill": "x"})
    assert state.next == (stop,) and state.interrupts[0].value["at"] == "second"
    state = go(world, saver, Command(resume={i.id: {"go": True} for i in state.interrupts}))
    assert world.done == ["first", "second", "second"] and not state.next


def test_a_lost_step_is_taken_up_again_and_finished_ones_are_not(saver):
    world = World("ready", KeyboardInterrupt(), "left")
    with pytest.raises(KeyboardInterrupt):
        go(world, saver, {"skill": "x"})
    state = go(world, saver, None)
    assert world.done == ["first", "second"] and not state.next
