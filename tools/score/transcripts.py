"""Error rates of transcripts: ratios of corpus totals, never clipped, never averaged over clips, never divided by an
empty reference.

Everything is streamed: memory does not grow with the number of clips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tools.errors import CheckError
from tools.rows import ScoredRow
from tools.score.align import ALIGNER, Errors, count, edits
from tools.score.diagnose import is_loop, leaks_prompt, special_tokens, wrong_script
from tools.text.profile import Profile, cached, characters_of
from tools.text.units import UnitKind, metric_of

SCORER = "rehear"
SCORER_VERSION = "1"
THIS_SCORER = {"name": SCORER, "version": SCORER_VERSION, "aligner": ALIGNER}


@dataclass(frozen=True)
class Totals:
    """Corpus totals in one unit. `rate` is None where no reference has a unit (nothing to divide by)."""

    insertions: int = 0
    deletions: int = 0
    substitutions: int = 0
    reference_units: int = 0
    hypothesis_units: int = 0

    @property
    def errors(self) -> int:
        return self.insertions + self.deletions + self.substitutions

    @property
    def rate(self) -> float | None:
        return self.errors / self.reference_units if self.reference_units else None

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.rate,
            "insertions": self.insertions,
            "deletions": self.deletions,
            "substitutions": self.substitutions,
            "reference_units": self.reference_units,
        }


@dataclass(frozen=True)
class TranscriptScore:
    """The score of a set of transcripts.

    `metric` is wer, cer or mer by the unit; `value` = errors / reference units of the corpus (None where no reference
    has a unit). Insertions on empty references are in the totals and apart in `hallucinated_units`. `cer` counts code
    points of the normalised text. `diagnostics` counts rows: empty, loops, truncated, wrong_script,
    replacement_characters, special_tokens, prompt_leaks, length_outliers; and `length_ratio` (hypothesis by
    reference units).
    """

    metric: str
    totals: Totals
    rows: int
    empty_references: int
    hallucinated_units: int
    characters: Totals
    diagnostics: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        return self.totals.rate

    @property
    def wer(self) -> float | None:
        """The error rate in the profile's unit (for characters or mixed units it is a CER or MER: see `metric`)."""
        return self.totals.rate

    @property
    def cer(self) -> float | None:
        return self.characters.rate

    @property
    def insertions(self) -> int:
        return self.totals.insertions

    @property
    def deletions(self) -> int:
        return self.totals.deletions

    @property
    def substitutions(self) -> int:
        return self.totals.substitutions

    @property
    def errors(self) -> int:
        return self.totals.errors

    @property
    def reference_units(self) -> int:
        return self.totals.reference_units

    def to_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            **self.totals.to_json(),
            "rows": self.rows,
            "empty_references": self.empty_references,
            "hallucinated_units": self.hallucinated_units,
            "cer": self.characters.to_json(),
            "diagnostics": dict(self.diagnostics),
            "profile": dict(self.profile),
            "scorer": dict(THIS_SCORER),
        }


@dataclass(frozen=True)
class RowErrors:
    """One row's counts: `words` in the profile's unit, `characters` in code points; `flags` names what is odd."""

    id: str
    words: Errors
    characters: Errors
    kind: UnitKind
    flags: tuple[str, ...] = ()


