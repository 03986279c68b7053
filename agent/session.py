"""Opens a work directory: its lock, its repository, its ledger, and the brief that it was begun with.

The same brief resumes; a changed one is refused unless the change answers an open question. Whatever is in the way
(another process, a foreign file, a read-only or full disk) becomes one clear sentence, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from filelock import FileLock

from agent import machine
from agent.brief import Brief
from agent.budget import Budget
from agent.disk import write_atomic
from agent.findings import look
from agent.history import History
from agent.ledger.chain import Ledger
from agent.ledger.pages import render_pages
from agent.place import ignore_file, locked, prepare
from agent.questions import Question
from tools.errors import UsageError


class Session:
    """An open work directory; close it (or use `with`) to let others in. `brief` holds all answers given so far."""

    def __init__(self, workdir: Path, lock: FileLock, history: History, ledger: Ledger, brief: Brief) -> None:
        self.workdir = workdir
        self.lock = lock
        self.history = history
        self.ledger = ledger
        self.brief = brief
        self._found: dict[str, Any] | None = None

    @classmethod
    def open(
        cls,
        workdir: Path | str,
        brief: Brief,
        *,
        skill: str = "",
        skill_digest: str | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> Session:
        """Create or resume. `answers`: question id -> value, from `--answer`.

        Raises UsageError (in use, foreign, unwritable, another brief) or CheckError (a broken ledger).
        """
        workdir = Path(workdir).absolute()
        prepare(workdir)
        lock = locked(workdir)
        try:
            history = History(workdir)
            history.init(ignore_file(bool(brief.keep_text)))
            ledger = Ledger.open(workdir, skill=skill_digest or skill or None, code=machine.code())
            self = cls(workdir, lock, history, ledger, brief)
            self._take(brief, answers or {})
        except BaseException:
            lock.release()
            raise
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.ledger.close()
        self.lock.release()

    @property
    def budget(self) -> Budget:
        return Budget(self.ledger, self.brief.budget)

    def found(self) -> dict[str, Any]:
        """What looking at the brief's files told, looked up once (agent.findings)."""
        if self._found is None:
            self._found = look(self.brief)
        return self._found

    def missing(self) -> list[Question]:
        """Open questions, after looking for what can be found out; those without a default must be asked."""
        open_ = [q for q in self.brief.missing() if q.id not in ("budget", "data")]
        return self.brief.missing(self.found() if open_ else None)

    def assume_defaults(self, *, state: str | None = None) -> list[dict[str, Any]]:
        """Take every safe default that is still open, as `answer` records of the agent; returns the new assumptions."""
        taken = []
        for question in self.missing():
            if question.default is not None:
                self._record_answer(question, question.default, "agent", question.assumed, state)
                taken.append({"id": question.id, "value": question.default, "why": question.assumed})
                self.brief = self.brief.answered({question.id: question.default})
        return taken

    def answer(self, question: str, value: Any, why: str = "the customer said so", *, state: str | None = None) -> None:
        """The customer's answer to an open question: checked and recorded (brief.yaml stays as first given)."""
        brief = self.brief.answered({question: value})
        if question not in self._open():
            raise UsageError(f"{question} is not an open question: {_start_anew(self.workdir)}")
        asked = next((q for q in self.brief.missing() if q.id == question), None)
        self._record_answer(asked, brief.answer_to(question), "customer", why, state, question)
        self.brief = brief
        self._found = None

    def assumptions(self) -> list[dict[str, Any]]:
        """[{id, value, why}]: what the agent assumed because nobody said otherwise."""
        return assumptions_of(self.ledger)

    def plan_payload(self, steps: Iterable[Mapping[str, str]]) -> dict[str, Any]:
        """The payload of the `plan` record: brief, steps [{id, title, does}], versions, source, machine."""
        return {
            "brief_sha256": self.brief.digest,
            "brief": self.brief.to_json(),
            "steps": [dict(step) for step in steps],
            "versions": machine.versions(),
            "source": machine.source(),
            "machine": machine.machine(),
        }

    def render_pages(self) -> None:
        """plan.md and progress.md from the ledger as it stands."""
        render_pages(self.workdir, self.ledger.records())

    def commit_state(self, state: str) -> str:
        """Pages rendered, then one commit of everything not ignored, the ledger's count and head in its message."""
        self.render_pages()
        return self.history.commit(f"state {state}", self.ledger.count, self.ledger.head)

    # -- the brief, same or changed ---------------------------------------------------------------------------------

    def _take(self, given: Brief, answers: Mapping[str, Any]) -> None:
        stored = self._stored()
        if stored is None:
            self._store(given)
            stored = given
        self.brief = stored.at(given)
        for record in self.ledger.records("answer"):
            self.brief = self.brief.answered({record.payload["id"]: record.payload["value"]})
        for question, value in _changes(stored, self.brief, given).items():
            self._accept(question, value, "the brief was completed")
        for question, value in answers.items():
            if self.brief.answered({question: value}) != self.brief:
                self._accept(question, value, "answered at the start")
        self._notice_versions()

    def _accept(self, question: str, value: Any, why: str) -> None:
        if question not in self._open():
            raise UsageError(
                f"the brief changed: {question} was {self.brief.answer_to(question)!r} when this work began and is now "
                f"{value!r}; {_start_anew(self.workdir)}"
            )
        self.answer(question, value, why)

    def _open(self) -> set[str]:
        """Ids that may still be answered: not said and not assumed, or asked in the ledger and not answered since."""
        asked: set[str] = set()
        for record in self.ledger:
            if record.kind == "question":
                asked.add(record.payload["id"])
            elif record.kind == "answer":
                asked.discard(record.payload["id"])
        return asked | {q.id for q in self.brief.missing()}

    def _record_answer(
        self, asked: Question | None, value: Any, actor: str, why: str, state: str | None, name: str = ""
    ) -> None:
        name = asked.id if asked else name
        if asked is not None and self.ledger.last("question", id=name) is None:
            self.ledger.append("question", asked.record(), state=state)
        payload = {"id": name, "value": value, "why": why, "default": actor == "agent"}
        self.ledger.append("answer", payload, actor=actor, state=state)

    def _stored(self) -> Brief | None:
        path = self.workdir / "brief.yaml"
        if not path.is_file():
            return None
        return Brief.load(path)

    def _store(self, brief: Brief) -> None:
        head = (
            f"# As the customer first gave it; later answers are in the ledger.\n"
            f"# Relative paths are relative to {brief.base.absolute()}\n"
        )
        write_atomic(
            self.workdir / "brief.yaml", head + yaml.safe_dump(brief.to_json(), allow_unicode=True, sort_keys=False)
        )

    def _notice_versions(self) -> None:
        plan = self.ledger.last("plan")
        if plan is None:
            return
        told = self.ledger.last("note", text="versions changed since the plan")
        before = told.payload["details"]["versions"] if told else plan.payload["versions"]
        now = machine.versions()
        if before != now:
            self.ledger.append("note", {"text": "versions changed since the plan", "details": {"versions": now}})


