"""The data check: manifests in, a report out (`rehear check`). Reads, sets unusable rows aside, then looks across
splits.

`check_manifests` is for a run (an empty split or absent references raise), `check_paths` for the command line,
`check_clips` for rows already read. A map over rows, a map over distinct stretches of audio and a reduce over
columns, so the work can be cut up in any way and the report is the same. `leaks` says which train rows to drop so
that evaluation stays clean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tools.data.cache import FactsCache
from tools.data.hearing import Hearing, hear_all
from tools.data.languages import language_code
from tools.data.manifest import exists, iter_manifest
from tools.data.quarantine import quarantine_findings
from tools.data.reading import Item, Quarantined
from tools.data.report import BLOCK, CheckReport, Finding
from tools.data.rowchecks import Options, aside, map_rows
from tools.data.setchecks import Kept, set_checks
from tools.data.sound import Mapper
from tools.data.splits import role
from tools.data.table import MOST_SPLITS, Ints, Rows, RowTable
from tools.errors import CheckError, UsageError
from tools.rows import Clip

CHUNK = 4_096  # rows mapped together
LIST_ROWS = 100_000  # up to here the kept rows are a plain list

Progress = Callable[[str, int, int], None]


def check_manifests(manifests: Mapping[str, Path | str], **options: Any) -> CheckReport:
    """Check manifests given by split name.

    Options: task, languages, max_duration_s, max_quarantine, near, fold_labels (`rowchecks.Options`); cache (a
    path: what was heard is remembered there), progress(what, done, total), mapper (in place of `map`). Raises
    UsageError for a manifest that is not there, CheckError for a split without rows or without any reference.
    """
    report = _check({split: Path(path) for split, path in manifests.items()}, options)
    fatal = next((f for f in report.findings if f.check in {"empty_split", "no_references"}), None)
    if fatal:
        raise CheckError(fatal.text)
    return report


def check_paths(paths: Sequence[Path | str], **options: Any) -> CheckReport:
    """Check manifests named by file: several are splits named by file stem, a single one is one set (or its split
    column).

    Raises UsageError for a manifest that is not there or two of one name.
    """
    names = split_names([Path(path) for path in paths])
    return _check(dict(zip(names, map(Path, paths))), options, single=len(names) == 1)


def split_names(paths: Sequence[Path]) -> list[str]:
    """A name for each manifest: its file's up to the first dot; where that names two, up to the last (`all.train.json`),
    or else its folder's (`train/manifest.json`). Raises UsageError where two are still of one name.
    """
    whole = [path.resolve() for path in paths]
    ways = [[split_name(path) for path in whole]]
    ways.append([path.name.removesuffix(".gz").removesuffix(path.suffix) for path in whole])
    ways.append([path.parent.name for path in whole])
    for names in ways:
        if len(set(names)) == len(names):
            return names
    twice = Counter(ways[0]).most_common(1)[0][0]
    raise UsageError(f"two manifests are named {twice}: splits are named by file or folder, rename one")


def split_name(path: Path) -> str:
    """The split that a manifest's file name stands for: the name up to its first dot (a folder's own name)."""
    return path.resolve().name.split(".")[0]


def check_clips(clips: Iterable[Clip], quarantined: Sequence[Quarantined] = (), **options: Any) -> CheckReport:
    """Check rows already read; `quarantined` are those that reading set aside."""
    return _run(iter([*clips, *quarantined]), options)


def _check(manifests: Mapping[str, Path], options: Mapping[str, Any], single: bool = False) -> CheckReport:
    if len(manifests) > MOST_SPLITS:
        raise UsageError(
            f"{len(manifests)} manifests are {len(manifests)} splits; at most {MOST_SPLITS} can be told apart"
        )
    for path in manifests.values():
        if not exists(path):
            raise UsageError(f"manifest not found: {path}")
    empty: list[Finding] = []
    report = _run(_read(manifests, single, empty), options)
    report.findings[:0] = empty
    return report


def _read(manifests: Mapping[str, Path], single: bool, empty: list[Finding]) -> Iterator[Item]:
    for split, path in manifests.items():
        rows = 0
        for item in iter_manifest(path, "" if single else split):
            rows += 1
            yield item
        if not rows:
            empty.append(Finding("empty_split", BLOCK, f"{path} has no rows: the {split} split is empty"))


def _run(items: Iterator[Item], given: Mapping[str, Any]) -> CheckReport:
    options = _options(given)
    mapper: Mapper = given.get("mapper") or map
    progress: Progress = given.get("progress") or _silent
    table, quarantined = RowTable(), []
    for part, out in mapper(partial(map_rows, options=options), _chunks(items)):
        table.append(part)
        quarantined += out
        progress("rows", len(table) + len(quarantined), 0)
    table.seal()
    rows_in = len(table) + len(quarantined)
    usable = _unique_ids(table, quarantined)
    cache = given.get("cache")
    cache = FactsCache(cache) if isinstance(cache, str | Path) else cache
    hearing = hear_all(table, usable, options, mapper, progress, cache)
    quarantined += hearing.quarantined
    quarantined.sort(key=lambda q: (_order(table, q.manifest), q.row))
    kept = Kept(table, hearing.kept, hearing.stretch)
    findings = [
        *quarantine_findings(table, kept.rows, quarantined, options),
        *hearing.findings,
        *set_checks(kept, options),
    ]
    rows: Sequence[Clip] = Rows(table, kept.rows)
    rows = list(rows) if len(rows) <= LIST_ROWS else rows
    return CheckReport(rows_in, rows, quarantined, findings, hearing.ties, hearing.near_checked, hearing.heard)


def _options(given: Mapping[str, Any]) -> Options:
    known = {f.name for f in fields(Options)}
    strange = set(given) - known - {"mapper", "progress", "cache"}
    if strange:
        raise TypeError(f"unknown option of the data check: {sorted(strange)[0]}")
    _within(given)
    codes = []
    for name in given.get("languages") or ():
        code = language_code(name)
        if code is None:
            raise UsageError(f"language {name!r} is not a known name or code: use one such as 'en' or 'de'")
        codes.append(code)
    return Options(**{k: v for k, v in given.items() if k in known} | {"languages": tuple(codes)})


def _within(given: Mapping[str, Any]) -> None:
    """Raises UsageError for an option that means nothing."""
    if given.get("task", "asr") not in {"asr", "label"}:
        raise UsageError(f"the task of a check is asr or label, not {given['task']!r}")
    if not 0 < given.get("max_duration_s", 30.0) < float("inf"):
        raise UsageError(f"the window must be a number of seconds above 0, not {given['max_duration_s']}")
    share = given.get("max_quarantine")
    if isinstance(share, int | float) and not 0 <= share <= 1:
        raise UsageError(f"what may be set aside is a share from 0 to 1, not {share}")


def _chunks(items: Iterator[Item]) -> Iterator[list[Item]]:
    while chunk := list(islice(items, CHUNK)):
        yield chunk


def _unique_ids(table: RowTable, quarantined: list[Quarantined]) -> Ints:
    """Rows whose id no earlier row of their split has; the others are set aside (answers are keyed by id)."""
    order = np.lexsort((np.arange(len(table)), table["id"], table["split"]))
    later = np.zeros(len(table), dtype=bool)
    same = (table["id"][order][1:] == table["id"][order][:-1]) & (
        table["split"][order][1:] == table["split"][order][:-1]
    )
    later[order[1:]] = same
    for at in np.flatnonzero(same):
        clip = table.clip(int(order[at + 1]))
        head = at
        while head > 0 and same[head - 1]:
            head -= 1
        other = table.ref(int(order[head]))
        reason = f"duplicate id: row {other.row} of {other.manifest} has it too"
        quarantined.append(aside(clip, reason, "duplicate_id"))
    return np.flatnonzero(~later)


def _order(table: RowTable, manifest: str) -> int:
    return table.manifests.index(manifest) if manifest in table.manifests else len(table.manifests)


def _silent(what: str, done: int, total: int) -> None:
    """No progress shown."""


@dataclass(frozen=True)
class Leaks:
    """What to do about rows shared between splits.

    `drop`: train rows to leave out, by (manifest, row) with the checks that named them; `dev_test`: findings
    between dev and test, which no dropping from train can mend.
    """

    drop: dict[tuple[str, int], tuple[str, ...]]
    dev_test: list[Finding]

    def clean(self, clips: Iterable[Clip]) -> list[Clip]:
        """The clips without the train rows to drop."""
        return [clip for clip in clips if (clip.manifest, clip.row) not in self.drop]


def leaks(report: CheckReport) -> Leaks:
    """Which train rows to drop so that dev, test and retention are clean, and whether dev and test leak into each
    other.
    """
    drop: dict[tuple[str, int], set[str]] = {}
    dev_test = []
    for finding in report.blocks:
        if len(finding.splits) != 2:
            continue
        roles = {role(split) for split in finding.splits}
        if roles == {"dev", "test"}:
            dev_test.append(finding)
        elif "train" in roles:
            for row in finding.rows:
                if role(row.split) == "train":
                    drop.setdefault((row.manifest, row.row), set()).add(finding.check)
    return Leaks({place: tuple(sorted(names)) for place, names in drop.items()}, dev_test)


__all__ = ["CheckReport", "Hearing", "Leaks", "check_clips", "check_manifests", "check_paths", "leaks"]
