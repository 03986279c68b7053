"""CPU time of this process and its children, written aside every few seconds, so that even a killed attempt is paid for."""

from __future__ import annotations

import json
import os
import resource
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

EVERY_S = 2.0


def cpu_seconds() -> float:
    """User and system seconds of this process and of the children it has waited for."""
    self, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return self.ru_utime + self.ru_stime + children.ru_utime + children.ru_stime


class Meter:
    """Measures the CPU seconds spent inside its `with` block and keeps `path` up to date meanwhile."""

    def __init__(self, path: Path, reservation: str) -> None:
        self.path = path
        self.reservation = reservation
        self._began = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Meter:
        self._began = cpu_seconds()
        self._write()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._write()

    @property
    def seconds(self) -> float:
        return cpu_seconds() - self._began

    def _keep(self) -> None:
        while not self._done.wait(EVERY_S):
            self._write()

    def _write(self) -> None:
        tmp = self.path.with_suffix(".tmp")
        with suppress(OSError):  # a full disk must not end the work that is being measured
            tmp.write_text(
                json.dumps({"reservation": self.reservation, "cpu_s": round(self.seconds, 3)}), encoding="utf-8"
            )
            os.replace(tmp, self.path)


def measured_before(path: Path, reservation: str) -> float | None:
    """CPU seconds that a lost attempt at `reservation` had spent when it was last written; None when nothing is known."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["reservation"] == reservation:
            return float(found["cpu_s"])
    return None