def assumptions_of(ledger: Ledger) -> list[dict[str, Any]]:
    """[{id, value, why}] of the last answer to each question, where it was the agent's own."""
    answers = {r.payload["id"]: r.payload for r in ledger.records("answer")}
    return [{k: a[k] for k in ("id", "value", "why")} for a in answers.values() if a["default"]]


def _changes(stored: Brief, effective: Brief, given: Brief) -> dict[str, Any]:
    """Question id -> the given value, for every point where the given brief says something that is not on record.

    The same as on record, or as at the beginning (an answer since then stands), is no change; nor is a budget not
    mentioned again, since it may have come by `--budget`.
    """
    out: dict[str, Any] = {}
    was, now, is_ = _flat(given), _flat(effective), _flat(stored)
    for key in sorted({*was, *now, *is_}):
        said = was.get(key)
        if said in (now.get(key), is_.get(key)) or (key == "budget" and said is None):
            continue
        question = _question_of(key)
        out[question] = given.answer_to(question)
    return out


def _flat(brief: Brief) -> dict[str, Any]:
    values = brief.to_json()
    data = values.pop("data", {})
    return {**values, **{f"data.{k}": v for k, v in data.items()}}


def _question_of(key: str) -> str:
    if key.startswith("data."):
        return {"data.split_by": "splits", "data.retention": "retention"}.get(key, "data")
    return key


def _start_anew(workdir: Path) -> str:
    return f"put it back, or start a new work directory (--workdir) beside {workdir.name}"
