"""The data: membership as frozen, nothing in two splits, audio on disk as it was."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation

MEMBERSHIP = "data/membership.jsonl"
CHECKS = "data/checks.json"
MAX_SECONDS = 20 * 3600.0  # of audio decoded again in one audit
EPSILON_S = 1e-6
Row = dict[str, Any]


def membership(e: Evidence) -> Iterator[Finding]:
    """The membership file is the one that was checked, counted and frozen."""
    checks = e.of("data_check")
    if not checks:
        return
    last = checks[-1]
    found = e.sha256(MEMBERSHIP)
    if found is None:
        yield Violation(f"{MEMBERSHIP} is missing", (last.seq,), ((MEMBERSHIP, None),))
        return
    if found != last.payload["membership_sha256"]:
        yield Violation(f"{MEMBERSHIP} is not the one that was checked", (last.seq,), ((MEMBERSHIP, None),))
    if e.contract and e.frozen and e.contract["membership_sha256"] != last.payload["membership_sha256"]:
        yield Violation("the data checked last is not the data of the frozen contract", (e.frozen.seq, last.seq))
    counts = {name: len(rows) for name, rows in e.members.items()}
    told = {name: split["rows"] for name, split in last.payload["splits"].items()}
    if counts != told or sum(counts.values()) != last.payload["kept"]:
        text = f"{MEMBERSHIP} holds {counts}, the check kept {last.payload['kept']}: {told}"
        yield Violation(text, (last.seq,), ((MEMBERSHIP, None),))
    if e.sha256(CHECKS) != last.payload["checks_sha256"]:
        yield Violation(f"{CHECKS} is missing or not the report on record", (last.seq,), ((CHECKS, None),))


def _lines(e: Evidence) -> Iterator[tuple[int, Row]]:
    yield from enumerate(e.membership or [], start=1)


def _shared(e: Evidence, key: Callable[[Row], Any], what: str, apart: Callable[[str, str], bool]) -> Iterator[Finding]:
    """One violation a value that stands in two splits, naming the lines of the membership file."""
    places: dict[Any, list[tuple[int, Row]]] = defaultdict(list)
    for line, row in _lines(e):
        value = key(row)
        if value is not None:
            places[value].append((line, row))
    for value, rows in places.items():
        splits = sorted({str(row["split"]) for _, row in rows})
        pair = next(((a, b) for a, b in combinations(splits, 2) if apart(a, b)), None)
        if pair is None:
            continue
        shown = [next((line, row) for line, row in rows if row["split"] == split) for split in pair]
        names = " and ".join(f"{row['id']} ({row['split']})" for _, row in shown)
        yield Violation(f"{what} {value} is in {names}", files=tuple((MEMBERSHIP, line) for line, _ in shown))


def _always(left: str, right: str) -> bool:
    return True


def rows(e: Evidence) -> Iterator[Finding]:
    seen: dict[tuple[str, str], int] = {}
    for line, row in _lines(e):
        if not row.get("id") or not row.get("split"):
            yield Violation(f"line {line} of {MEMBERSHIP} is no membership row", files=((MEMBERSHIP, line),))
            continue
        first = seen.setdefault((row["split"], row["id"]), line)
        if first != line:
            yield Violation(
                f"row {row['id']} is twice in {row['split']}", files=((MEMBERSHIP, first), (MEMBERSHIP, line))
            )
    yield from _shared(e, lambda row: row.get("id"), "row", _always)


def audio(e: Evidence) -> Iterator[Finding]:
    yield from _shared(e, lambda row: row.get("audio_sha256"), "audio", _always)


def speakers(e: Evidence) -> Iterator[Finding]:
    """No voice on both sides; the retention set measures another capability and may share voices."""
    if _split_by(e) == "recording":
        yield NotChecked("the splits were made by recording: voices may be shared")
        return
    nameless = sum(not row.get("speaker") for row in e.membership or [])
    if nameless:
        yield NotChecked(f"{nameless} rows name no speaker: their separation cannot be certified")
    yield from _shared(e, lambda row: _speaker(row.get("speaker")), "speaker", lambda a, b: "retention" not in (a, b))


def _split_by(e: Evidence) -> str | None:
    return (e.brief.get("data") or {}).get("split_by")


def _speaker(name: str | None) -> str | None:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split()) if name else None


def recordings(e: Evidence) -> Iterator[Finding]:
    yield from _shared(e, lambda row: row.get("recording"), "recording", _always)


def overlaps(e: Evidence) -> Iterator[Finding]:
    """No two splits use the same stretch of a file."""
    by_file: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for line, row in _lines(e):
        by_file[str(row.get("audio"))].append((line, row))
    for rows_ in by_file.values():
        for (i, a), (j, b) in combinations(rows_, 2) if len({r["split"] for _, r in rows_}) > 1 else ():
            if a["split"] != b["split"] and _meet(a, b):
                text = f"{a['id']} ({a['split']}) and {b['id']} ({b['split']}) overlap in {a['audio']}"
                yield Violation(text, files=((MEMBERSHIP, i), (MEMBERSHIP, j)))


def _meet(a: Row, b: Row) -> bool:
    if a["channel"] is not None and b["channel"] is not None and a["channel"] != b["channel"]:
        return False
    ends = [
        float(r["offset_s"]) + (float("inf") if r["duration_s"] is None else float(r["duration_s"])) for r in (a, b)
    ]
    return min(ends) - max(float(a["offset_s"]), float(b["offset_s"])) > EPSILON_S


def decoded(e: Evidence) -> Iterator[Finding]:
    """The audio on disk decodes to the digests of the membership."""
    heard = _heard(e)
    rows_ = dict(_lines(e))
    for line, why in heard.unreadable.items():
        yield Violation(f"the audio of {rows_[line]['id']} cannot be used any more: {why}", files=((MEMBERSHIP, line),))
    for line, found in heard.digests.items():
        row = rows_[line]
        if found != row["audio_sha256"]:
            was, name = str(row["audio_sha256"])[:12], Path(str(row["audio"])).name
            text = f"the audio of {row['id']} ({name}) is not what was checked: {found[:12]}, was {was}"
            yield Violation(text, files=((MEMBERSHIP, line), (str(row["audio"]), None)))
    if heard.absent:
        yield NotChecked(f"the audio of {heard.absent} rows is not on this disk")
    if heard.left_out:
        yield NotChecked(f"{heard.left_out} rows beyond {MAX_SECONDS / 3600:.0f} hours of audio were not decoded again")


def similar(e: Evidence) -> Iterator[Finding]:
    """No sound is in two splits under another encoding, level, cut or channel, by the data room's own search."""
    for finding in _heard(e).findings:
        if finding.check == "audio_similar":
            lines = sorted({ref.row for ref in finding.rows})
            yield Violation(finding.text, files=tuple((MEMBERSHIP, line) for line in lines[:10]))