class Tally:
    """Adds rows up; `result()` gives the score. Holds totals only."""

    FLAGS = (
        "empty", "loops", "truncated", "wrong_script", "replacement_characters", "special_tokens", "prompt_leaks",
        "length_outliers",
    )  # fmt: skip

    def __init__(self, profile: Profile, prompt: str = "") -> None:
        self.profile = profile
        self.prompt = profile.units(prompt) if prompt else []
        self._normalise = cached(profile)
        self._words = [0] * 5
        self._characters = [0] * 5
        self._flags = dict.fromkeys(self.FLAGS, 0)
        self._kinds: set[UnitKind] = set()
        self.rows = self.empty_references = self.hallucinated = 0

    def measure(self, row: ScoredRow) -> RowErrors:
        """The counts and flags of one row, without adding them up."""
        ref, hyp = self._normalise(row.ref, row.lang), self._normalise(row.hyp, row.lang)
        ref_units, hyp_units, kind = self.profile.cut(ref, hyp, row.lang)
        words = count(ref_units, hyp_units)
        characters = count(characters_of(ref, kind), characters_of(hyp, kind))
        return RowErrors(row.id, words, characters, kind, self._flag(row, ref_units, hyp_units))

    def _flag(self, row: ScoredRow, ref: Sequence[str], hyp: Sequence[str]) -> tuple[str, ...]:
        ratio = len(hyp) / len(ref) if ref else 1.0
        found = (
            not hyp,
            is_loop(ref, hyp, row.finish),
            row.finish == "length",
            wrong_script(row.ref, row.hyp),
            "\ufffd" in row.hyp,
            special_tokens(row.hyp),
            bool(self.prompt) and leaks_prompt(self.prompt, ref, hyp),
            not 0.5 <= ratio <= 1.5,
        )
        return tuple(name for name, hit in zip(self.FLAGS, found) if hit)

    def add(self, row: ScoredRow) -> RowErrors:
        measured = self.measure(row)
        self.add_measured(measured)
        return measured

    def add_measured(self, measured: RowErrors) -> None:
        self.rows += 1
        self._kinds.add(measured.kind)
        for i in range(5):
            self._words[i] += measured.words[i]
            self._characters[i] += measured.characters[i]
        if not measured.words.reference:
            self.empty_references += 1
            self.hallucinated += measured.words.insertions
        for name in measured.flags:
            self._flags[name] += 1

    def result(self) -> TranscriptScore:
        kinds = self._kinds or {self.profile.unit_kind()}
        kind: UnitKind = next(iter(kinds)) if len(kinds) == 1 else "mixed"
        words = Totals(*self._words)
        ratio = words.hypothesis_units / words.reference_units if words.reference_units else None
        return TranscriptScore(
            metric=metric_of("word" if kind == "auto" else kind),
            totals=words,
            rows=self.rows,
            empty_references=self.empty_references,
            hallucinated_units=self.hallucinated,
            characters=Totals(*self._characters),
            diagnostics={**self._flags, "length_ratio": ratio},
            profile=self.profile.to_json(),
        )


def score_rows(
    rows: Iterable[ScoredRow],
    profile: Profile,
    prompt: str = "",
    ids: Iterable[str] | None = None,
    ordered: bool = False,
) -> TranscriptScore:
    """Score rows keyed by id. Raises CheckError where an id comes twice, or is missing from or foreign to `ids` (those
    of the split). `ordered`: the ids ascend, so that memory stays flat."""
    tally = Tally(profile, prompt)
    for row in primed(unique(rows if ids is None else same_ids(rows, ids), ordered), profile):
        tally.add(row)
    return tally.result()


def score_pairs(
    refs: Iterable[str], hyps: Iterable[str], profile: Profile, langs: Iterable[str | None] | str | None = None
) -> TranscriptScore:
    """Score references and hypotheses given in the same order. Raises CheckError where their numbers differ.

    `langs` is one language for all, one for each pair, or None.
    """
    tally = Tally(profile)
    for i, (ref, hyp, lang) in enumerate(_zip(refs, hyps, langs)):
        tally.add(ScoredRow(id=str(i), ref=ref, hyp=hyp, lang=lang))
    return tally.result()


_END = object()


def _zip(
    refs: Iterable[str], hyps: Iterable[str], langs: Iterable[str | None] | str | None
) -> Iterable[tuple[str, str, str | None]]:
    each = None if langs is None or isinstance(langs, str) else iter(langs)
    hyps = iter(hyps)
    for i, ref in enumerate(refs):
        hyp = next(hyps, _END)
        lang = next(each, _END) if each is not None else langs
        if hyp is _END or lang is _END:
            raise CheckError(
                f"Pair {i} has no {'hypothesis' if hyp is _END else 'language'}: give as many as references."
            )
        yield ref, hyp, lang  # type: ignore[misc]
    if next(hyps, _END) is not _END:
        raise CheckError("There are more hypotheses than references: give one for each.")


