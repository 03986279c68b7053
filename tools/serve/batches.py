"""Requests that wait are decoded together: one thread owns the model, and takes as many alike as are there.

Alike: the same number of answers, temperature and limit. What has just been answered is asked again at once by a busy
client, so the thread waits a moment for as many requests as it has just answered before it starts on less than a full
batch, and no longer than a small part of what that batch took. A clip is encoded once, however often it is asked for, while its encoder output is among those kept.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tools.decode.local import greedy, sample
from tools.policy.base import Encoded, Policy, Tokens, join
from tools.rows import Answer

BATCH = 16
LINGER_S = 0.02
LINGER_SHARE = 0.05  # of the last batch's seconds: the longest wait for those that it answered to ask again
KEPT_BYTES = 2**30


@dataclass(eq=False)
class Work:
    """One clip to decode; `seeds` empty for greedy."""

    wave: np.ndarray
    prompt: Tokens
    limit: int
    temperature: float
    seeds: tuple[int, ...]
    answers: Future[list[Answer]] = field(default_factory=Future)

    @property
    def alike(self) -> tuple[Any, ...]:
        return (len(self.seeds), self.temperature if self.seeds else 0.0, self.limit)


class Batcher:
    """Decodes on a thread of its own. `close()` ends it; work that still waits then fails."""

    def __init__(
        self, policy: Policy, batch: int = BATCH, linger_s: float = LINGER_S, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self.policy, self.batch, self.linger_s, self.kept_bytes = policy, batch, linger_s, kept_bytes
        self.sizes: list[int] = []
        self._until = 0.0  # monotonic seconds: until then those that were just answered may ask again
        self._kept: OrderedDict[str, Encoded] = OrderedDict()
        self._coming: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._waiting: list[Work] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)
        self._thread.start()

    def put(self, work: Work) -> Future[list[Answer]]:
        self._coming.put(work)
        return work.answers

    def close(self) -> None:
        self._closed = True
        self._coming.put(None)
        self._thread.join()

    # -- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._gather():
            first = self._waiting[0].alike
            together = [w for w in self._waiting if w.alike == first][: self.batch]
            taken = set(map(id, together))
            self._waiting = [w for w in self._waiting if id(w) not in taken]
            todo = [w for w in together if w.answers.set_running_or_notify_cancel()]
            if todo:
                self._decode(todo)
        for work in self._waiting:
            work.answers.set_exception(RuntimeError("the server is shutting down"))

    def _gather(self) -> bool:
        """Waits for work, then a moment for more of it; False when closed."""
        while not self._closed:
            full = sum(w.alike == self._waiting[0].alike for w in self._waiting) if self._waiting else 0
            if full >= self.batch:
                return True
            back = bool(self.sizes) and full >= self.sizes[-1]
            pause = self.linger_s if back else max(self.linger_s, self._until - time.monotonic())
            try:
                work = self._coming.get(timeout=pause if self._waiting else None)
            except queue.Empty:
                return True
            if work is not None:
                self._waiting.append(work)
        return False

    def _decode(self, todo: list[Work]) -> None:
        began = time.monotonic()
        self.sizes.append(len(todo))
        try:
            groups = self._answers(todo)
        except Exception as error:
            for work in todo:
                work.answers.set_exception(error)
            return
        ended = time.monotonic()
        self._until = ended + LINGER_SHARE * (ended - began)
        for work, group in zip(todo, groups, strict=True):
            work.answers.set_result(group)

    def _answers(self, todo: list[Work]) -> list[list[Answer]]:
        encoded = join([self._encoded(w.wave) for w in todo])
        prompts, ids, first = [w.prompt for w in todo], [str(i) for i in range(len(todo))], todo[0]
        if not first.seeds:
            return [[a] for a in greedy(self.policy, encoded, prompts, first.limit, ids, self.batch)]
        seeds = [w.seeds for w in todo]
        n, temperature = len(first.seeds), first.temperature
        return sample(self.policy, encoded, prompts, ids, n, temperature, first.limit, seeds, self.batch)

    def _encoded(self, wave: np.ndarray) -> Encoded:
        name = hashlib.sha256(wave.tobytes()).hexdigest()
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        with torch.no_grad():
            out = self.policy.encode([wave])[0]
        self._kept[name] = out
        while len(self._kept) > 1 and sum(t.nbytes for t in self._kept.values()) > self.kept_bytes:
            self._kept.popitem(last=False)
        return out
