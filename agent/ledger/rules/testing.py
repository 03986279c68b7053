"""The sealed test: opened once, after the selection, on the selected digest; nothing of it scored before."""

from __future__ import annotations

from collections.abc import Iterator

from agent.ledger.evidence import Evidence, Finding, Rule, Violation


def sealed(e: Evidence) -> Iterator[Finding]:
    """No evaluation, no sampled answer and no committed or stored score of a test row before the opening."""
    opened = e.of("test_open")[0].seq if e.of("test_open") else len(e.records) + 1
    for record in e.of("eval"):
        if record.payload["split"] == "test" and record.seq < opened:
            yield Violation(f"{record.payload['eval_id']} was scored before the test was opened", (record.seq,))
    for record in e.of("intent"):
        if record.payload["args"].get("split") == "test" and record.seq < opened:
            yield Violation(f"{record.payload['effect']} on the test was begun before it was opened", (record.seq,))
    names = {r.payload["eval_id"] for r in e.of("eval") if r.payload["split"] == "test"}
    yield from _early_commits(e, names, opened)
    if not e.of("test_open"):
        yield from _stored(e)


def _early_commits(e: Evidence, names: set[str], opened: int) -> Iterator[Finding]:
    for revision in e.revisions:
        if revision.records is None or revision.records >= opened:
            continue
        for path in e.history.files(revision.sha, "evals"):
            folder = path.split("/")[1]
            if folder in names or folder.endswith("-test"):
                yield Violation(f"{path} was committed before the test was opened", (opened,), ((path, None),))
                return


def _stored(e: Evidence) -> Iterator[Finding]:
    """Rows of the test split in any evaluation on disk, whatever its folder is called."""
    test = set(e.members.get("test", {}))
    for path in sorted(e.path("evals").glob("*/rows.jsonl")):
        name = path.relative_to(e.workdir).as_posix()
        for line, row in enumerate(e.jsonl(name) or [], start=1):
            if row.get("id") in test:
                yield Violation(
                    f"{row['id']} is a test row, decoded in {name} while the test is sealed", files=((name, line),)
                )
                break


def once(e: Evidence) -> Iterator[Finding]:
    """One opening, after the selection, of the selected digest, under the frozen contract and data."""
    opened = e.of("test_open")
    for record in opened[1:]:
        yield Violation("the test was opened a second time", (opened[0].seq, record.seq))
    for record in opened:
        payload = record.payload
        select = next(
            (r for r in reversed(e.of("decision")) if r.payload["what"] == "select" and r.seq < record.seq), None
        )
        if select is None:
            yield Violation("the test was opened before a checkpoint was selected", (record.seq,))
        else:
            details = select.payload["details"]
            if payload["update"] != select.payload["chosen"] or payload["digest"] != details.get(
                "digest", payload["digest"]
            ):
                yield Violation("the test was opened for another model than the selected one", (select.seq, record.seq))
        if e.frozen and payload["contract_sha256"] != e.frozen.payload["contract_sha256"]:
            yield Violation(
                "the test was opened under another contract than the frozen one", (e.frozen.seq, record.seq)
            )
        if e.contract and payload["membership_sha256"] != e.contract["membership_sha256"]:
            yield Violation("the test was opened on other data than was frozen", (record.seq,))


def models(e: Evidence) -> Iterator[Finding]:
    """The test is decoded for the seed and the opened checkpoint alone, once each; a checkpoint is one on record."""
    opened = e.of("test_open")
    allowed = {r.payload["digest"] for r in opened} | ({e.contract["seed_model"]["digest"]} if e.contract else set())
    seen: dict[str, int] = {}
    for record in e.of("eval"):
        model = record.payload["model"]
        if record.payload["split"] != "test":
            continue
        if model["digest"] not in allowed:
            yield Violation(
                f"{record.payload['eval_id']} is of a model that the test was not opened for", (record.seq,)
            )
        if model["digest"] in seen:
            yield Violation("a model was decoded on the test twice", (seen[model["digest"]], record.seq))
        seen.setdefault(model["digest"], record.seq)
    if e.finished and opened:
        for record in opened:
            if record.payload["digest"] not in seen:
                yield Violation("the test was opened for a model that was never decoded on it", (record.seq,))
        if e.contract and e.contract["seed_model"]["digest"] not in seen:
            yield Violation("the test was opened and the seed never decoded on it", (opened[0].seq,))


def known(e: Evidence) -> Iterator[Finding]:
    """Every evaluated model is the contract's seed, or a checkpoint of a registered run with its digest."""
    points = {
        (r.payload["run_id"], p["update"]): p["digest"] for r in e.of("run_end") for p in r.payload["checkpoints"]
    }
    ended = {r.payload["run_id"] for r in e.of("run_end")}
    runs = {r.payload["run_id"]: r.seq for r in reversed(e.of("register"))}
    for record in e.of("eval"):
        model = record.payload["model"]
        name = record.payload["eval_id"]
        if model["kind"] == "seed":
            if e.contract and model["digest"] != e.contract["seed_model"]["digest"]:
                yield Violation(f"{name} is told as the seed's and is of another model", (record.seq,))
        elif model["run"] not in runs or runs[model["run"]] > record.seq:
            yield Violation(f"{name} is of a run that was not registered before", (record.seq,))
        elif (model["run"], model["update"]) in points:
            if points[(model["run"], model["update"])] != model["digest"]:
                yield Violation(f"{name} is of another checkpoint than its run's end names", (record.seq,))
        elif model["run"] in ended and e.finished:
            yield Violation(f"{name} is of a checkpoint that its run's end does not name", (record.seq,))


def reused(e: Evidence) -> Iterator[Finding]:
    """A test that was used before is called so: in the brief, at the opening and in the report alike."""
    told = e.brief.get("reused_benchmark")
    for record in e.of("test_open"):
        if told is not None and bool(told) != record.payload["reused"]:
            yield Violation(f"the brief says reused {told}, the opening says {record.payload['reused']}", (record.seq,))
        data = (e.result or {}).get("data") or {}
        if e.result is not None and bool(data.get("reused_benchmark")) != record.payload["reused"]:
            text = "the report does not call the benchmark what the opening calls it"
            yield Violation(text, (record.seq,), (("report/result.json", None),))


RULES = (
    Rule("test-sealed", "Nothing of the test was scored, sampled or committed before it was opened.", sealed),
    Rule(
        "test-once", "The test was opened once, after the selection, for the selected model, under the contract.", once
    ),
    Rule(
        "test-models",
        "The test was decoded once for the seed and once for the opened checkpoint, for no other.",
        models,
    ),
    Rule("eval-models", "Every evaluated model is the contract's seed or a registered run's checkpoint.", known),
    Rule("test-reused", "A benchmark used before is called so everywhere.", reused),
)
