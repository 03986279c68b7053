"""One effect = one intent and one outcome in the ledger; one act node = one step, its gates, one commit.

`Context` is what a step gets: the session (work directory, brief, ledger, budget), the skill, a way to tell the faces what
is happening, and a way to hear that the customer wants to stop.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import rfc8785

from agent import gates, steps
from agent.events import Event, Measured, Notice, Progress, StateEntered
from agent.ledger.chain import Ledger
from agent.ledger.pages import render_pages
from agent.procedure import STOPS, Skill, State
from agent.session import Session
from agent.spending import Spending
from tools.errors import BudgetError, RehearError

BUDGET_QUESTION = {
    "id": "budget",
    "text": "The next step does not fit the budget: raise it (as in the brief), or leave the work as it is?",
    "schema": {"type": "object"},
    "why": "nothing is spent beyond the cap, and the work goes on from here under a larger one",
}


class Interrupted(BaseException):
    """The customer (SIGINT, SIGTERM, a key) asked to stop; everything done so far is kept and the same brief resumes."""


def effect_key(effect: str, args: dict[str, Any]) -> str:
    """The deterministic key of an effect: the same effect with the same arguments has the same key after any crash."""
    return hashlib.sha256(rfc8785.dumps({"effect": effect, "args": args})).hexdigest()[:24]


@dataclass
class Context:
    """Everything a step may touch."""

    session: Session
    skill: Skill
    emit: Callable[[Event], None]
    should_stop: Callable[[], bool] = lambda: False
    state: str = ""
    spending: Spending | None = None
    scratch: dict[str, Any] = field(default_factory=dict)

    @property
    def workdir(self) -> Path:
        return self.session.workdir

    @property
    def ledger(self) -> Ledger:
        return self.session.ledger

    def record(self, kind: str, payload: dict[str, Any], *, actor: str = "agent", key: str | None = None) -> Any:
        return self.ledger.append(kind, payload, actor=actor, state=self.state, key=key)

    def effect(self, effect: str, args: dict[str, Any], do: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Runs `do` once for these arguments, whatever happens in between.

        An outcome on record is returned as it is. An intent without an outcome means that an attempt was lost: `do`
        must then adopt what it finds (outputs are written whole or not at all), and a recovery record says so.
        """
        key = effect_key(effect, args)
        done = self._outcome(key)
        if done is not None:
            return done
        if any(r.kind == "intent" and r.key == key for r in self.ledger.records()):
            self.record("recovery", {"what": f"{effect} was interrupted and is taken up again", "details": {}}, key=key)
        else:
            self.record("intent", {"effect": effect, "args": args}, key=key)
        self.check_stop()
        result = do()
        self.record("outcome", {"effect": effect, "ok": True, "result": result}, key=key)
        return result

    def _outcome(self, key: str) -> dict[str, Any] | None:
        for r in self.ledger.records():
            if r.kind == "outcome" and r.key == key and r.payload["ok"]:
                return dict(r.payload["result"])
        return None

    def decide(
        self, what: str, chosen: Any, because: str, details: dict[str, Any] | None = None, *, round_: int = 1
    ) -> None:
        """Records a decision once: the same decision on a resume (of the same round) is the one on record."""
        again = {"round": round_} if round_ > 1 else {}
        key = effect_key("decision", {"what": what, "chosen": chosen, **again})
        if not any(r.kind == "decision" and r.key == key for r in self.ledger.records()):
            self.record(
                "decision", {"what": what, "chosen": chosen, "because": because, "details": details or {}}, key=key
            )
        self.notice(f"{what}: {chosen} ({because})")

    def last(self, kind: str, **match: Any) -> Any | None:
        """The last record of `kind` whose payload has these values, or None."""
        for r in reversed(self.ledger.records()):
            if r.kind == kind and all(r.payload.get(k) == v for k, v in match.items()):
                return r
        return None

    def must(self, kind: str, **match: Any) -> Any:
        found = self.last(kind, **match)
        if found is None:
            raise RehearError(
                f"the ledger of {self.workdir} has no {kind} record with {match}: it was not made by this procedure"
            )
        return found

    def save(self) -> None:
        """Renders plan.md and progress.md from the ledger and commits the work directory."""
        render_pages(self.workdir, self.ledger.records())
        self.session.commit_state(self.state)

    def check_stop(self) -> None:
        """Raises Interrupted when the customer asked to stop, BudgetError when paid work outruns the budget."""
        if self.should_stop():
            raise Interrupted
        if self.spending is not None:
            self.spending.cover()

    def progress(self, what: str) -> Callable[[int, int], None]:
        """A callback (done, total) for long work; it is also where a stop is heard."""

        def tell(done: int, total: int) -> None:
            self.emit(Progress(what=what, done=done, total=total))
            self.check_stop()

        return tell

    def notice(self, text: str, level: Literal["info", "warn", "error"] = "info") -> None:
        self.emit(Notice(level=level, text=text))

    def measured(self, name: str, value: float, **details: Any) -> None:
        self.emit(Measured(name=name, value=value, details=details))


def act(context: Context, state: State) -> dict[str, Any]:
    """Runs the step of `state`, then its gates, then commits. Errors of the customer's kind become a stop, not a crash."""
    context.state = state.id
    context.emit(StateEntered(state=state.id, title=state.title))
    try:
        outcome = steps.load(state.does).run(context)
        for gate in state.gates:
            gates.GATES[gate](context)
    except RehearError as error:
        return {"outcome": _stopped(context, error), "error": _describe(error)}
    context.save()
    return {"outcome": outcome, "error": None}


def _stopped(context: Context, error: RehearError) -> str:
    context.record("note", {"text": f"{context.state} stopped: {error}", "details": _describe(error)})
    if isinstance(error, BudgetError):
        context.record("question", BUDGET_QUESTION)
    context.save()
    return STOPS[0] if isinstance(error, BudgetError) else STOPS[1]


def _describe(error: RehearError) -> dict[str, Any]:
    return {"kind": error.kind, "message": str(error), "exit_code": error.exit_code}
