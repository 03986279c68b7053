"""Selection: the checkpoint that the declared rule picks, over all checkpoints of all runs, the seed among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from agent.contract import CLASSES_RULE, SELECTION_RULE
from agent.ledger.chain import Record
from agent.ledger.evidence import Evidence, Finding, Rule, Violation, near
from agent.ledger.rules import labels

HIGHER = ("accuracy", "macro_recall")
Candidate = dict[str, Any]


def _selects(e: Evidence) -> list[Record]:
    return [r for r in e.of("decision") if r.payload["what"] == "select"]


def _run(record: Record, candidate: Candidate) -> str | None:
    return candidate.get("run") or record.payload["details"].get("run_id")


def _measured(e: Evidence, record: Record, candidate: Candidate, split: str) -> Record | None:
    """The evaluation of a candidate on a split, the last one before the decision and under the contract."""
    for found in reversed(e.of("eval")):
        payload = found.payload
        model = payload["model"]
        if found.seq > record.seq or payload["split"] != split or payload["contract_sha256"] is None:
            continue
        if candidate["update"] == "seed":
            if model["kind"] == "seed":
                return found
        elif model["kind"] == "checkpoint" and (model["run"], model["update"]) == (
            _run(record, candidate),
            candidate["update"],
        ):
            return found
    return None


def figures(e: Evidence) -> Iterator[Finding]:
    """Each candidate's figures and digest are those of its evaluations; what was not measured is null."""
    for record in _selects(e):
        for candidate in record.payload["details"]["candidates"]:
            for split in ("dev", "retention"):
                found = _measured(e, record, candidate, split)
                told = candidate.get(split)
                real = e.score_of(found) if found else None
                name = f"{candidate['update']}: {split} {e.metric}"
                if split == "dev" and found is not None and candidate.get("recall") is not None:
                    yield from _recall(e, record, candidate, found)
                if not near(told, real):
                    seqs = (record.seq,) if found is None else (found.seq, record.seq)
                    yield Violation(f"{name} is told as {told}, its evaluation says {real}", seqs)
                if found is not None and found.payload["model"]["digest"] != candidate["digest"]:
                    yield Violation(f"{name} was measured on another model than the candidate", (found.seq, record.seq))


def _recall(e: Evidence, record: Record, candidate: Candidate, found: Record) -> Iterator[Finding]:
    """The recall of protected classes again, from the candidate's dev answers."""
    again = labels.again(e, found)
    for name, told in candidate["recall"].items():
        if again is not None and not near(told, again["recall"].get(name)):
            text = f"{candidate['update']}: recall of {name} is told as {told}, its answers give {again['recall'].get(name)}"
            yield Violation(text, (found.seq, record.seq))


def complete(e: Evidence) -> Iterator[Finding]:
    """Candidates are the seed and every checkpoint of every run before the decision, no other."""
    for record in _selects(e):
        listed = {
            (_run(record, c), c["update"]) for c in record.payload["details"]["candidates"] if c["update"] != "seed"
        }
        if all(c["update"] != "seed" for c in record.payload["details"]["candidates"]):
            yield Violation("the seed model is not among the candidates", (record.seq,))
        due: dict[tuple[Any, Any], int] = {}
        for end in e.of("run_end"):
            if end.seq < record.seq:
                due.update({(end.payload["run_id"], p["update"]): end.seq for p in end.payload["checkpoints"]})
        for found in e.of("eval"):
            model = found.payload["model"]
            if found.seq < record.seq and found.payload["split"] == "dev" and model["kind"] == "checkpoint":
                due.setdefault((model["run"], model["update"]), found.seq)
        for (run, update), seq in due.items():
            if (run, update) not in listed:
                yield Violation(f"{run} update {update} was left out of the selection", (seq, record.seq))
        for run, update in sorted(listed - set(due), key=str):
            yield Violation(f"{run} update {update} was selected from and is no checkpoint on record", (record.seq,))


def rule(e: Evidence) -> Iterator[Finding]:
    """The choice is the one that the frozen rule makes of the candidates."""
    if e.contract is None:
        return
    for record in _selects(e):
        details = record.payload["details"]
        declared = e.contract["selection"]["rule"]
        due = CLASSES_RULE if e.contract["selection"].get("protected") else SELECTION_RULE
        if declared != due or details.get("rule", declared) != declared:
            yield Violation(
                f"the selection rule {details.get('rule', declared)!r} is not the declared one", (record.seq,)
            )
        candidates = details["candidates"]
        limit = e.contract["selection"]["retention_limit"] if e.members.get("retention") else None
        eligible = [c for c in candidates if _eligible(e, c, candidates, limit)]
        for c in candidates:
            if bool(c.get("eligible")) != (c in eligible):
                how = "eligible" if c.get("eligible") else "not eligible"
                yield Violation(f"{c['update']} is called {how}, and the rule says otherwise", (record.seq,))
        sign = -1.0 if e.metric in HIGHER else 1.0
        best = min(eligible, key=lambda c: (sign * c["dev"], _order(c)), default=None)
        chosen = record.payload["chosen"]
        named = details.get("run_id")
        if best is None or chosen != best["update"] or best.get("run", named) != named:
            text = f"{chosen} was selected, the rule picks {best['update'] if best else 'nothing'}"
            yield Violation(text, (record.seq,))
        elif details.get("digest") not in (None, best["digest"]):
            yield Violation("the digest selected is not that of the chosen candidate", (record.seq,))


