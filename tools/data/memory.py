"""What a check need not hear again: the cache's facts, and which comparisons of near copies still hold.

A comparison holds when nothing new was stored that an old stretch has not been compared with: new clips that are
stored ask the old ones themselves, so only a clip that asks and is not stored must ask again when the stored ones grew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tools.audio.facts import Facts
from tools.data.cache import FactsCache, Print, stretch_key
from tools.data.identity import NearSearch, Pair
from tools.rows import Clip


class Memory:
    """One check's view of the cache (None: nothing is remembered). `stored` marks the stretches that are stored."""

    def __init__(self, cache: FactsCache | None, stored: npt.NDArray[np.bool_]) -> None:
        self.cache, self.stored = cache, stored
        self.keys: dict[int, str] = {}
        self.before = cache.took_part() if cache else {}
        self.answered: frozenset[int] = frozenset()
        self._holds = bool(self.before)
        self._recalled: set[int] = set()

    def recall(self, stretch: int, clip: Clip, ask: bool) -> Facts | None:
        """Facts of a stretch that need not be heard again; None where it must be."""
        key = stretch_key(clip) if self.cache else None
        if self.cache is None or key is None:
            return None
        self.keys[stretch] = key
        facts = self.cache.facts(key)
        if facts is None or key not in self.before or (ask and not self._holds):
            return None
        if not ask and not self.before[key]:
            return None  # it was not stored before, so it has no fingerprint
        self._recalled.add(stretch)
        return facts

    def prints(self, stretch: int) -> list[Print]:
        return self.cache.prints(self.keys[stretch]) if self.cache else []

    def keep(self, stretch: int, facts: Facts, prints: Sequence[Print]) -> None:
        if self.cache is not None and stretch in self.keys and stretch not in self._recalled:
            self.cache.put(self.keys[stretch], facts, prints)

    def settle(self, threshold: float) -> None:
        """All stored stretches are known: say which old comparisons hold at this threshold."""
        if self.cache is None:
            return
        old = {self.keys[s] for s in self._recalled}
        now = {self.keys[int(s)] for s in np.flatnonzero(self.stored) if int(s) in self.keys}
        before = self.cache.threshold()
        lower = before is None or threshold < before - 1e-9
        self._holds = not lower and now <= {key for key, stored in self.before.items() if stored}
        self.answered = frozenset() if lower else frozenset(s for s in self._recalled if self.keys[s] in old)

    def old_pairs(self) -> list[Pair]:
        """Pairs found before between stretches that were not compared again and would be now: one of them is stored."""
        if self.cache is None:
            return []
        number = {self.keys[s]: s for s in self._recalled}
        found = self.cache.pairs().items()
        pairs = (Pair(number[a], number[b], match) for (a, b), match in found if a in number and b in number)
        return [pair for pair in pairs if self.stored[pair.a] or self.stored[pair.b]]

    def finish(self, pairs: Sequence[Pair], search: NearSearch | None) -> None:
        if self.cache is None:
            return
        kept = {(self.keys[p.a], self.keys[p.b]): p.match for p in pairs if p.a in self.keys and p.b in self.keys}
        part = {key: bool(self.stored[s]) for s, key in self.keys.items()}
        self.cache.finish(part, kept, search.index.threshold if search is not None else None)
