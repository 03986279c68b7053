"""The data check: manifests in, a report out (`rehear check`). Reads, sets unusable rows aside, then looks across
splits.

`check_manifests` is for a run (an empty split or absent references raise), `check_paths` for the command line,
`check_clips` for rows already read. `leaks` says which train rows to drop so that evaluation stays clean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.data.languages import language_code
from tools.data.manifest import Quarantined, read_manifest
from tools.data.report import BLOCK, WARN, CheckReport, Finding, RowRef
from tools.data.rowchecks import Options, aside, check_audio, check_row
from tools.data.setchecks import all_set_checks
from tools.data.splits import role
from tools.errors import CheckError, UsageError
from tools.rows import Clip

MAX_QUARANTINE = 0.05


def check_manifests(manifests: Mapping[str, Path | str], **options: Any) -> CheckReport:
    """Check manifests given by split name.

    Options: task, languages, max_duration_s, max_quarantine. Raises UsageError for a manifest that is not there,
    CheckError for a split without rows or without any reference.
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
    names = [Path(path).name.split(".")[0] for path in paths]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise UsageError(f"two manifests are named {twice[0]}: splits are named by file, rename one")
    return _check(dict(zip(names, map(Path, paths))), options, single=len(names) == 1)


def check_clips(clips: Iterable[Clip], quarantined: Sequence[Quarantined] = (), **options: Any) -> CheckReport:
    """Check rows already read; `quarantined` are those that reading set aside."""
    return _run(list(clips), list(quarantined), _options(options))


def _check(manifests: Mapping[str, Path], options: Mapping[str, Any], single: bool = False) -> CheckReport:
    clips: list[Clip] = []
    aside_rows: list[Quarantined] = []
    empty: list[Finding] = []
    for split, path in manifests.items():
        read = read_manifest(path, "" if single else split)
        if not read.rows and not read.quarantined:
            empty.append(Finding("empty_split", BLOCK, f"{path} has no rows: the {split} split is empty"))
        clips += read.rows
        aside_rows += read.quarantined
    report = _run(clips, aside_rows, _options(options))
    return CheckReport(report.rows_in, report.kept, report.quarantined, [*empty, *report.findings], report.covered)


def _options(given: Mapping[str, Any]) -> Options:
    codes = []
    for name in given.get("languages") or ():
        code = language_code(name)
        if code is None:
            raise UsageError(f"language {name!r} is not a known name or code: use one such as 'en' or 'de'")
        codes.append(code)
    return Options(**{**given, "languages": tuple(codes)})


def _run(clips: list[Clip], quarantined: list[Quarantined], options: Options) -> CheckReport:
    rows_in = len(clips) + len(quarantined)
    readable = _sieve(clips, quarantined, lambda clip: check_row(clip, options))
    readable = _unique_ids(readable, quarantined)
    kept = _sieve(readable, quarantined, lambda clip: check_audio(clip, options))
    quarantined.sort(key=lambda q: (q.manifest, q.row))
    findings = [*_quarantine_findings(clips, kept, quarantined, options), *all_set_checks(kept, options)]
    return CheckReport(rows_in, kept, quarantined, findings)


def _sieve(clips: Sequence[Clip], quarantined: list[Quarantined], check: Any) -> list[Clip]:
    kept: list[Clip] = []
    for clip in clips:
        item = check(clip)
        if isinstance(item, Clip):
            kept.append(item)
        else:
            quarantined.append(item)
    return kept


def _unique_ids(clips: Sequence[Clip], quarantined: list[Quarantined]) -> list[Clip]:
    """Rows whose id no earlier row of the split has; the others are set aside (answers are keyed by id)."""
    first: dict[tuple[str, str], Clip] = {}
    kept = []
    for clip in clips:
        other = first.setdefault((clip.split, clip.id), clip)
        if other is clip:
            kept.append(clip)
        else:
            quarantined.append(
                aside(clip, f"duplicate id: row {other.row} of {other.manifest} has it too", "duplicate_id")
            )
    return kept


def _quarantine_findings(
    clips: Sequence[Clip], kept: Sequence[Clip], quarantined: Sequence[Quarantined], options: Options
) -> list[Finding]:
    out = []
    rows_in = Counter(clip.split for clip in clips)
    lost = Counter(q.split for q in quarantined if q.counts)
    for q in quarantined:
        if q.kind in {"row", "encoding", "skipme"}:
            rows_in[q.split] += 1
    left = Counter(clip.split for clip in kept)
    for split in sorted(rows_in):
        out += _split_findings(split, rows_in[split], left[split], lost[split], quarantined, options)
    over = [q for q in quarantined if q.kind == "window"]
    if over:
        longest = max(float(q.reason.split(": ")[1].split(" s")[0]) for q in over)
        text = (
            f"{len(over)} clip(s) over {options.max_duration_s:.1f} s (longest {longest:.2f} s): "
            "left out of every split alike"
        )
        out.append(Finding("over_window", WARN, text, tuple(map(RowRef.of, over))))
    return out


def _split_findings(
    split: str, rows_in: int, kept: int, lost: int, quarantined: Sequence[Quarantined], options: Options
) -> list[Finding]:
    rows = tuple(RowRef.of(q) for q in quarantined if q.split == split and q.counts)
    named = split or "the manifest"
    out = []
    why = next((q.reason for q in quarantined if q.split == split), "")
    missing = sum(1 for q in quarantined if q.split == split and q.kind in {"reference", "label"})
    if missing == rows_in:
        out.append(Finding("no_references", BLOCK, f"{named}: all {rows_in} rows lack their reference", rows))
    elif kept == 0:
        out.append(Finding("empty_split", BLOCK, f"{named}: none of its {rows_in} rows can be used ({why})", rows))
    if lost:
        limit = quarantine_limit(split, options)
        severity = BLOCK if lost > limit * rows_in else WARN
        text = (
            f"{named}: {lost} of {rows_in} rows set aside; the checks below were not done for them "
            f"(at most {limit:.0%} may be: {'too many' if severity == BLOCK else 'within it'})"
        )
        out.append(Finding("quarantine", severity, text, rows))
    if any(q.kind == "encoding" and q.split == split for q in quarantined):
        bad = [q for q in quarantined if q.kind == "encoding" and q.split == split]
        out.append(Finding("encoding", BLOCK, f"{named}: {bad[0].reason}", tuple(map(RowRef.of, bad))))
    return out


def quarantine_limit(split: str, options: Options) -> float:
    """The share of a split's rows that may be set aside before it blocks: 5 %, and 0 for dev and test, unless told."""
    given = options.max_quarantine
    if isinstance(given, Mapping):
        given = given.get(split)
    if given is not None:
        return float(given)
    return 0.0 if role(split) in {"dev", "test"} else MAX_QUARANTINE


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