def _order(candidate: Candidate) -> tuple[str, int]:
    return ("", 0) if candidate["update"] == "seed" else (str(candidate.get("run") or ""), int(candidate["update"]))


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _eligible(e: Evidence, c: Candidate, candidates: list[Candidate], limit: float | None) -> bool:
    if not _finite(c.get("dev")) or not _keeps_classes(e, c, candidates):
        return False
    if limit is None:
        return True
    seed = next((x for x in candidates if x["update"] == "seed"), None)
    if seed is None or not _finite(c.get("retention")) or not _finite(seed.get("retention")):
        return False
    loss = seed["retention"] - c["retention"] if e.metric in HIGHER else c["retention"] - seed["retention"]
    return bool(loss <= limit + 1e-12)


def eligible_points(e: Evidence, run: str, update: int) -> list[tuple[int, float | None, bool]]:
    """(update, dev, whether the rule would take it) of a run's checkpoints up to `update`, from their evaluations."""
    seed = _as_candidate(e, "seed-dev", "seed-retention", "seed")
    limit = e.contract["selection"]["retention_limit"] if e.contract and e.members.get("retention") else None
    names = {
        r.payload["model"]["update"]: r.payload["eval_id"]
        for r in e.of("eval")
        if r.payload["model"]["run"] == run and r.payload["split"] == "dev" and r.payload["model"]["update"] <= update
    }
    points = [_as_candidate(e, n, n.removesuffix("dev") + "retention", u) for u, n in sorted(names.items())]
    return [(c["update"], c["dev"], _eligible(e, c, [seed, *points], limit)) for c in points]


def _as_candidate(e: Evidence, dev: str, kept: str, update: Any) -> Candidate:
    found, retained = e.last("eval", eval_id=dev), e.last("eval", eval_id=kept)
    recall = labels.again(e, found) if found is not None else None
    return {
        "update": update,
        "dev": e.score_of(found) if found else None,
        "retention": e.score_of(retained) if retained else None,
        "recall": (recall or {}).get("recall", {}),
    }


def _keeps_classes(e: Evidence, c: Candidate, candidates: list[Candidate]) -> bool:
    """Whether no protected class has lost more dev recall than was declared."""
    rule = (e.contract or {}).get("selection", {})
    seed = next((x for x in candidates if x["update"] == "seed"), None)
    for name in rule.get("protected") or ():
        before, now = ((x or {}).get("recall", {}).get(name) for x in (seed, c))
        if not _finite(before) or not _finite(now) or before - now > rule["class_limit"] + 1e-12:
            return False
    return True


def once(e: Evidence) -> Iterator[Finding]:
    """One selection, made before the test is opened and after every run of it has ended."""
    selects = _selects(e)
    opened = e.of("test_open")[0].seq if e.of("test_open") else None
    for record in selects[1:]:
        if record.payload["chosen"] != selects[0].payload["chosen"] or (opened and record.seq > opened):
            yield Violation("a second selection was made", (selects[0].seq, record.seq))
    for record in selects:
        for launch in e.of("launch"):
            key = (launch.payload["run_id"], launch.payload["attempt"])
            ended = any(
                (r.payload["run_id"], r.payload["attempt"]) == key and r.seq < record.seq for r in e.of("run_end")
            )
            if launch.seq < record.seq and not ended:
                yield Violation(
                    f"{key[0]} attempt {key[1]} had not ended when the selection was made", (launch.seq, record.seq)
                )
        later = next((r for r in e.of("launch") if r.seq > record.seq), None)
        if later is not None:
            yield Violation("a run was launched after the selection", (record.seq, later.seq))


RULES = (
    Rule("select-figures", "Every candidate's figures and digest are those of its evaluations.", figures),
    Rule(
        "select-complete",
        "Candidates are the seed and all checkpoints of all runs, retention measured or null.",
        complete,
    ),
    Rule("select-rule", "The chosen checkpoint is the one that the declared rule picks.", rule),
    Rule("select-once", "One selection, after every run has ended and before the test is opened.", once),
)
