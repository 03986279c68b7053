"""The reduce over rows: what is shared between splits, repeated inside one, or missing from training.

Everything here is arithmetic on columns; rows are read back only to be named. Each check returns findings in a
fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.data import rowchecks as marks
from tools.data.languages import language_code
from tools.data.report import BLOCK, INFO, WARN, Finding
from tools.data.rowchecks import Options
from tools.data.splits import role
from tools.data.table import Ints, Refs, RowTable

EPSILON_S = 1e-6
MOST_PAIRS = 500_000  # overlapping pairs looked at
NAMED = 5  # examples in a text
SORTED_RUNS = 3.0  # changes of label a class below which the order counts as sorted


@dataclass(frozen=True)
class Kept:
    """The usable rows of a table: their indices, and the distinct stretch of audio each of them names."""

    table: RowTable
    rows: Ints
    stretch: Ints

    def __getitem__(self, column: str) -> npt.NDArray[np.int64]:
        return self.table[column][self.rows]

    def refs(self, chosen: npt.NDArray[np.bool_] | Ints) -> Refs:
        return Refs(self.table, self.rows[chosen])

    def splits(self) -> list[tuple[int, str]]:
        """Code and name of each split present, train first."""
        return ordered(self.table, {int(code) for code in np.unique(self["split"])})


def set_checks(kept: Kept, options: Options) -> list[Finding]:
    """Every check over rows and their columns, in a fixed order (identity of audio: `tools.data.samechecks`)."""
    return [
        *languages(kept, options),
        *row_marks(kept),
        *label_forms(kept),
        *overlaps(kept),
        *speakers(kept),
        *recordings(kept),
        *ids(kept),
        *(sentences(kept) if options.task == "asr" else ()),  # one label is no sentence
        *coverage(kept, options),
        *orders(kept),
    ]


def ordered(table: RowTable, codes: Iterable[int]) -> list[tuple[int, str]]:
    """Splits as (code, name): train, dev, test, then the others by name."""
    place = {"train": 0, "dev": 1, "test": 2}
    named = ((code, table.splits[code]) for code in codes)
    return sorted(named, key=lambda s: (place.get(role(s[1]), 3), s[1]))


def languages(kept: Kept, options: Options) -> list[Finding]:
    out = []
    lang, row_marks = kept["lang"], kept["marks"]
    for code, name in enumerate(kept.table.langs):
        unknown = (lang == code) & (row_marks & marks.LANG_UNKNOWN > 0)
        if unknown.any():
            text = f"language {name!r} is not a known name or code ({count(unknown)})"
            out.append(Finding("language", BLOCK, text, kept.refs(unknown)))
        undeclared = (lang == code) & (row_marks & marks.LANG_UNDECLARED > 0)
        if undeclared.any():
            text = f"language {name} is not among the declared {', '.join(options.languages)} ({count(undeclared)})"
            out.append(Finding("language", BLOCK, text, kept.refs(undeclared)))
    missing = lang == 0
    if missing.all() and len(missing):
        out.append(Finding("language_missing", INFO, f"no row names its language ({count(missing)})"))
    elif missing.any():
        codes = sorted({kept.table.langs[i] for i in np.unique(lang) if i})
        text = f"{count(missing)} without a language among rows in {', '.join(codes)}: name it"
        severity = BLOCK if len({language_code(c) for c in codes}) > 1 else WARN
        out.append(Finding("language_missing", severity, text, kept.refs(missing)))
    return out


MARKS = (
    ("script", marks.SCRIPT, WARN, "written in another script than their language's"),
    ("other_language", marks.OTHER_LANGUAGE, WARN, "whose small words are another language's"),
    ("empty_reference", marks.EMPTY_TEXT, INFO, "with an empty reference: kept on purpose, nothing may be said there"),
    ("markers", marks.MARKER, WARN, "with scoring or noise marks inside the reference (such as <unk>, [noise])"),
    (
        "text",
        marks.NOT_TEXT,
        WARN,
        "whose text holds control or replacement characters, entities, or was decoded wrongly",
    ),
    ("clipped", marks.CLIPPED, WARN, "whose audio is clipped (over 0.1 % of samples at full scale)"),
    ("quiet", marks.QUIET, WARN, "whose audio is under -60 dB of full scale"),
    ("short", marks.SHORT, WARN, "shorter than 0.1 s"),
    ("slow", marks.SLOW, WARN, "with fewer than 2 characters a second: the text may not be what is said"),
    ("fast", marks.FAST, WARN, "with more characters a second than anyone says: the text may not be what is said"),
    ("rate", marks.RATE_DECLARED, WARN, "whose manifest declares another sample rate than the file has"),
)


def row_marks(kept: Kept) -> list[Finding]:
    """What the maps over rows and audio marked, one finding a kind."""
    found = kept["marks"]
    out = []
    for check, bit, severity, text in MARKS:
        these = found & bit > 0
        if these.any():
            example = _example(kept, check, int(np.flatnonzero(these)[0]))
            out.append(Finding(check, severity, f"{count(these)} {text}{example}", kept.refs(these)))
    longer = (found & marks.LENGTH > 0) & ~_files_cut_up(kept)
    if longer.any():
        text = f"{count(longer)} whose file is longer than the manifest's duration says: the rest is not used"
        out.append(Finding("length", WARN, text, kept.refs(longer)))
    return out


def _example(kept: Kept, check: str, at: int) -> str:
    clip = kept.table.clip(int(kept.rows[at]))
    if check in {"slow", "fast"}:
        letters = len((clip.text or "").strip())
        seconds = clip.duration_s or 1.0
        return f" (first: {clip.id}, {letters} characters in {seconds:.2f} s, {letters / seconds:.1f} per second)"
    return f" (first: {clip.id})"


def _files_cut_up(kept: Kept) -> npt.NDArray[np.bool_]:
    """Rows whose file is named with more than one stretch."""
    _, file = np.unique(kept["file"], return_inverse=True)
    pairs = np.unique(np.stack([file, kept.stretch]), axis=1)
    return np.bincount(pairs[0])[file] > 1


def label_forms(kept: Kept) -> list[Finding]:
    """Labels that are one after trimming, or would be one if case did not count."""
    out = []
    trimmed = kept["marks"] & marks.LABEL_FORM > 0
    if trimmed.any():
        forms = sorted({str(kept.table.clip(int(i)).extras["label_as_written"]) for i in kept.rows[trimmed][:200]})
        text = f"{count(trimmed)} have labels with stray blanks, taken off: {', '.join(map(repr, forms[:8]))}"
        out.append(Finding("label_blanks", WARN, text, kept.refs(trimmed)))
    names: dict[str, set[str]] = {}
    _, first = np.unique(kept["label"], return_index=True)
    for i in first[:10_000]:
        label = kept.table.clip(int(kept.rows[i])).label
        if label:
            names.setdefault(label.casefold(), set()).add(label)
    for forms_of in sorted(sorted(v) for v in names.values() if len(v) > 1):
        text = f"labels that differ in case only stay {len(forms_of)} classes: {', '.join(map(repr, forms_of))}"
        out.append(Finding("label_case", WARN, text))
    return out


def overlaps(kept: Kept) -> list[Finding]:
    """Stretches of one file that overlap on a channel both use: across splits they block, inside a split they are
    told.
    """
    across: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
    inside: set[int] = set()
    for a, b, shared_s in islice(_overlapping(kept), MOST_PAIRS):
        pair = (int(kept["split"][a]), int(kept["split"][b]))
        if pair[0] == pair[1]:
            inside |= {a, b}
        else:
            across.setdefault((min(pair), max(pair)), []).append((a, b, shared_s))
    out = []
    for left, right in pairs_of(kept):
        found = across.get((min(left[0], right[0]), max(left[0], right[0])))
        if found:
            out.append(_overlap_finding(kept, left, right, found))
    if inside:
        chosen = np.array(sorted(inside))
        out.append(
            Finding("interval_overlap_inside", WARN, f"{count(chosen)} overlap inside a split", kept.refs(chosen))
        )
    return out


def _overlap_finding(
    kept: Kept, left: tuple[int, str], right: tuple[int, str], found: list[tuple[int, int, float]]
) -> Finding:
    told = []
    for a, b, shared_s in found[:NAMED]:
        first, second = (a, b) if kept["split"][a] == left[0] else (b, a)
        one, two = (kept.table.clip(int(kept.rows[i])) for i in (first, second))
        told.append(f"{one.id} ({left[1]}) and {two.id} ({right[1]}) overlap by {shared_s:.3f} s in {one.audio}")
    chosen = {i for a, b, _ in found for i in (a, b)}
    order = sorted(chosen, key=lambda i: (kept["split"][i] != left[0], i))
    more = f"; and {len(found) - NAMED} more pairs" if len(found) > NAMED else ""
    return Finding("interval_overlap", BLOCK, "; ".join(told) + more, kept.refs(np.array(order)), (left[1], right[1]))


def _overlapping(kept: Kept) -> Iterator[tuple[int, int, float]]:
    """Positions of rows of one file whose half-open intervals meet; of equal stretches one row a split speaks."""
    keys = np.stack([kept.stretch, kept["split"]])
    _, lone = np.unique(keys, axis=1, return_index=True)
    start = kept["offset"][lone]
    stop = start + kept.table.seconds[kept.rows[lone]]
    file, channel, stretch = kept["file"][lone], kept["channel"][lone], kept.stretch[lone]
    order = np.lexsort((lone, stop, start, file))
    if not len(lone):
        return
    begins = np.flatnonzero(np.concatenate([[True], file[order][1:] != file[order][:-1], [True]]))
    for first, last in pairwise(begins):
        if last - first < 2:
            continue
        for at in range(first, last):
            i = order[at]
            for j in order[at + 1 : last]:
                if start[j] >= stop[i] - EPSILON_S:
                    break
                if stretch[i] == stretch[j] or (channel[i] >= 0 and channel[j] >= 0 and channel[i] != channel[j]):
                    continue
                yield int(lone[i]), int(lone[j]), float(min(stop[i], stop[j]) - start[j])


def speakers(kept: Kept) -> list[Finding]:
    out = []
    missing = kept["speaker"] == 0
    if missing.any():
        text = (
            f"speaker separation cannot be certified: {count(missing)} of {len(missing)} without speaker; "
            "blocks become recordings there"
        )
        out.append(Finding("speaker_missing", WARN, text, kept.refs(missing)))
    return out + shared(kept, "speaker_shared", "speaker", kept["speaker"], BLOCK, lambda c: c.speaker)


def recordings(kept: Kept) -> list[Finding]:
    """A recording named in two splits blocks; one file cut up between two splits is a warning."""
    out = shared(kept, "recording_shared", "recording", kept["recording"], BLOCK, lambda c: c.recording)
    files = np.where(_files_cut_up(kept) & (kept["recording"] == 0), kept["file"], 0)
    return out + shared(kept, "file_shared", "audio file", files, WARN, lambda c: str(c.audio))


def ids(kept: Kept) -> list[Finding]:
    out = shared(kept, "id_shared", "row id", kept["id"], WARN, lambda c: c.id)
    loose, strict = kept["loose_id"], kept["id"]
    order = np.lexsort((strict, loose))
    alike = (loose[order][1:] == loose[order][:-1]) & (strict[order][1:] != strict[order][:-1])
    if alike.any():
        at = np.flatnonzero(alike)
        chosen = np.unique(np.concatenate([order[at], order[at + 1]]))
        names = " / ".join(kept.refs(chosen)[i].id for i in range(min(2, len(chosen))))
        text = f"{count(chosen)} have ids that differ in case, width or blanks only ({names})"
        out.append(Finding("id_alike", WARN, text, kept.refs(chosen)))
    return out


def sentences(kept: Kept) -> list[Finding]:
    """Sentences of one split that occur in another: a number of its own, a warning, never a refusal."""
    values, split = kept["sentence"], kept["split"]
    out = []
    for (left, left_name), (right, right_name) in pairs_of(kept):
        theirs = np.unique(values[(split == left) & (values != 0)])
        mine = (split == right) & (values != 0)
        common = mine & np.isin(values, theirs)
        if not common.any():
            continue
        total, all_kinds, kinds = int(mine.sum()), len(np.unique(values[mine])), len(np.unique(values[common]))
        text = (
            f"{kinds} of {all_kinds} sentences of {right_name} ({int(common.sum())} of {total} rows, "
            f"{common.sum() / total:.2%}) also occur in {left_name}"
        )
        out.append(Finding("sentence_shared", WARN, text, kept.refs(common), (left_name, right_name)))
    return out


def coverage(kept: Kept, options: Options) -> list[Finding]:
    """Languages of dev and test that training never shows block; labels too where the task is labels, else a
    warning.
    """
    split = kept["split"]
    trains = [code for code, name in kept.splits() if role(name) == "train"]
    train = np.isin(split, trains)
    out = []
    for code, name in kept.splits():
        if not trains or role(name) not in {"dev", "test"}:
            continue
        for what, severity in (("lang", BLOCK), ("label", BLOCK if options.task == "label" else WARN)):
            values = kept[what]
            new = (split == code) & (values != 0) & ~np.isin(values, np.unique(values[train]))
            if new.any() and (what != "label" or values[train].any()):
                clips = [kept.table.clip(int(i)) for i in kept.rows[new][np.unique(values[new], return_index=True)[1]]]
                names = sorted({str(clip.lang if what == "lang" else clip.label) for clip in clips})
                named = {"lang": "language", "label": "label"}[what]
                text = f"{named}(s) of {name} absent from train: {', '.join(names[:10])} ({count(new)})"
                out.append(Finding(f"{named}_absent", severity, text, kept.refs(new), (name,)))
    return out


def orders(kept: Kept) -> list[Finding]:
    """Training rows that stand sorted by label, language or speaker: a reader with a small buffer learns one at a
    time.
    """
    out = []
    for code, name in kept.splits():
        if role(name) in {"dev", "test", "retention"}:
            continue
        rows = np.flatnonzero(kept["split"] == code)
        for what in ("label", "lang", "speaker"):
            values = kept[what][rows]
            kinds = len(np.unique(values))
            changes = int(np.count_nonzero(values[1:] != values[:-1]))
            if kinds > 1 and len(rows) >= 10 * kinds and changes < SORTED_RUNS * kinds:
                named = {"label": "label", "lang": "language", "speaker": "speaker"}[what]
                text = (
                    f"{name or 'the manifest'} stands sorted by {named}: shuffle it before anything reads it in order"
                )
                out.append(Finding("sorted", WARN if what == "label" else INFO, text))
    return out


def shared(
    kept: Kept,
    check: str,
    what: str,
    values: npt.NDArray[Any],
    severity: str,
    name: Callable[..., str | None],
) -> list[Finding]:
    """Values (0: absent) that rows of two splits have: one finding a pair of splits, with counts and the rows of
    both.
    """
    split = kept["split"]
    known = len(np.unique(values[values != 0]))
    out = []
    for (left, left_name), (right, right_name) in pairs_of(kept):
        a, b = (split == left) & (values != 0), (split == right) & (values != 0)
        common = np.intersect1d(values[a], values[b])
        if not len(common):
            continue
        a, b = a & np.isin(values, common), b & np.isin(values, common)
        firsts = kept.rows[a][np.unique(values[a], return_index=True)[1]][:NAMED]
        names = ", ".join(sorted(str(name(kept.table.clip(int(i)))) for i in firsts))
        more = " …" if len(common) > NAMED else ""
        text = (
            f"{len(common)} of {known} {what}(s) in both {left_name} ({count(a)}) and {right_name} ({count(b)}): "
            f"{names}{more}"
        )
        both = kept.refs(np.concatenate([np.flatnonzero(a), np.flatnonzero(b)]))
        out.append(Finding(check, severity, text, both, (left_name, right_name)))
    return out


def pairs_of(kept: Kept) -> list[tuple[tuple[int, str], tuple[int, str]]]:
    return list(combinations(kept.splits(), 2))


def count(rows: npt.NDArray[np.generic] | Sequence[object] | int) -> str:
    """`1 row`, `2 rows`: of a mask, of positions, of a list."""
    if isinstance(rows, int):
        number = rows
    elif isinstance(rows, np.ndarray) and rows.dtype == np.bool_:
        number = int(rows.sum())
    else:
        number = len(rows)
    return f"{number} row{'' if number == 1 else 's'}"
