"""Evaluations: files as recorded, figures again by a second scorer, every row of its split once, no reference moved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from agent.contract import references_digest
from agent.ledger.evidence import EvalFiles, Evidence, Finding, NotChecked, Rule, Violation, near
from agent.ledger.rowfiles import DIGESTS, read_digests, row_lines

COUNTS = ("insertions", "deletions", "substitutions", "reference_units")


def files(e: Evidence) -> Iterator[Finding]:
    """rows.jsonl, digests.txt and scores.json are those on record; a changed row is named."""
    for found in e.evals:
        payload, seq = found.record.payload, found.record.seq
        name = f"evals/{found.id}"
        listed = e.sha256(f"{name}/{DIGESTS}")
        if payload["row_digests_sha256"] is not None and listed != payload["row_digests_sha256"]:
            yield Violation(
                f"{found.id}: {DIGESTS} is missing or not the one on record", (seq,), ((f"{name}/{DIGESTS}", None),)
            )
        rows = e.sha256(f"{name}/rows.jsonl")
        if rows is None:
            yield Violation(f"{found.id}: its hypotheses are missing", (seq,), ((found.name, None),))
        elif rows != payload["rows_sha256"]:
            yield from _changed_rows(found)
        scores = e.sha256(f"{name}/scores.json")
        if scores != payload["scores_sha256"]:
            how = "missing" if scores is None else "not the file on record"
            yield Violation(f"{found.id}: scores.json is {how}", (seq,), ((f"{name}/scores.json", None),))


def _changed_rows(found: EvalFiles) -> Iterator[Finding]:
    """Which lines of rows.jsonl are not those that were sealed."""
    seq, sealed = found.record.seq, read_digests(found.folder)
    lines = dict(row_lines(found.folder / "rows.jsonl"))
    named = False
    for number, (sha, row) in enumerate(sealed or [], start=1):
        line = lines.get(number)
        if line is None:
            yield Violation(f"{found.id}: row {row} was taken out", (seq,), ((found.name, number),))
        elif hashlib.sha256(line).hexdigest() != sha:
            yield Violation(f"{found.id}: row {row} is not as it was decoded", (seq,), ((found.name, number),))
        named = named or line is None or hashlib.sha256(line).hexdigest() != sha
        if named and len(lines) != len(sealed or []):
            break  # everything after a row taken out or put in is shifted
    if not named:
        yield Violation(f"{found.id}: rows.jsonl is not the file on record", (seq,), ((found.name, None),))


def hidden(e: Evidence) -> Iterator[Finding]:
    """Every folder of evaluations is on record, each under its own id."""
    seen: dict[str, int] = {}
    for record in e.of("eval"):
        name = record.payload["eval_id"]
        if name in seen:
            yield Violation(f"{name} was evaluated twice under one id", (seen[name], record.seq))
        seen[name] = record.seq
    for folder in sorted(p for p in e.path("evals").glob("*") if p.is_dir()):
        pending = not e.finished and (e.in_flight(folder.name) or _announced(e, folder.name))
        if folder.name not in seen and not pending:
            yield Violation(f"evals/{folder.name} is on disk and in no record", files=((f"evals/{folder.name}", None),))


def _announced(e: Evidence, name: str) -> bool:
    """Whether an evaluation has its outcome and only its `eval` record is still to come."""
    return any(r.payload["args"].get("eval_id") == name for r in e.of("intent"))


def coverage(e: Evidence) -> Iterator[Finding]:
    """Each evaluation covers exactly the ids of its split: none missing, doubled or foreign."""
    for found in e.evals:
        if found.rows is None or e.membership is None:
            continue
        seq, split = found.record.seq, str(found.record.payload["split"])
        members = e.members.get(split, {})
        ids = [str(row.get("id")) for row in found.rows]
        first: dict[str, int] = {}
        for line, name in enumerate(ids, start=1):
            if name in first:
                yield Violation(
                    f"{found.id}: row {name} is counted twice", (seq,), ((found.name, first[name]), (found.name, line))
                )
            first.setdefault(name, line)
            if name not in members:
                yield Violation(f"{found.id}: row {name} is not in {split}", (seq,), ((found.name, line),))
        missing = sorted(set(members) - set(first))
        if missing:
            shown = ", ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")
            yield Violation(
                f"{found.id}: {len(missing)} rows of {split} are missing: {shown}", (seq,), ((found.name, None),)
            )
        if found.record.payload["rows"] != len(ids):
            yield Violation(
                f"{found.id}: {found.record.payload['rows']} rows on record, {len(ids)} in the file", (seq,)
            )


def references(e: Evidence) -> Iterator[Finding]:
    """References, speakers and recordings of stored rows are those of the data check and of the frozen contract."""
    told = (e.contract or {}).get("references", {})
    for found in e.evals:
        if found.rows is None:
            continue
        seq, split = found.record.seq, str(found.record.payload["split"])
        members = e.members.get(split, {})
        touched = False
        for line, row in enumerate(found.rows, start=1):
            member = members.get(str(row.get("id")))
            for key in _differing(row, member) if member else ():
                touched = True
                text = f"{found.id}: the {key} of {row.get('id')} is not the one that was checked"
                yield Violation(text, (seq,), ((found.name, line),))
        pairs = [(str(row.get("id")), str(row.get("ref"))) for row in found.rows]
        whole = {name for name, _ in pairs} == set(members)
        if not touched and whole and told.get(split) and references_digest(pairs) != told[split]:
            yield Violation(
                f"{found.id}: its references are not those of the frozen contract", (seq,), ((found.name, None),)
            )


def _differing(row: dict[str, Any], member: dict[str, Any]) -> list[str]:
    out = []
    sha = member.get("text_sha256")
    if sha is not None and hashlib.sha256(str(row.get("ref")).encode()).hexdigest() != sha:
        out.append("reference")
    return out + [
        key for key in ("speaker", "recording", "lang") if (row.get(key) or None) != (member.get(key) or None)
    ]


def scores(e: Evidence) -> Iterator[Finding]:
    """Every figure again from the stored hypotheses, by jiwer."""
    from tools.errors import RehearError
    from tools.text import profile

    name = _profile_name(e)
    if name is None:
        if e.of("eval"):
            yield NotChecked("no profile is on record: scores were not recomputed")
        return
    try:
        known = profile(name)
    except RehearError as err:
        yield Violation(f"the profile {name!r} on record is not known: {err}")
        return
    found = [finding for one in e.evals if one.rows is not None for finding in _again(e, one, known)]
    if found and e.contract and e.profile is None:
        yield NotChecked(f"profile {name} here is another version than the contract's, and gives other figures")
        return
    yield from found


def _again(e: Evidence, found: EvalFiles, known: Any) -> Iterator[Finding]:
    from tools.errors import RehearError
    from tools.verify import recompute_scores

    try:
        again = recompute_scores(found.folder / "rows.jsonl", known)
    except RehearError as err:
        yield Violation(f"{found.id}: {err}", (found.record.seq,), ((found.name, None),))
        return
    yield from _compared(e, found, again)


def _profile_name(e: Evidence) -> str | None:
    name = e.contract["profile"]["name"] if e.contract else e.brief.get("profile")
    return None if name is None else str(name)


def _compared(e: Evidence, found: EvalFiles, again: dict[str, Any]) -> Iterator[Finding]:
    told, seq = found.record.payload["scores"], found.record.seq
    for key, value in (("wer", again["value"]), ("cer", again["cer"]["value"])):
        if not near(told.get(key), value):
            yield Violation(
                f"{found.id}: {key} on record is {told.get(key)}, its hypotheses give {value}",
                (seq,),
                ((found.name, None),),
            )
    if _errors(told) != _errors(again) or told["reference_units"] != again["reference_units"]:
        text = f"{found.id}: {_counts(told)} on record, its hypotheses give {_counts(again)}"
        yield Violation(text, (seq,), ((found.name, None),))
    filed = e.json(f"evals/{found.id}/scores.json")
    where = ((f"evals/{found.id}/scores.json", None),)
    if not isinstance(filed, dict):
        return
    if not near(filed.get("value"), again["value"]) or _errors(filed) != _errors(again):
        text = f"{found.id}: scores.json says {filed.get('value')}, its hypotheses give {again['value']}"
        yield Violation(text, (seq,), where)
    for key in ("rows", "empty_references", "hallucinated_units"):
        if filed.get(key) != again[key]:
            yield Violation(
                f"{found.id}: scores.json says {key} {filed.get(key)}, there are {again[key]}", (seq,), where
            )
    diagnosed = (filed.get("diagnostics") or {}).get("truncated")
    truncated = sum(row.get("finish") == "length" for row in found.rows or [])
    if diagnosed is not None and diagnosed != truncated:
        yield Violation(
            f"{found.id}: scores.json says {diagnosed} truncated rows, there are {truncated}", (seq,), where
        )


def _errors(scores: Any) -> int:
    """Errors in all: ties in alignment may split them differently between two scorers, never their sum."""
    return int(scores["insertions"] + scores["deletions"] + scores["substitutions"])


def _counts(scores: Any) -> str:
    return ", ".join(f"{scores[k]} {k}" for k in COUNTS)


RULES = (
    Rule("eval-files", "Hypotheses, row digests and scores are the files on record; a changed row is named.", files),
    Rule("eval-hidden", "Every evaluation on disk is on record, once.", hidden),
    Rule("eval-coverage", "Every evaluation covers exactly the rows of its split, each once.", coverage),
    Rule(
        "eval-references", "References and speakers of stored rows are those that were checked and frozen.", references
    ),
    Rule("eval-scores", "Every error rate and count is what jiwer finds in the stored hypotheses.", scores),
)
