"""Every answer that came, once, on disk: what a killed client need not ask for again.

One JSON object a line, appended and flushed to disk before the answer is used: `{"key", "choice"}` for an answer,
`{"watch"}` for a check that the server still is the model it was, `{"void"}` where it was not. An answer counts once a
watch that agrees stands after it; of two lines with one key the first counts. A torn last line is cut off.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tools.decode.served.wire import Choice
from tools.errors import ProviderError, UsageError


class Journal:
    """The answers of one model, by key. One process at a time: raises UsageError where another holds it.

    `keep` may be called from another thread; `close` waits for it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(f"{path}.lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout as err:
            raise UsageError(f"another process is decoding into {path.parent}: wait for it, or stop it") from err
        self.confirmed: dict[str, Choice] = {}
        self.pending: dict[str, Choice] = {}
        self.watch: dict[str, Any] | None = None
        self._read()
        self._writing = threading.Lock()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def close(self) -> None:
        with self._writing:
            os.close(self._file)
            self._file = -1  # what is still to be written finds no file, and never another one
        self._lock.release()

    def get(self, key: str) -> Choice | None:
        """The answer under a key, confirmed or not yet; None where there is none."""
        return self.confirmed.get(key) or self.pending.get(key)

    def keep(self, answers: Mapping[str, Choice]) -> None:
        """Writes answers that are new, in one go; they count once a watch agrees."""
        with self._writing:
            new = {key: choice for key, choice in answers.items() if self.get(key) is None}
            self._append([{"key": key, "choice": _to_json(choice)} for key, choice in new.items()])
            self.pending |= new

    def agree(self, watch: Mapping[str, Any]) -> None:
        """The server still is the model it was: what came since the last watch counts."""
        with self._writing:
            self._append([{"watch": dict(watch)}])
            self._confirm(dict(watch))

    def void(self, why: str) -> int:
        """The server is another model now: what came since the last watch does not count. Returns how much that is."""
        with self._writing:
            lost = len(self.pending)
            self._append([{"void": why}])
            self.pending = {}
            return lost

    def _confirm(self, watch: dict[str, Any]) -> None:
        self.watch = watch
        self.confirmed |= {k: v for k, v in self.pending.items() if k not in self.confirmed}
        self.pending = {}

    def _append(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        text = "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)
        try:
            data = text.encode()
            if os.write(self._file, data) < len(data):
                raise OSError(28, "No space left on device")
            os.fsync(self._file)
        except OSError as err:
            raise ProviderError(
                f"answers cannot be kept in {self.path}: {err.strerror}; make room and run again"
            ) from err

    def _read(self) -> None:
        if not self.path.is_file():
            return
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with open(self.path, "r+b") as file:
                file.truncate(whole)
        for number, line in enumerate(data[:whole].split(b"\n")[:-1], start=1):
            self._take(line, number)

    def _take(self, line: bytes, number: int) -> None:
        try:
            row = json.loads(line)
            if "key" in row:
                if self.get(row["key"]) is None:
                    self.pending[row["key"]] = _from_json(row["choice"])
            elif "watch" in row:
                self._confirm(row["watch"])
            else:
                self.pending = {}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(f"{self.path}:{number} is no line of a journal of answers: remove the file") from None


def _to_json(choice: Choice) -> dict[str, Any]:
    out: dict[str, Any] = {"text": choice.text, "finish": choice.finish}
    if choice.tokens:
        out["tokens"] = list(choice.tokens)
    if choice.logprobs is not None:
        out["logprobs"] = list(choice.logprobs)
    return out


def _from_json(row: Mapping[str, Any]) -> Choice:
    logprobs = row.get("logprobs")
    return Choice(
        str(row["text"]),
        str(row["finish"]),
        tuple(row.get("tokens") or ()),
        None if logprobs is None else tuple(logprobs),
    )
