"""Procedure -> LangGraph StateGraph: wiring only.

Each state becomes an act node; a state that needs answers gets a question node before it, which does nothing but ask; the
two stops are question nodes as well, and lead back to the state that stopped. State is small and JSON-only: everything
else lives in the ledger and in files. Checkpoints are written synchronously to SQLite, so a crash at any moment resumes
at the last finished node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

from agent.procedure import END as PROCEDURE_END
from agent.procedure import STOPS, Procedure, State

RECURSION_LIMIT = 200
VERSION = 1  # of the wiring below; a work directory begun under another one is not resumed


class GraphState(TypedDict, total=False):
    """What LangGraph checkpoints: where we are, how the last step ended, which skill compiled the graph."""

    skill: str
    graph: int
    at: str
    outcome: str
    error: dict[str, Any] | None


Act = Callable[[State], dict[str, Any]]
Ask = Callable[[State], dict[str, Any] | None]


def compile_graph(
    procedure: Procedure, act: Act, ask: Ask, checkpointer: BaseCheckpointSaver[Any]
) -> CompiledStateGraph:
    """Compiles `procedure`. `act(state)` runs a state's verb and returns {outcome, error}; `ask(state)` returns the
    payload of the questions still open for a state, or None."""
    graph = StateGraph(GraphState)
    entry = {s.id: _ask_id(s) if s.needs else s.id for s in procedure.states}
    for state in procedure.states:
        if state.stop:
            graph.add_node(state.id, _stop_node(state))  # type: ignore[call-overload]
            continue
        graph.add_node(state.id, _act_node(state, act))  # type: ignore[call-overload]
        graph.add_conditional_edges(state.id, _route(state, entry), [*_targets(state, entry), *STOPS])
        if state.needs:
            graph.add_node(_ask_id(state), _ask_node(state, ask))  # type: ignore[call-overload]
            graph.add_edge(_ask_id(state), state.id)
    graph.add_edge(START, entry[procedure.start])
    return graph.compile(checkpointer=checkpointer)


def _ask_id(state: State) -> str:
    return f"ask_{state.id}"


def _targets(state: State, entry: dict[str, str]) -> list[str]:
    return [END if to == PROCEDURE_END else entry[to] for to in state.next.values()]


def _act_node(state: State, act: Act) -> Callable[[GraphState], GraphState]:
    def node(_: GraphState) -> GraphState:
        result = act(state)
        return {"at": state.id, "outcome": result["outcome"], "error": result.get("error")}

    return node


def _ask_node(state: State, ask: Ask) -> Callable[[GraphState], GraphState]:
    def node(_: GraphState) -> GraphState:
        while (payload := ask(state)) is not None:  # resumed without an answer, it is asked again
            interrupt(payload)
        return {}

    return node


def _stop_node(state: State) -> Callable[[GraphState], Command[str]]:
    def node(at: GraphState) -> Command[str]:
        interrupt({"stop": state.stop, "at": at["at"], "error": at.get("error")})
        return Command(goto=at["at"], update={"error": None})

    return node


def _route(state: State, entry: dict[str, str]) -> Callable[[GraphState], str]:
    def route(after: GraphState) -> str:
        outcome = after["outcome"]
        if outcome in STOPS:
            return outcome
        to = state.next[outcome]
        return END if to == PROCEDURE_END else entry[to]

    return route
