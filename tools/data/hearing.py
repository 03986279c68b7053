"""All audio of a check, heard once a stretch: verdicts, digests, marks, and who is whose copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tools.audio.facts import Facts
from tools.audio.read import Wave
from tools.data.cache import FactsCache, Print
from tools.data.identity import OTHER, OWN, PAIRS, POOL_S, Digests, NearSearch, Pair, split_masks, stored_splits
from tools.data.memory import Memory
from tools.data.reading import Quarantined
from tools.data.report import WARN, Finding, Place
from tools.data.rowchecks import EMPTY_TEXT, Options, aside
from tools.data.samechecks import Heard, exact_findings, identities, identity_note, near_findings, ties
from tools.data.sound import Mapper, hear, judge, pace_marks, stretches
from tools.data.table import Ints, RowTable


@dataclass
class Hearing:
    """What hearing gave: usable rows with the stretch of each, rows set aside, findings about identity."""

    kept: Ints
    stretch: Ints
    quarantined: list[Quarantined] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    ties: list[tuple[Place, Place]] = field(default_factory=list)
    near_checked: bool = False
    heard: int = 0  # stretches that were decoded; the others were remembered


@dataclass
class _State:
    """What is gathered while stretches are heard, by stretch."""

    table: RowTable
    rows: Ints
    group: Ints
    options: Options
    usable: npt.NDArray[np.bool_]  # by row
    known: npt.NDArray[np.bool_]  # by row: takes part in identity (ambiguous channels too)
    quarantined: list[Quarantined] = field(default_factory=list)
    digests: Digests = field(default_factory=Digests)
    digest: dict[int, str] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = np.argsort(self.group, kind="stable")
        self.starts = np.searchsorted(self.group[self.order], np.arange(int(self.group.max(initial=-1)) + 2))

    def members(self, stretch: int) -> Ints:
        """Positions (in `rows`) of the rows that name a stretch."""
        return self.order[self.starts[stretch] : self.starts[stretch + 1]]

    def take(self, stretch: int, facts: Facts) -> None:
        """Facts of a stretch -> its rows kept with digest and marks, or set aside."""
        at = self.members(stretch)
        rows = self.rows[at]
        verdict = judge(self.table.clip(int(rows[0])), facts, self.options)
        lost = at if verdict.reason else at[:0]
        if verdict.silent:
            lost = at[self.table["marks"][rows] & EMPTY_TEXT == 0]
        reason, kind = (verdict.reason, verdict.kind) if verdict.reason else (verdict.silent, "silent")
        for i in lost:
            self.quarantined.append(aside(self.table.clip(int(self.rows[i])), reason, kind, verdict.counts))
        self.usable[lost] = False
        self.known[lost] = verdict.kind == "channel"
        self.table.columns["marks"][rows] |= np.uint32(verdict.marks)
        self.table.seconds[rows] = facts.seconds
        if facts.digest:
            self.table.digests[rows] = np.frombuffer(bytes.fromhex(facts.digest), np.uint8)
        if self.known[at].any():
            self._identify(stretch, facts)

    def _identify(self, stretch: int, facts: Facts) -> None:
        if facts.digest:
            self.digests.add(facts.digest, stretch, OWN)
            self.digest[stretch] = facts.digest
        for channel, digest in facts.others:
            if digest != facts.digest:
                self.digests.add(digest, stretch, OTHER if facts.digest or channel < 0 else OWN)
                self.digest.setdefault(stretch, digest)


def hear_all(
    table: RowTable,
    rows: Ints,
    options: Options,
    mapper: Mapper,
    progress: Callable[[str, int, int], None],
    cache: FactsCache | None = None,
) -> Hearing:
    """Hear every distinct stretch that `rows` name and say what becomes of the rows."""
    firsts, group = stretches(table, rows)
    state = _State(table, rows, group, options, np.ones(len(rows), bool), np.ones(len(rows), bool))
    search, note = _search(table, rows, firsts, options)
    masks = split_masks(table, rows, group)
    stored = np.array([bool(mask & _bits(table, _stored(table, rows))) for mask in masks], dtype=bool)
    memory = Memory(cache, stored)
    done = heard_now = 0
    for ask in (False, True):
        for stretch, facts, waves in _heard(state, memory, np.flatnonzero(stored != ask), ask, mapper):
            state.take(stretch, facts)
            done += 1
            heard_now += waves is not None
            progress("audio", done, len(firsts))
            prints: list[Print] = []
            if search is not None and state.known[state.members(stretch)].any():
                prints = _near(state, memory, search, stretch, waves, ask)
            memory.keep(stretch, facts, prints)
        if search is not None and not ask:
            search.calibrate(_different(state, stored))
            memory.settle(search.index.threshold)
            state.pairs += search.ask_stored(memory.answered)
    state.pairs += memory.old_pairs()
    memory.finish(state.pairs, search)
    table.columns["marks"][rows] |= pace_marks(table, rows)
    return _concluded(state, search, note, heard_now)


def _heard(
    state: _State, memory: Memory, which: Ints, ask: bool, mapper: Mapper
) -> Iterator[tuple[int, Facts, list[tuple[int, Wave]] | None]]:
    """Facts of stretches, and their sound (None where it was not needed again): what is remembered first."""
    first = {int(s): int(state.rows[state.members(int(s))[0]]) for s in which}
    fresh = []
    for stretch, row in first.items():
        facts = memory.recall(stretch, state.table.clip(row), ask)
        if facts is None:
            fresh.append(stretch)
        else:
            yield stretch, facts, None
    heard = hear(state.table, np.array([first[s] for s in fresh], dtype=np.int64), mapper)
    for stretch, (_, (facts, waves)) in zip(fresh, heard):
        yield stretch, facts, waves


def _near(
    state: _State, memory: Memory, search: NearSearch, stretch: int, waves: list[tuple[int, Wave]] | None, ask: bool
) -> list[Print]:
    """A stretch asks, or is stored; gives what is to be remembered of it."""
    clip = state.table.clip(int(state.rows[state.members(stretch)[0]]))
    if ask:
        if waves is not None:
            state.pairs += search.ask(stretch, waves)
        return []
    if waves is None:
        search.add_prints(stretch, clip, memory.prints(stretch))
        return []
    return search.add(stretch, clip, waves)


def _stored(table: RowTable, rows: Ints) -> set[str]:
    return stored_splits([table.splits[int(c)] for c in np.unique(table["split"][rows])])


def _bits(table: RowTable, splits: set[str]) -> np.uint64:
    return np.uint64(sum(1 << code for code, name in enumerate(table.splits) if name in splits))


def _search(table: RowTable, rows: Ints, firsts: Ints, options: Options) -> tuple[NearSearch | None, str]:
    """The near search, or None and why it is not done."""
    if not options.near:
        return None, "it was not asked for"
    splits = np.unique(table["split"][rows])
    known_s = float(np.nansum(table["duration"][firsts]))
    if len(splits) == 1 and known_s > POOL_S:
        return (
            None,
            f"a single set of {known_s / 3600:.0f} hours: give the splits, then train is compared with the others",
        )
    return NearSearch(), ""


def _different(state: _State, stored: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Pairs of stored stretches known to differ: other sentence, other digest, other file."""
    usable = [int(s) for s in np.flatnonzero(stored) if s in state.digest and state.usable[state.members(int(s))].any()]
    first = {s: state.rows[state.members(s)[0]] for s in usable}
    table = state.table
    out: list[tuple[int, int]] = []
    rng = np.random.default_rng(0)
    for _ in range(8 * PAIRS if len(usable) > 1 else 0):
        a, b = (usable[int(i)] for i in rng.choice(len(usable), 2, replace=False))
        one, two = first[a], first[b]
        sentences = table["sentence"][[one, two]]
        other_words = sentences[0] != sentences[1] and sentences.all()
        other_file = table["file"][one] != table["file"][two]
        if other_words and other_file and state.digest[a] != state.digest[b] and not {(a, b), (b, a)} & set(out):
            out.append((a, b))
        if len(out) == PAIRS:
            break
    return out


def _concluded(state: _State, search: NearSearch | None, note: str, heard_now: int) -> Hearing:
    table, usable = state.table, state.usable
    groups = state.digests.same()
    identity = identities(len(state.starts) - 1, groups)
    heard = Heard(table, state.rows[state.known], state.group[state.known], state.digest, identity)
    findings = exact_findings(heard) + near_findings(heard, state.pairs)
    if search is not None and not search.trusted:
        text = (
            f"phase does not tell this audio apart (differing pairs up to {search.highest:.2f}): near copies uncertain"
        )
        findings.append(Finding("identity_uncertain", WARN, text))
    known = [int(state.rows[state.members(stretch)[0]]) for stretch in state.digest]
    findings.append(identity_note(table.seconds[known], search, note))
    kept = Heard(table, state.rows[usable], state.group[usable], state.digest, identity)
    return Hearing(
        kept.rows,
        kept.stretch,
        state.quarantined,
        findings,
        ties(kept, groups, state.pairs) if search is not None else [],
        search is not None,
        heard_now,
    )
