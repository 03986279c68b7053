"""Runs a brief through its skill: open the work directory, compile the graph, go on from the last checkpoint.

Every way out ends in one final document (`agent.document`): finished, a question, the budget, a failed gate, a signal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.act import Context, Interrupted, act
from agent.ask import open_questions
from agent.brief import QUESTION_IDS, Brief
from agent.document import finished_document, mined_document, paused_document, stopped_document
from agent.events import Event
from agent.gates import GATES
from agent.procedure import Skill, Vocabulary, load_skill
from agent.reuse import refuse_changed
from agent.session import Session
from agent.steps import VERBS
from tools.errors import UsageError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

SKILL = "nemotron-transcribe-rl"
THREAD: RunnableConfig = {"configurable": {"thread_id": "run"}}


def load(name: str = SKILL) -> Skill:
    return load_skill(name, Vocabulary(VERBS, GATES, QUESTION_IDS))


def run(
    brief: Brief,
    workdir: Path,
    *,
    emit: Callable[[Event], None],
    should_stop: Callable[[], bool] = lambda: False,
    answers: Mapping[str, Any] | None = None,
    until: str = "",
) -> dict[str, Any]:
    """Runs or resumes `brief` in `workdir` and returns the final document (house.md §6). `until` "mine" stops after that
    state with the verdict of `rehear mine`; a later run without it goes on from there.

    Raises RehearError when the work directory cannot be opened: in use, another brief, a broken ledger.
    """
    skill = load()
    with Session.open(workdir, brief, skill=skill.name, skill_digest=skill.digest, answers=answers or {}) as session:
        return _drive(Context(session, skill, emit, should_stop, scratch={"until": until} if until else {}))


def _drive(context: Context) -> dict[str, Any]:
    from langgraph.checkpoint.sqlite import SqliteSaver

    from agent.graph import RECURSION_LIMIT, compile_graph

    database = context.workdir / ".rehear" / "graph.sqlite"
    with closing(sqlite3.connect(database, check_same_thread=False)) as connection:
        graph = compile_graph(
            context.skill.procedure,
            lambda state: act(context, state),
            lambda state: open_questions(context, state),
            SqliteSaver(connection),
        )
        before = graph.get_state(THREAD)
        until = str(context.scratch.get("until", ""))
        if until and passed(context, until):
            refuse_changed(context)
            return mined_document(context)
        finished = context.last("decision", what="finish") is not None
        if before.values and not before.next and finished:
            return finished_document(context)
        try:
            config: RunnableConfig = {"configurable": THREAD["configurable"], "recursion_limit": RECURSION_LIMIT}
            start = _entry(before, context.skill, graph.nodes)
            graph.invoke(start, config, durability="sync", interrupt_after=[until] if until else None)
            after = graph.get_state(THREAD)
            if until and after.next and not after.interrupts and not passed(context, until):
                graph.invoke(None, config, durability="sync")  # its stop comes after it: told now, not the next time
                after = graph.get_state(THREAD)
        except Interrupted:
            return stopped_document(context)
        if until and passed(context, until):
            return mined_document(context)
        if after.next:
            return paused_document(context, [i.value for i in after.interrupts])
        return finished_document(context)


def passed(context: Context, until: str) -> bool:
    """Whether the state after which to stop has been left: its decision is on record."""
    return until == "mine" and context.last("decision", what="learn") is not None


def _entry(before: Any, skill: Skill, nodes: Container[str]) -> Any:
    """What the graph is invoked with: a fresh start, the open question's id, or None to take up a lost step.

    Raises UsageError where another version of the skill or of the graph began: LangGraph would resume in silence, and a
    pending node that has another name by now would be lost.
    """
    from langgraph.types import Command

    from agent.graph import VERSION

    if not before.values and not before.next:
        return {"skill": skill.digest, "graph": VERSION}
    lost = [name for name in before.next if name not in nodes]
    if before.values.get("graph", VERSION) != VERSION or lost:
        raise UsageError(
            f"this work directory was begun under version {before.values.get('graph')} of the graph (now {VERSION}"
            f"{', without ' + lost[0] if lost else ''}): finish it with that version, or start a new one"
        )
    if before.values.get("skill") != skill.digest:
        raise UsageError(
            f"this work directory was begun under another version of skill {skill.name} "
            f"({before.values.get('skill', '')[:12]}, now {skill.digest[:12]}): finish it with that version, or start a new one"
        )
    if before.interrupts:
        return Command(resume={i.id: {"go": True} for i in before.interrupts})
    return None
