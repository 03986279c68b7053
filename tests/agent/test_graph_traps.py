"""The traps of LangGraph, each shut: durability, question nodes apart, ids on resume, versions, retries, loops, state size."""

import json
import re
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from agent import driver
from agent.driver import _entry
from agent.graph import RECURSION_LIMIT, VERSION, compile_graph
from agent.procedure import Procedure
from tests.agent.test_graph import PROCEDURE, THREAD, World, go, saver
from tools.errors import UsageError

__all__ = ["saver"]
ROOT = Path(__file__).resolve().parents[2]
SKILL = SimpleNamespace(name="small", digest="d" * 64)


def test_finished_steps_survive_a_process_that_is_gone_at_once(tmp_path):
    script = """
        import os, sqlite3, sys
        from langgraph.checkpoint.sqlite import SqliteSaver
        from agent.graph import compile_graph
        from tests.agent.test_graph import PROCEDURE, THREAD

        def act(state):
            if state.id == "second":
                os._exit(9)
            return {"outcome": "ready", "error": None}

        saver = SqliteSaver(sqlite3.connect(sys.argv[1], check_same_thread=False))
        compile_graph(PROCEDURE, act, lambda s: None, saver).invoke({"skill": "x"}, THREAD, durability="sync")
    """
    path = tmp_path / "graph.sqlite"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), path], cwd=ROOT, check=False)
    assert done.returncode == 9
    with sqlite3.connect(path, check_same_thread=False) as connection:
        world = World("left")
        state = go(world, SqliteSaver(connection), None)
    assert world.done == ["second"] and not state.next


def test_the_driver_asks_for_that_durability_and_for_a_limit_of_its_own():
    source = Path(driver.__file__).read_text(encoding="utf-8")
    assert 'durability="sync"' in source and '"recursion_limit": RECURSION_LIMIT' in source


def test_a_question_node_only_asks_however_often_it_is_run_again(saver):
    asked = []
    world = World("ready", "left", questions={"at": "first", "questions": []})
    ask = world.ask
    world.ask = lambda state: asked.append(state.id) or ask(state)
    state = go(world, saver, {"skill": "x"})
    for _ in range(2):  # answered with nothing changed: the same question, and nothing was done
        state = go(world, saver, Command(resume={i.id: {"go": True} for i in state.interrupts}))
    assert len(asked) >= 3 and world.done == [] and state.next == ("ask_first",)


def test_the_question_node_of_a_state_is_another_node_than_its_act():
    graph = compile_graph(PROCEDURE, lambda s: {}, lambda s: None, None)
    assert {"first", "ask_first"} <= set(graph.nodes) and "ask_second" not in graph.nodes


def test_an_answer_goes_to_its_question_by_id_and_is_never_empty(saver):
    world = World("ready", questions={"at": "first", "questions": []})
    before = go(world, saver, {"skill": SKILL.digest, "graph": VERSION})
    command = _entry(before, SKILL, {"ask_first"})
    assert set(command.resume) == {i.id for i in before.interrupts} and all(command.resume.values())


@pytest.mark.parametrize(
    ("values", "nodes", "says"),
    [
        ({"skill": "e" * 64, "graph": VERSION}, {"ask_first"}, "another version of skill"),
        ({"skill": SKILL.digest, "graph": VERSION + 1}, {"ask_first"}, "of the graph"),
        ({"skill": SKILL.digest, "graph": VERSION}, {"ask_renamed"}, "without ask_first"),
    ],
)
def test_another_version_is_refused_before_a_resume_loses_its_pending_node(values, nodes, says):
    before = SimpleNamespace(values=values, next=("ask_first",), interrupts=())
    with pytest.raises(UsageError, match=says):
        _entry(before, SKILL, nodes)


def test_a_pending_node_that_was_renamed_looks_finished_to_langgraph_and_not_to_us(saver):
    state = go(World(questions={"at": "first", "questions": []}), saver, {"skill": "x", "graph": VERSION})
    assert state.next == ("ask_first",)
    body = PROCEDURE.model_dump()
    renamed = Procedure.model_validate(json.loads(json.dumps(body, default=list).replace('"first"', '"opening"')))
    graph = compile_graph(renamed, lambda s: {}, lambda s: None, saver)
    after = graph.get_state(THREAD)
    assert not after.next  # the trap
    with pytest.raises(UsageError, match="another version of skill"):
        _entry(after, SKILL, graph.nodes)


@pytest.mark.parametrize("error", [ConnectionError("gone"), OSError("disk"), RuntimeError("no")])
def test_an_act_node_is_never_tried_again_by_itself(saver, error):
    calls = []

    def act(state):
        calls.append(state.id)
        raise error

    graph = compile_graph(PROCEDURE, act, lambda s: None, saver)
    with pytest.raises(type(error)):
        graph.invoke({"skill": "x"}, THREAD, durability="sync")
    assert calls == ["first"]


def test_a_loop_without_end_is_stopped(saver):
    world = SimpleNamespace(n=0)

    def act(state):
        world.n += 1
        return {"outcome": "ready" if state.id == "first" else "right", "error": None}

    graph = compile_graph(PROCEDURE, act, lambda s: None, saver)
    with pytest.raises(GraphRecursionError):
        graph.invoke({"skill": "x"}, {**THREAD, "recursion_limit": RECURSION_LIMIT}, durability="sync")
    assert world.n <= RECURSION_LIMIT


def test_nothing_swallows_an_interrupt():
    for name in ("graph", "ask", "act", "driver"):
        source = (ROOT / "agent" / f"{name}.py").read_text(encoding="utf-8")
        assert not re.search(r"except (Exception|BaseException|:)", source), name


def test_what_is_checkpointed_is_small_and_plain_json(saver):
    state = go(World("ready", "right", "ready", "left"), saver, {"skill": "x" * 64, "graph": VERSION})
    text = json.dumps(state.values)
    assert len(text) < 1000 and json.loads(text) == state.values
