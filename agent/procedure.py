"""A skill is data: `assets/procedure.yaml` lists the states, and this module reads and validates them.

Validated at load, so that a broken skill never starts: every state reachable, every verb, gate and question known, every
outcome of a step routed, every state described in SKILL.md. The skill's digest goes into every ledger record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from tools.errors import UsageError

END = "end"
STOPS = ("stop_budget", "stop_failed")


class State(BaseModel):
    """One state: a verb with what it needs and leaves behind, or a stop that waits for the customer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str
    does: str = ""
    needs: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    budget: Literal["none", "decode", "train"] = "none"
    next: dict[str, str] = {}
    stop: Literal["budget", "failed"] | None = None


class Procedure(BaseModel):
    """The states of a skill in order, and where it starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: int
    start: str
    states: tuple[State, ...]

    def state(self, state_id: str) -> State:
        return next(s for s in self.states if s.id == state_id)


@dataclass(frozen=True)
class Vocabulary:
    """What a procedure may name: verbs with the outcomes each can have, gates, and question ids."""

    verbs: Mapping[str, Collection[str]]
    gates: Collection[str]
    questions: Collection[str]


@dataclass(frozen=True)
class Skill:
    """A skill folder: its procedure, its presets and its digest."""

    folder: Path
    procedure: Procedure
    digest: str

    @property
    def name(self) -> str:
        return self.procedure.name

    def preset_path(self, name: str) -> Path:
        """Raises UsageError when the skill has no such preset."""
        path = self.folder / "assets" / "presets" / f"{name}.yaml"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml")))
            raise UsageError(f"skill {self.name} has no preset {name!r}: choose one of {known}")
        return path


def skills_folder() -> Path:
    """Where the shipped skills are: inside the wheel, or the checkout."""
    return Path(str(files("skills")))


def skill_digest(folder: Path) -> str:
    """sha256 over the skill's files, by relative path and content."""
    h = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        h.update(path.relative_to(folder).as_posix().encode() + b"\0")
        h.update(hashlib.sha256(path.read_bytes()).digest())
    return h.hexdigest()


def load_skill(name: str, vocabulary: Vocabulary, root: Path | None = None) -> Skill:
    """Reads skill `name` and validates its procedure against `vocabulary`.

    Raises UsageError naming the first thing that is wrong with the skill.
    """
    folder = (root or skills_folder()) / name
    path = folder / "assets" / "procedure.yaml"
    if not path.is_file():
        raise UsageError(f"there is no skill {name!r}: {path} does not exist")
    try:
        procedure = Procedure.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise UsageError(f"the procedure of skill {name} cannot be read ({path}): {error}") from error
    problems = _problems(procedure, vocabulary, (folder / "SKILL.md").read_text(encoding="utf-8"))
    if problems:
        raise UsageError(f"the procedure of skill {name} is not valid ({path}): {'; '.join(problems)}")
    return Skill(folder, procedure, skill_digest(folder))


def _problems(procedure: Procedure, vocabulary: Vocabulary, prose: str) -> list[str]:
    """Everything wrong with a procedure, each as a short phrase; empty when it is valid."""
    ids = [s.id for s in procedure.states]
    problems = [f"state {i!r} is listed twice" for i in sorted({i for i in ids if ids.count(i) > 1})]
    if procedure.start not in ids:
        return [*problems, f"it starts in unknown state {procedure.start!r}"]
    problems += [f"there is no {stop} state" for stop in STOPS if stop not in ids]
    for state in procedure.states:
        problems += _state_problems(state, vocabulary, ids)
        if f"`{state.id}`" not in prose:
            problems.append(f"SKILL.md does not describe state {state.id!r} (write it as `{state.id}`)")
    unreachable = sorted(set(ids) - _reachable(procedure) - set(STOPS))
    problems += [f"state {i!r} cannot be reached" for i in unreachable]
    return problems


def _state_problems(state: State, vocabulary: Vocabulary, ids: list[str]) -> list[str]:
    if state.stop:
        return [] if not (state.does or state.next) else [f"stop state {state.id!r} must not act"]
    problems = []
    if state.does not in vocabulary.verbs:
        return [f"state {state.id!r} does unknown verb {state.does!r}"]
    outcomes = set(vocabulary.verbs[state.does])
    if outcomes != set(state.next):
        problems.append(f"state {state.id!r} routes {sorted(state.next)}, its verb can end in {sorted(outcomes)}")
    problems += [
        f"state {state.id!r} goes to unknown state {to!r}" for to in state.next.values() if to not in (*ids, END)
    ]
    problems += [f"state {state.id!r} names unknown gate {g!r}" for g in state.gates if g not in vocabulary.gates]
    problems += [
        f"state {state.id!r} needs {q!r}, which has no question with a schema"
        for q in state.needs
        if q not in vocabulary.questions
    ]
    return problems


def _reachable(procedure: Procedure) -> set[str]:
    seen: set[str] = set()
    todo = [procedure.start]
    while todo:
        here = todo.pop()
        if here in seen or here == END or here not in {s.id for s in procedure.states}:
            continue
        seen.add(here)
        todo += procedure.state(here).next.values()
    return seen