@dataclass
class _Heard:
    """One pass over the audio of the membership that is on this disk: digests by line, and what was found."""

    digests: dict[int, str] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)
    findings: list[Any] = field(default_factory=list)
    absent: int = 0
    left_out: int = 0


def _heard(e: Evidence) -> _Heard:
    if "heard" not in e.cache:
        e.cache["heard"] = _hear(e)
    return e.cache["heard"]  # type: ignore[no-any-return]


def _hear(e: Evidence) -> _Heard:
    from tools.data.checks import check_clips

    heard, clips, spent = _Heard(), [], 0.0
    order = {"test": 0, "dev": 1, "retention": 2}
    for line, row in sorted(_lines(e), key=lambda item: (order.get(str(item[1].get("split")), 3), item[0])):
        spent += float(row.get("duration_s") or 0.0)
        if not Path(str(row.get("audio"))).is_file():
            heard.absent += 1
        elif spent > MAX_SECONDS:
            heard.left_out += 1
        else:
            clips.append(_clip(row, line))
    if not clips:
        return heard
    report = check_clips(clips, max_duration_s=MAX_SECONDS, max_quarantine=1.0)
    heard.digests = {clip.row: clip.audio_sha256 for clip in report.kept}
    heard.unreadable = {q.row: q.reason for q in report.quarantined}
    heard.findings = report.findings
    return heard


def _clip(row: Row, line: int) -> Any:
    from tools.rows import Clip

    return Clip(
        id=str(row["id"]),
        audio=Path(str(row["audio"])),
        text=f"row {line}",
        offset_s=row["offset_s"],
        duration_s=row["duration_s"],
        channel=row["channel"],
        speaker=row.get("speaker"),
        split=str(row["split"]),
        manifest=MEMBERSHIP,
        row=line,
    )


RULES = (
    Rule("data-membership", "The membership file is the one that was checked, counted and frozen.", membership),
    Rule("data-rows", "No row is in a split twice, or in two splits.", rows),
    Rule("data-audio-shared", "No decoded audio is in two splits.", audio),
    Rule("data-speaker-shared", "No speaker is in two of train, dev and test.", speakers),
    Rule("data-recording-shared", "No recording is in two splits.", recordings),
    Rule("data-overlap", "No stretch of a file is in two splits.", overlaps),
    Rule("data-audio-similar", "No sound is in two splits re-encoded, louder, cut or on another channel.", similar),
    Rule("data-audio-digests", "The audio on disk decodes to the digests of the membership.", decoded),
)
