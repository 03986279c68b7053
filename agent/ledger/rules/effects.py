"""Effects: announced before done, done once, their files as they were; questions and answers; overrides."""

from __future__ import annotations

from collections.abc import Iterator

from agent.brief import Brief
from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation
from agent.ledger.records import KINDS
from agent.questions import QUESTIONS
from tools.errors import UsageError

WEIGHTS = (".safetensors", ".pt", ".bin", ".npy")
ACTORS = {"agent", "customer", "tool", "human"}


def intents(e: Evidence) -> Iterator[Finding]:
    announced: dict[str | None, tuple[int, str]] = {}
    done: dict[str | None, int] = {}
    for record in e.records:
        if record.kind == "intent":
            announced.setdefault(record.key, (record.seq, record.payload["effect"]))
        if record.kind != "outcome":
            continue
        intent = announced.get(record.key) if record.key else None
        if intent is None:
            yield Violation(f"{record.payload['effect']} has an outcome and no intent before it", (record.seq,))
        elif intent[1] != record.payload["effect"]:
            text = f"the outcome of {record.payload['effect']} answers the intent of {intent[1]}"
            yield Violation(text, (intent[0], record.seq))
        if record.payload["ok"] and record.key in done:
            text = f"{record.payload['effect']} was done twice under one key"
            yield Violation(text, (done[record.key], record.seq))
        if record.payload["ok"]:
            done[record.key] = record.seq
    if e.finished:
        for record in e.open_intents:
            yield Violation(
                f"{record.payload['effect']} was announced and has no outcome, yet the run says it is finished",
                (record.seq,),
            )


def files(e: Evidence) -> Iterator[Finding]:
    """Files on record are on disk as they were; the last record of a file counts."""
    latest = {}
    for record in e.of("outcome"):
        for name, sha in (record.payload["result"].get("files") or {}).items():
            latest[name] = (record.seq, sha)
    absent = 0
    gone: set[str] = set()  # exports that are not here at all: private, so not in the history that an auditor is given
    for name, (seq, sha) in latest.items():
        if not isinstance(sha, str) or name.startswith("/") or ".." in name.split("/"):
            yield Violation(f"record {seq} names {name!r}, which is no file of a work directory", (seq,))
            continue
        found = e.sha256(name)
        if found is None and name.endswith(WEIGHTS):
            absent += 1
        elif (
            found is None and name.split("/")[2:3] == ["export"] and not e.path("/".join(name.split("/")[:3])).exists()
        ):
            gone.add("/".join(name.split("/")[:3]))
        elif found is None:
            yield Violation(f"{name} is on record and missing", (seq,), ((name, None),))
        elif found != sha:
            yield Violation(
                f"{name} is not the file on record (sha256 {found[:12]}, was {sha[:12]})", (seq,), ((name, None),)
            )
    if absent:
        yield NotChecked(f"{absent} file(s) of weights are on record and not here")
    for folder in sorted(gone):
        yield NotChecked(f"{folder} is on record and not here: none of its files was compared")


def brief(e: Evidence) -> Iterator[Finding]:
    """brief.yaml, the plan's brief and the answers on record say the same."""
    path = e.path("brief.yaml")
    plan = e.last("plan")
    if plan is None:
        return
    try:
        planned = Brief.build(plan.payload["brief"])
        asked = Brief.load(path) if path.is_file() else None
    except UsageError as err:
        yield Violation(f"the brief cannot be read: {err}", (plan.seq,), (("brief.yaml", None),))
        return
    if planned.digest != plan.payload["brief_sha256"]:
        yield Violation("the plan's brief is not the one whose digest it carries", (plan.seq,))
    if asked is None:
        yield Violation("brief.yaml is missing", (plan.seq,), (("brief.yaml", None),))
        return
    for record in e.of("answer"):
        if record.seq < plan.seq:
            asked = asked.answered({record.payload["id"]: record.payload["value"]})
    wanted, have = asked.to_json(), planned.to_json()
    for key in sorted({*wanted, *have}):
        if wanted.get(key) != have.get(key):
            text = f"{key} is {wanted.get(key)!r} in brief.yaml and its answers, {have.get(key)!r} in the plan"
            yield Violation(text, (plan.seq,), (("brief.yaml", None),))


def answers(e: Evidence) -> Iterator[Finding]:
    """Answers fit their questions; only the customer answers what has no safe default; money is never assumed."""
    asked: set[str] = set()
    for record in e.records:
        payload = record.payload
        if record.kind == "question":
            asked.add(payload["id"])
        if record.kind != "answer":
            continue
        name = payload["id"]
        if name not in asked:
            yield Violation(f"{name} is answered and was never asked", (record.seq,))
        if name in QUESTIONS:
            try:
                Brief(name="any").answered({name: payload["value"]})
            except UsageError as err:
                yield Violation(f"the answer to {name} is not valid: {err}", (record.seq,))
        if payload["default"] != (record.actor == "agent"):
            yield Violation(
                f"{name} was answered by the {record.actor}, and default is {payload['default']}", (record.seq,)
            )
        if record.actor == "agent" and name in ("budget", "data"):
            yield Violation(f"{name} was assumed by the agent: only the customer may give it", (record.seq,))


def overrides(e: Evidence) -> Iterator[Finding]:
    for record in e.of("override"):
        if record.actor != "customer":
            what = record.payload["what"]
            yield Violation(f"{what} was overridden by the {record.actor}, not by the customer", (record.seq,))
    for record in e.records:
        if record.actor not in ACTORS:
            yield Violation(f"record {record.seq} was written by {record.actor!r}", (record.seq,))


def plan(e: Evidence) -> Iterator[Finding]:
    """A plan stands before everything that it plans; one skill drives a run from beginning to end."""
    plans = e.of("plan")
    late = ("data_check", "freeze", "eval", "register", "launch", "test_open", "claim")
    first = plans[0].seq if plans else None
    for record in e.records:
        if record.kind in late and (first is None or record.seq < first):
            yield Violation(f"a {record.kind} was recorded before any plan", (record.seq,))
            break
    skills = {r.skill for r in e.records}
    if len(skills) > 1:
        other = next(r for r in e.records if r.skill != e.records[0].skill)
        yield Violation("the skill changed in the middle of the run", (e.records[0].seq, other.seq))
    unknown = sorted({r.kind for r in e.records} - set(KINDS))
    if unknown:
        yield Violation(f"unknown kinds of record: {', '.join(unknown)}")


RULES = (
    Rule("effect-intent", "Every outcome has an earlier intent under its key; an effect is done once.", intents),
    Rule("effect-files", "Every file on record is on disk with the digest on record.", files),
    Rule("plan-first", "A plan stands before what it plans, and one skill drives the whole run.", plan),
    Rule("brief-kept", "brief.yaml, the plan's brief and the answers on record say the same.", brief),
    Rule(
        "answers-valid", "Every answer fits its question; what has no safe default was said by the customer.", answers
    ),
    Rule("overrides-owned", "Only the customer overrides anything.", overrides),
)
