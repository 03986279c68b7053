"""The order in which clips are offered: shuffled anew each epoch, every clip once an epoch, resumable from two numbers.

The order of an epoch depends on nothing but the ids, the seed and the epoch, so a resumed run goes on with exactly the
clips the undisturbed one would have taken (F46).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Position:
    """The next clip to offer is number `at` (from 0) of epoch `epoch` (from 0); `offered` counts all so far."""

    epoch: int = 0
    at: int = 0
    offered: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class ClipOrder:
    """Epoch orders over a pool of clip ids. `apart`: so many offers in a row hold no clip twice, if the pool allows.

    The clips that ended an epoch are moved behind the others in the next one, so that an update that runs over the end
    of an epoch meets no clip a second time.
    """

    def __init__(self, ids: Sequence[str], seed: int, apart: int) -> None:
        self.ids, self.seed, self.apart = sorted(ids), seed, min(apart, len(ids) // 2)
        self._epochs: list[list[str]] = []

    def epoch(self, number: int) -> list[str]:
        """All ids in the order of that epoch."""
        while len(self._epochs) <= number:
            e = len(self._epochs)
            order = sorted(self.ids, key=lambda i: hashlib.sha256(f"{self.seed}:{e}:{i}".encode()).digest())
            if e and self.apart:
                late = set(self._epochs[-1][-self.apart :])
                order = [i for i in order if i not in late] + [i for i in order if i in late]
            self._epochs.append(order)
        return self._epochs[number]

    def following(self, position: Position) -> Iterator[str]:
        """Ids from `position` on, epoch after epoch, without end (nothing for an empty pool)."""
        while self.ids:
            yield self.epoch(position.epoch)[position.at]
            position = self.advance(position, 1)

    def advance(self, position: Position, offered: int) -> Position:
        """The position after `offered` more clips."""
        whole = position.at + offered
        return replace(
            position,
            epoch=position.epoch + whole // len(self.ids),
            at=whole % len(self.ids),
            offered=position.offered + offered,
        )