def score_by(
    rows: Iterable[ScoredRow], key: str | Callable[[ScoredRow], str | None], profile: Profile
) -> dict[str, TranscriptScore]:
    """The score of each slice, sorted by name. `key` is a field of the row (`speaker`, `lang`, `recording`, ...) or a
    function of it; rows without a value form the slice "" (unknown)."""
    tallies: dict[str, Tally] = {}
    for row in primed(unique(rows), profile):
        value = key(row) if callable(key) else getattr(row, key)
        name = "" if value is None else str(value)
        if name not in tallies:
            tallies[name] = Tally(profile)
        tallies[name].add(row)
    return {name: tallies[name].result() for name in sorted(tallies)}


def same_terms(a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
    """Refuse to set two score documents side by side that were made in different ways.

    Raises CheckError naming the first of metric, profile digest, scorer name or version that differs.
    """
    for what, path in (("metric", ("metric",)), ("profile", ("profile", "digest")), ("scorer", ("scorer",))):
        left, right = a, b
        for key in path:
            left, right = left[key], right[key]
        if left != right:
            raise CheckError(f"The two scores have different {what}s ({left} and {right}): score both in one way.")


def word_totals(refs: Sequence[str], hyps: Sequence[str], profile: Profile) -> Totals:
    """The corpus totals alone, without character counts and diagnostics, for when only the rate is asked for.

    Raises CheckError where the numbers of texts differ.
    """
    if len(refs) != len(hyps):
        raise CheckError(f"There are {len(refs)} references and {len(hyps)} hypotheses: give one for each.")
    plain = profile.name == "exact"
    pair = profile.pair
    errors = substitutions = reference = hypothesis = 0
    for ref, hyp in zip(refs, hyps):
        if plain and ref.isascii() and hyp.isascii():
            said, heard = ref.split(), hyp.split()
        else:
            said, heard, _ = pair(ref, hyp)
        reference += len(said)
        hypothesis += len(heard)
        if said != heard:
            ops = edits(said, heard)
            errors += len(ops)
            for op in ops:
                if op[0] == "replace":
                    substitutions += 1
    deletions = (errors - substitutions + reference - hypothesis) // 2
    return Totals(errors - substitutions - deletions, deletions, substitutions, reference, hypothesis)


def primed(rows: Iterable[ScoredRow], profile: Profile, size: int = 1_000) -> Iterable[ScoredRow]:
    """The rows, each batch of texts shown to a profile that is a program before it is asked for one by one."""
    if not profile.primes:
        yield from rows
        return
    each = iter(rows)
    while batch := list(islice(each, size)):
        profile.prime([text for row in batch for text in (row.ref, row.hyp)])
        yield from batch


def unique(rows: Iterable[ScoredRow], ordered: bool = False) -> Iterator[ScoredRow]:
    """The rows, checked for doubled ids. Raises CheckError naming the id.

    `ordered` promises ascending ids (as in `evals/<id>/rows.jsonl`), holds it to that, and needs no memory.
    """
    last: str | None = None
    seen: set[str] = set()
    for row in rows:
        if row.id == last or row.id in seen:
            raise CheckError(f"Row id {row.id!r} comes twice: score each clip once.")
        if ordered and last is not None and row.id < last:
            raise CheckError(f"Row id {row.id!r} stands after {last!r}: sort the rows by id.")
        if not ordered:
            seen.add(row.id)
        last = row.id
        yield row


def same_ids(rows: Iterable[ScoredRow], ids: Iterable[str]) -> Iterator[ScoredRow]:
    """The rows, checked to be exactly those of `ids`: a missing clip is an error, not a smaller denominator."""
    left = set(ids)
    for row in rows:
        if row.id not in left:
            raise CheckError(f"Row id {row.id!r} is not in the split or comes twice: score exactly the split's clips.")
        left.remove(row.id)
        yield row
    if left:
        raise CheckError(f"{len(left)} clips have no row, the first is {min(left)!r}: decode every clip of the split.")
