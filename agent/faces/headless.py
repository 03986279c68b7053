"""The headless faces: a plain one for people (stderr), a JSONL stream and a final JSON document for scripts (stdout)."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TextIO

from agent.events import Event, Finished, LedgerWritten, Measured, Notice, Progress, Question, StateEntered

BLOCKS = "▁▂▃▄▅▆▇█"
LINE_EVERY_S = 15.0


@dataclass
class StopFlag:
    """Set by the first SIGINT or SIGTERM; the second one ends the process at once."""

    signum: int | None = None

    def __call__(self) -> bool:
        return self.signum is not None

    @property
    def exit_code(self) -> int:
        return 128 + (self.signum or signal.SIGINT)


@contextmanager
def listening(flag: StopFlag) -> Iterator[StopFlag]:
    """Turns SIGINT and SIGTERM into a clean stop while the block runs."""

    def heard(signum: int, _: FrameType | None) -> None:
        if flag.signum is not None:
            raise KeyboardInterrupt
        flag.signum = signum
        print("\nstopping at the next safe point; running again resumes here", file=sys.stderr, flush=True)

    before = {s: signal.signal(s, heard) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def sparkline(values: list[float]) -> str:
    """A curve in one line of text; lower is lower."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(BLOCKS[round((v - low) / span * (len(BLOCKS) - 1))] for v in values)


class Plain:
    """Tells a person what is going on: the state, a bar with the time left, the dev curve as it comes."""

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self.out = out
        self.tty = out.isatty()
        self.curve: list[float] = []
        self._what = ""
        self._began = self._last = self._first = 0.0
        self._open = False

    def __call__(self, event: Event) -> None:
        match event:
            case StateEntered():
                self._line(f"\n== {event.title} [{event.state}]")
            case Progress():
                self._progress(event.what, event.done, event.total)
            case Measured():
                self._measured(event)
            case Notice():
                self._line(f"   {'' if event.level == 'info' else event.level + ': '}{event.text}")
            case Question():
                self._line(f" ? {event.text}")
            case LedgerWritten() | Finished():
                pass

    def _measured(self, event: Measured) -> None:
        if event.value is None:
            self._line(f"   {event.name} not measured  {_details(event.details)}")
        elif event.name == "dev":
            self.curve.append(event.value)
            self._line(f"   dev {event.value:.4f} {sparkline(self.curve)}  {_details(event.details)}")
        else:
            self._line(f"   {event.name} {event.value:.4f}  {_details(event.details)}")

    def _progress(self, what: str, done: float, total: float) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._last, self._first = what, now, now, done
        finished = total > 0 and done >= total
        if now - (self._began if finished else self._last) < (0.1 if self.tty else LINE_EVERY_S):
            return
        self._last = now
        spent = now - self._began
        if not total:  # how much there is to do is not known yet
            self._line(f"   {what}: {done}  {spent:.0f} s")
            return
        new = done - self._first  # work that is taken up again says nothing of how fast it goes
        left = f"{spent / new * (total - done):.0f} s left" if new > 0 and done < total else f"{spent:.0f} s"
        filled = round(24 * done / max(total, 1))
        text = f"   {what} [{'#' * filled}{'.' * (24 - filled)}] {done:g}/{total:g}  {left}"
        if self.tty and done < total:
            self.out.write("\r\x1b[2K" + text)
            self._open = True
        else:
            self._line(text)
        self.out.flush()

    def _line(self, text: str) -> None:
        if self._open:
            self.out.write("\r\x1b[2K")
            self._open = False
        print(text, file=self.out, flush=True)


def _details(details: Mapping[str, Any]) -> str:
    return "  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in details.items())


def stream(event: Event) -> None:
    """One JSON object a line on stdout for each event; the last one is the final document."""
    print(json.dumps(event.to_json(), ensure_ascii=False), flush=True)


def quiet(event: Event) -> None:
    """Says nothing: used with --json, where stdout holds exactly one document."""


def emitter(json_mode: bool, stream_mode: bool) -> Callable[[Event], None]:
    if stream_mode:
        return stream
    return quiet if json_mode else Plain()
