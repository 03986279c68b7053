"""Claims and the report: each figure again from records and stored rows, every run told, the ending as they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation, near
from agent.ledger.rules import labels

RESULT = "report/result.json"
WHERE = ((RESULT, None),)
FIGURES = ("seed", "candidate", "delta", "error_reduction", "blocks", "block_by", "verdict")
OTHER = "the normaliser here is another version than the contract's: the comparison was not made again"
TOLERANCE = 1e-6  # of an interval: two implementations of the same quantile


def comparison(e: Evidence) -> dict[str, Any] | None:
    """The paired comparison on the test again, from the two stored evaluations; None where there is no pair.

    Ask `judged` first: without the contract's own normaliser there is nothing to compare by.
    """
    if "comparison" not in e.cache:
        e.cache["comparison"] = _compare(e)
    return e.cache["comparison"]  # type: ignore[no-any-return]


def judged(e: Evidence) -> bool:
    """Whether the comparison can be made again: the contract's normaliser is the one here, or there is no pair."""
    return e.profile is not None or _test_pair(e) is None


def _compare(e: Evidence) -> dict[str, Any] | None:
    from tools.verify import recompute_interval

    pair = _test_pair(e)
    if pair is None or e.profile is None:
        return None
    paths = [found.folder / "rows.jsonl" for found in pair]
    if e.labels is not None:
        out = labels.compared_again(e, pair, e.labels.strict, _noise(e))
        return {**out, "seed": out["a"], "candidate": out["b"]}
    by = "speaker" if all(row.get("speaker") for row in pair[0].rows or []) else "recording"
    metric = "cer" if e.metric == "cer" else "unit"
    out = recompute_interval(paths[0], paths[1], e.profile, by=by, noise_floor=_noise(e), metric=metric)
    return {**out, "seed": out["a"], "candidate": out["b"]}


def _noise(e: Evidence) -> float:
    """What the seed differed from itself in other batches, as recorded; a gain within it is not shown."""
    outcome = e.last("outcome", effect="noise_floor")
    return abs(float(outcome.payload["result"].get("delta") or 0.0)) if outcome else 0.0


def _test_pair(e: Evidence) -> list[Any] | None:
    """The seed's and the opened checkpoint's evaluations on the test, both with rows."""
    seed = [x for x in e.evals if x.record.payload["split"] == "test" and x.record.payload["model"]["kind"] == "seed"]
    other = [x for x in e.evals if x.record.payload["split"] == "test" and x.record.payload["model"]["kind"] != "seed"]
    pair = [*seed[-1:], *other[-1:]]
    return pair if len(pair) == 2 and all(x.rows for x in pair) else None


def claims(e: Evidence) -> Iterator[Finding]:
    """Each claim cites evaluations on record before it, its run's registration, and figures that they bear out."""
    for claim in e.of("claim"):
        payload = claim.payload
        cited = [e.last("eval", eval_id=name) for name in payload["evals"]]
        for name, record in zip(payload["evals"], cited):
            if record is None or record.seq > claim.seq:
                yield Violation(f"claim {payload['id']} cites {name}, which was not evaluated before", (claim.seq,))
        if not payload["evals"] and payload["value"] is not None:
            yield Violation(f"claim {payload['id']} gives a figure and cites no evaluation", (claim.seq,))
        runs = {
            r.payload["model"]["run"] for r in cited if r is not None and r.payload["model"]["kind"] == "checkpoint"
        }
        yield from _registration(e, claim.seq, payload, runs)
        if judged(e):
            yield from _value(e, claim.seq, payload, [r for r in cited if r is not None])
        else:
            yield NotChecked(f"claim {payload['id']}: {OTHER}")


def _registration(e: Evidence, seq: int, payload: Any, runs: set[str]) -> Iterator[Finding]:
    registered = {r.seq: r.payload["run_id"] for r in e.of("register")}
    cited = payload["register"]
    if cited is not None and (cited not in registered or cited > seq):
        yield Violation(f"claim {payload['id']} cites record {cited} as its registration, which is none", (seq, cited))
    for run in sorted(runs):
        if registered.get(cited) != run:
            yield Violation(f"claim {payload['id']} is about {run} and does not cite its registration", (seq,))
    if cited is not None and cited in registered and e.of("freeze") and cited < e.of("freeze")[0].seq:
        yield Violation(f"claim {payload['id']} rests on a run registered before the freeze", (seq, cited))


