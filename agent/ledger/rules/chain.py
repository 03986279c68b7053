"""The file itself: its chain, its torn pieces, its history in git, and the head that was given out."""

from __future__ import annotations

from collections.abc import Iterator

from agent.ledger.chain import GENESIS, LEDGER
from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation
from agent.ledger.records import check_payload
from tools.errors import UsageError
from tools.files import file_sha256


def chain(e: Evidence) -> Iterator[Finding]:
    for line, why in e.broken:
        yield Violation(f"ledger line {line}: {why}", files=((LEDGER, line),))
    if e.torn:
        yield NotChecked(f"{len(e.torn)} bytes after the last whole record: a write was cut off and not yet recovered")


def payloads(e: Evidence) -> Iterator[Finding]:
    for record in e.records:
        try:
            check_payload(record.kind, record.payload)
        except UsageError as err:
            yield Violation(f"record {record.seq}: {err}", (record.seq,))


def torn(e: Evidence) -> Iterator[Finding]:
    told = {r.payload["details"].get("file"): r for r in e.of("recovery") if r.payload["what"] == "torn_line"}
    for path in sorted(e.workdir.glob("ledger.torn-*")):
        record = told.pop(path.name, None)
        if record is None:
            yield Violation(f"{path.name} was set aside and no recovery record says so", files=((path.name, None),))
        elif file_sha256(path) != record.payload["details"]["sha256"]:
            yield Violation(f"{path.name} is not the piece that was set aside", (record.seq,), ((path.name, None),))
    for name, record in told.items():
        yield Violation(f"{name} was set aside and is gone", (record.seq,), ((str(name), None),))


def git(e: Evidence) -> Iterator[Finding]:
    """Every git revision of the ledger is a byte prefix of the next, the last one of the file on disk."""
    if not e.history.exists:
        yield NotChecked("the work directory has no git history: a ledger rewritten whole would not show")
        return
    if not e.revisions:
        if e.records and e.last("plan") is not None:
            yield NotChecked("no state was committed yet")
        return
    before = b""
    now = e.data + e.torn
    for revision in e.revisions:
        blob = e.history.blob(revision.sha, LEDGER)
        if blob is None:
            yield Violation(f"commit {revision.sha[:12]} has no {LEDGER}")
            continue
        if not blob.startswith(before):
            yield _cut(before, blob, f"commit {revision.sha[:12]}")
        before = blob
        yield from _message(e, revision.sha, revision.records, revision.head, blob)
    if not now.startswith(before):
        yield _cut(before, now, "the file on disk")
    faults = e.history.faults()
    if faults:
        yield Violation(f"the git repository is damaged: {faults[:200]}")


def _cut(before: bytes, after: bytes, where: str) -> Violation:
    """Which line of an earlier revision is missing or other in a later one."""
    old, new = before.split(b"\n"), after.split(b"\n")
    same = next((i for i, line in enumerate(old) if i >= len(new) or line != new[i]), len(old))
    return Violation(
        f"an earlier revision of the ledger is not the beginning of {where}: line {same + 1} was changed or cut",
        (same + 1,),
        ((LEDGER, same + 1),),
    )


def _message(e: Evidence, sha: str, records: int | None, head: str | None, blob: bytes) -> Iterator[Finding]:
    if records is None:
        yield Violation(f"commit {sha[:12]} does not carry the ledger's count and head: it was not made by a run")
        return
    lines = blob.count(b"\n")
    if lines != records:
        yield Violation(f"commit {sha[:12]} says {records} records, its ledger has {lines}")
    actual = e.records[records - 1].hash if 0 < records <= len(e.records) else GENESIS
    if actual != head:
        text = f"commit {sha[:12]} was made at head {str(head)[:12]} of {records} records, record {records} has another"
        yield Violation(text, (records,), ((LEDGER, records),))


def head(e: Evidence) -> Iterator[Finding]:
    if e.expect_head is None:
        yield NotChecked("no head was given (--expect-head HASH:COUNT): a rewrite of ledger and git together is unseen")
        return
    want, count = e.expect_head
    found = e.records[count - 1].hash if 0 < count <= len(e.records) else None
    if found != want:
        text = f"the head given out is {want[:12]} at {count} records; here it is {str(found)[:12]} of {len(e.records)}"
        yield Violation(text, (min(count, len(e.records)),), ((LEDGER, count),))


RULES = (
    Rule(
        "ledger-chain", "Every line is canonical, hashed over its content, chained to the one before, in time.", chain
    ),
    Rule("ledger-payload", "Every record carries what its kind must carry, and nothing else.", payloads),
    Rule("ledger-torn", "Every torn piece that was set aside is there, unchanged and told.", torn),
    Rule("ledger-git", "Every git revision of the ledger is a byte prefix of the next; commits carry its head.", git),
    Rule("ledger-head", "The head that was given out at the hand-over is in the chain.", head),
)
