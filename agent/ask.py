"""One group of questions = the payload of one interrupt. Nothing is done here: acting is for a later node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.act import Context
    from agent.procedure import State


def open_questions(context: Context, state: State) -> dict[str, Any] | None:
    """The questions of `state` that the brief leaves open and that have no safe default; None when there are none."""
    missing = [q for q in context.session.missing() if q.id in state.needs and q.default is None]
    if not missing:
        return None
    return {"at": state.id, "questions": [q.to_json() for q in missing]}