def _value(e: Evidence, seq: int, payload: Any, cited: list[Any]) -> Iterator[Finding]:
    value, interval = payload["value"], payload["interval"]
    if not isinstance(value, int | float) or isinstance(value, bool):
        if interval is not None:
            yield Violation(f"claim {payload['id']} gives an interval and no figure", (seq,))
        return
    again = comparison(e) if len(cited) == 2 else None
    allowed = [v for record in cited for v in record.payload["scores"].values()]
    if again is not None:
        allowed += [again["error_reduction"], again["delta"]]
    if not any(near(value, v, TOLERANCE) for v in allowed if isinstance(v, int | float)):
        found = again["error_reduction"] if again else [e.score_of(r) for r in cited]
        yield Violation(f"claim {payload['id']} says {value}, what it cites gives {found}", (seq,))
    if interval is not None and not _same_interval(interval, again["interval"] if again else None):
        yield Violation(
            f"claim {payload['id']} gives the interval {interval}, the rows give {again and again['interval']}", (seq,)
        )


def _same_interval(told: Any, real: Any) -> bool:
    if told is None or real is None:
        return told is None and real is None
    return len(told) == 2 and all(near(a, b, TOLERANCE) for a, b in zip(told, real))


def table(e: Evidence) -> Iterator[Finding]:
    """Every row of the report's table is an evaluation on record; test rows are all there."""
    if e.result is None:
        return
    for row in e.result.get("table") or []:
        record = e.last("eval", eval_id=row.get("eval"))
        name = f"{row.get('model')} on {row.get('split')}"
        if record is None or record.seq != row.get("record") or record.payload["rows_sha256"] != row.get("rows_sha256"):
            yield Violation(f"the report's row {name} is no evaluation on record", files=WHERE)
            continue
        if record.payload["split"] != row["split"] or (record.payload["model"]["kind"] == "seed") != (
            row["model"] == "seed"
        ):
            yield Violation(
                f"the report's row {name} shows {row['eval']}, which is another split or model", (record.seq,), WHERE
            )
        for key in ("wer", "cer", "label_error", "macro_error"):
            if not near(row.get(key), record.payload["scores"].get(key)):
                text = (
                    f"the report says {key} {row.get(key)} for {name}, the record {record.payload['scores'].get(key)}"
                )
                yield Violation(text, (record.seq,), WHERE)
        if row.get("rows") != record.payload["rows"]:
            yield Violation(
                f"the report says {row.get('rows')} rows for {name}, the record {record.payload['rows']}",
                (record.seq,),
                WHERE,
            )
    shown = {row.get("eval") for row in e.result.get("table") or []}
    for record in e.of("eval"):
        if record.payload["split"] == "test" and record.payload["eval_id"] not in shown:
            yield Violation(
                f"{record.payload['eval_id']} is on record and not in the report's table", (record.seq,), WHERE
            )


def compared(e: Evidence) -> Iterator[Finding]:
    """The report's comparison is what the stored rows give, drawn with the declared seed and number of resamples."""
    if e.result is None:
        return
    if not judged(e):
        yield NotChecked(OTHER)
        return
    told, again = e.result.get("comparison"), comparison(e)
    if told is None and again is None:
        return
    if told is None or again is None:
        yield Violation("the report's comparison and the evaluations on the test do not go together", files=WHERE)
        return
    for key in FIGURES:
        if not near(told.get(key), again[key], TOLERANCE):
            yield Violation(f"the report's {key} is {told.get(key)}, the rows give {again[key]}", files=WHERE)
    for key in ("interval", "delta_interval"):
        if key in told and not _same_interval(told[key], again[key]):
            yield Violation(f"the report's {key} is {told[key]}, the rows give {again[key]}", files=WHERE)


def ending(e: Evidence) -> Iterator[Finding]:
    """The ending is the one that selection and comparison lead to."""
    if e.result is None:
        return
    learn, select = e.last("decision", what="learn"), e.last("decision", what="select")
    again = comparison(e) if judged(e) else e.result.get("comparison")
    if select is None:
        due = "no_contrast" if learn is not None and learn.payload["chosen"] is False else None
    elif select.payload["chosen"] == "seed":
        due = "seed_wins"
    else:
        due = {"better": "candidate_wins", "worse": "seed_wins"}.get(again["verdict"] if again else "", "not_shown")
    told = e.result.get("termination_reason")
    if due is not None and told != due:
        yield Violation(f"the report ends as {told}, the records lead to {due}", files=WHERE)
    finish = e.last("decision", what="finish")
    if finish is not None and finish.payload["chosen"] != told:
        yield Violation(f"the run finished as {finish.payload['chosen']}, the report says {told}", (finish.seq,), WHERE)


def told(e: Evidence) -> Iterator[Finding]:
    """Every registered run and what it came to is in the report: best of many is not told as one."""
    if e.result is None:
        return
    named = {r.get("run_id"): r for r in e.result.get("registrations") or []}
    for record in e.of("register"):
        row = named.get(record.payload["run_id"])
        if row is None:
            yield Violation(f"{record.payload['run_id']} was registered and is not in the report", (record.seq,), WHERE)
        elif row.get("updates") != record.payload["updates"] or row.get("random_seed") != record.payload["random_seed"]:
            yield Violation(
                f"the report tells {record.payload['run_id']} otherwise than it was registered", (record.seq,), WHERE
            )
    select = e.last("decision", what="select")
    part = e.result.get("selection")
    if select is not None and (part or {}).get("selected") != select.payload["chosen"]:
        yield Violation("the report shows another selection than the one on record", (select.seq,), WHERE)
    if select is not None:
        yield from _curve(e, select)


