"""Typed events: the one language between the core and its faces (terminal, JSONL stream, replay)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events; `to_json` gives {"event": name, ...fields}."""

    event: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        return {"event": self.event, **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


@dataclass(frozen=True, slots=True)
class StateEntered(Event):
    """The procedure entered a state; `number` of `total` counts from 1."""

    event: ClassVar[str] = "state_entered"
    state: str
    title: str = ""
    number: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """Long work: `done` of `total` units; `eta_s` seconds left, None where it cannot be told yet."""

    event: ClassVar[str] = "progress"
    what: str
    done: float
    total: float
    eta_s: float | None = None


@dataclass(frozen=True, slots=True)
class Measured(Event):
    """A figure as it comes: a dev score, a reward, a share with contrast."""

    event: ClassVar[str] = "measured"
    name: str
    value: float | None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question(Event):
    """Something only the customer can say; `default` is None where no answer is safe to assume."""

    event: ClassVar[str] = "question"
    id: str
    text: str
    schema: Mapping[str, Any]
    why: str
    default: Any = None


@dataclass(frozen=True, slots=True)
class Notice(Event):
    event: ClassVar[str] = "notice"
    level: Literal["info", "warn", "error"]
    text: str


@dataclass(frozen=True, slots=True)
class LedgerWritten(Event):
    """A record reached the disk."""

    event: ClassVar[str] = "ledger_written"
    seq: int
    kind: str
    state: str | None
    hash: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The one final document of a run (house §6), on every exit path."""

    event: ClassVar[str] = "finished"
    document: Mapping[str, Any]


EVENTS: dict[str, type[Event]] = {
    cls.event: cls for cls in (StateEntered, Progress, Measured, Question, Notice, LedgerWritten, Finished)
}
Listener = Callable[[Event], None]


def from_json(row: Mapping[str, Any]) -> Event:
    """The event that `to_json` wrote; raises KeyError for an unknown name."""
    return EVENTS[row["event"]](**{k: v for k, v in row.items() if k != "event"})


def nobody(event: Event) -> None:
    """A listener for those who want none."""
