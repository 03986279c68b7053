"""What kinds of errors the better answers repair: the greedy answer and the best sample, both aligned to the reference.

A kind belongs to a reference word (misheard, missing, a number, split or joined) or to what was added. Counted: the greedy
answer's errors of each kind, how many of them the best sample does not make, and how many it makes anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rapidfuzz.distance import Levenshtein

from tools.rows import ScoredRow
from tools.score.align import edits
from tools.score.diagnose import is_loop
from tools.text.profile import Profile

NEAR = 0.5  # two words that share half of their letters sound alike more often than not
KINDS: dict[str, str] = {
    "sounds_alike": "a word misheard as one that sounds alike",
    "other_word": "a word misheard as quite another",
    "missing": "a word left out",
    "extra": "a word added",
    "number": "a number or a code",
    "split_or_joined": "two words written as one, or one as two",
    "loop": "a phrase said over and over",
    "empty": "nothing written at all",
}


@dataclass(frozen=True, slots=True)
class Repair:
    """One kind: `errors` of the greedy answers, `repaired` and `anew` in the best samples."""

    kind: str
    errors: int
    repaired: int
    anew: int

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "what": KINDS[self.kind]}


Place = tuple[int, str, str]  # where (2 i + 1: word i of the reference, 2 i: before it), kind, what stands there


def error_places(ref: Sequence[str], hyp: Sequence[str], finish: str = "stop") -> list[Place]:
    """Every error of an answer as (place in the reference, kind, wrong word): the same error twice is the same place."""
    if not hyp:
        return [(2 * at + 1, "empty", "") for at in range(len(ref))]
    if is_loop(ref, hyp, finish):
        return [(_place(tag, at), "loop", f"{n}") for n, (tag, at, _) in enumerate(edits(ref, hyp))]
    out: list[Place] = []
    for tag, at, to in edits(ref, hyp):
        said, heard = (None if tag == "insert" else ref[at]), (None if tag == "delete" else hyp[to])
        out.append((_place(tag, at), _kind(ref, hyp, at, to, said, heard), heard or ""))
    return out


def _place(tag: str, at: int) -> int:
    return 2 * at + (tag != "insert")


def _kind(ref: Sequence[str], hyp: Sequence[str], at: int, to: int, said: str | None, heard: str | None) -> str:
    if _joined(ref, hyp, at, to):
        return "split_or_joined"
    if any(word and any(c.isdigit() for c in word) for word in (said, heard)):
        return "number"
    if said is None:
        return "extra"
    if heard is None:
        return "missing"
    return "sounds_alike" if Levenshtein.normalized_distance(said, heard) <= NEAR else "other_word"


def _joined(ref: Sequence[str], hyp: Sequence[str], at: int, to: int) -> bool:
    """True where around this error two words of one text, written together, are one word of the other."""
    mine = {"".join(ref[i : i + 2]) for i in (at - 1, at) if 0 <= i < len(ref) - 1}
    theirs = {"".join(hyp[i : i + 2]) for i in (to - 1, to) if 0 <= i < len(hyp) - 1}
    return bool(mine & set(hyp[max(0, to - 1) : to + 2]) or theirs & set(ref[max(0, at - 1) : at + 2]))


def repairs(pairs: Iterable[tuple[ScoredRow, ScoredRow]], profile: Profile) -> list[Repair]:
    """(greedy row, row of the best sample) of each clip -> kinds with any error, most repaired first."""
    made: Counter[str] = Counter()
    gone: Counter[str] = Counter()
    anew: Counter[str] = Counter()
    for greedy, best in pairs:
        ref, hyp, _ = profile.pair(greedy.ref, greedy.hyp, greedy.lang)
        _, other, _ = profile.pair(best.ref, best.hyp, best.lang)
        before, after = Counter(error_places(ref, hyp, greedy.finish)), Counter(error_places(ref, other, best.finish))
        at_before = Counter(at for at, _, _ in before.elements())
        at_after = Counter(at for at, _, _ in after.elements())
        for (at, kind, _), n in before.items():
            made[kind] += n
            gone[kind] += n if not at_after[at] else 0
        for (at, kind, _), n in after.items():
            anew[kind] += n if not at_before[at] else 0
    found = [Repair(kind, made[kind], gone[kind], anew[kind]) for kind in KINDS if made[kind] or anew[kind]]
    return sorted(found, key=lambda r: (-r.repaired, -r.errors, r.kind))