def _curve(e: Evidence, select: Any) -> Iterator[Finding]:
    own = select.payload["details"].get("run_id")
    curves = {own: (e.result or {}).get("curve") or []}
    curves |= {x.get("run_id"): x.get("curve") or [] for x in (e.result or {}).get("other_runs") or []}
    shown = {(run, 0 if p["update"] in (0, "seed") else p["update"]): p for run, c in curves.items() for p in c}
    for c in select.payload["details"]["candidates"]:
        at = 0 if c["update"] == "seed" else c["update"]
        point = shown.get((c.get("run", own), at))
        if point is None:
            yield Violation(f"the report's curve leaves update {at} out", (select.seq,), WHERE)
        elif not near(point.get("dev"), c["dev"]) or not near(point.get("retention"), c["retention"]):
            yield Violation(f"the report's curve at update {at} is not what was selected from", (select.seq,), WHERE)


def retention(e: Evidence) -> Iterator[Finding]:
    """Where there is a retention set, seed and chosen checkpoint were measured on it and the report says so."""
    if not e.members.get("retention"):
        return
    select = e.last("decision", what="select")
    measured = [r for r in e.of("eval") if r.payload["split"] == "retention"]
    if select is not None and not any(r.payload["model"]["kind"] == "seed" for r in measured):
        yield Violation("the seed was never measured on the retention set", (select.seq,))
    if select is None or select.payload["chosen"] == "seed":
        return
    digest = select.payload["details"].get("digest")
    own = next((r for r in reversed(measured) if r.payload["model"]["digest"] == digest), None)
    if own is None:
        yield Violation("the chosen checkpoint was never measured on the retention set", (select.seq,))
        return
    if e.result is None:
        return
    part = e.result.get("retention")
    seed = next(r for r in reversed(measured) if r.payload["model"]["kind"] == "seed" and r.payload["contract_sha256"])
    a, b = e.score_of(seed), e.score_of(own)
    if part is None or not near(part.get("seed"), a) or not near(part.get("candidate"), b):
        yield Violation(
            f"the report's retention is not what was measured: seed {a}, candidate {b}", (seed.seq, own.seq), WHERE
        )


def accounts(e: Evidence) -> Iterator[Finding]:
    """The report's budget, data, digests and ledger head are those on record."""
    if e.result is None:
        return
    budget = e.result.get("budget") or {}
    mark = ((e.result.get("provenance") or {}).get("ledger") or {}).get("records")
    upto = [r for r in e.records if mark is None or r.seq <= mark]
    spent = sum(r.payload["amount"] for r in upto if r.kind == "settle")
    if budget and not near(budget.get("spent"), spent, 1e-4):
        yield Violation(f"the report says {budget.get('spent')} was spent, the ledger {spent:.6g}", files=WHERE)
    data, check = e.result.get("data") or {}, e.last("data_check")
    if check is not None and data.get("splits") is not None and data["splits"] != check.payload["splits"]:
        yield Violation("the report's splits are not those on record", (check.seq,), WHERE)
    contract = e.result.get("contract") or {}
    if e.frozen and contract and contract.get("digest") != e.frozen.payload["contract_sha256"]:
        yield Violation("the report names another contract than the frozen one", (e.frozen.seq,), WHERE)
    provenance = e.result.get("provenance") or {}
    head = provenance.get("ledger") or {}
    if head and not (0 < head["records"] <= len(e.records) and e.records[head["records"] - 1].hash == head["head"]):
        yield Violation("the report was made from another ledger", files=WHERE)
    if not head:
        yield NotChecked("the report does not say which ledger head it was made from")
    select = e.last("decision", what="select")
    if select is not None and provenance.get("selected_digest") not in (
        None,
        "",
        select.payload["details"].get("digest"),
    ):
        yield Violation("the report names another checkpoint than the selected one", (select.seq,), WHERE)


RULES = (
    Rule("claim-evidence", "Every claim cites evaluations and registration, and they give its figures again.", claims),
    Rule(
        "report-table",
        "Every row of the report's table is an evaluation on record, and all of the test's are there.",
        table,
    ),
    Rule("report-comparison", "The report's comparison and interval are what the stored rows give.", compared),
    Rule("report-ending", "The ending is the one that the records lead to.", ending),
    Rule(
        "report-runs", "Every registered run, the whole curve and the selection are in the report as on record.", told
    ),
    Rule("report-retention", "Retention was measured where there is a set for it, and is told as measured.", retention),
    Rule("report-accounts", "Budget, data, digests and ledger head of the report are those on record.", accounts),
)
