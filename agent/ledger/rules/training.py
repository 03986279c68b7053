"""Training: registered before it starts, every attempt told, its data and settings fixed, its claims borne out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from agent.ledger.chain import Record
from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation, near

LR_TOLERANCE = 1e-12


def registered(e: Evidence) -> Iterator[Finding]:
    """A run is registered once, after the freeze and before its launch, with settings that are still those on disk."""
    seen: dict[str, Record] = {}
    for record in e.of("register"):
        payload = record.payload
        run, name = payload["run_id"], settings_file(e, payload["run_id"])
        if run in seen:
            yield Violation(f"{run} was registered twice", (seen[run].seq, record.seq))
        seen.setdefault(run, record)
        found = e.sha256(name)
        if found != payload["config_sha256"]:
            how = "missing" if found is None else "not the one that was registered"
            yield Violation(f"{name} is {how}", (record.seq,), ((name, None),))
        yield from _as_frozen(e, record)
        yield from _as_configured(e, record, name)
    for record in e.of("launch"):
        first = seen.get(record.payload["run_id"])
        if first is None or first.seq > record.seq:
            yield Violation(f"{record.payload['run_id']} was launched before it was registered", (record.seq,))


def _as_frozen(e: Evidence, record: Record) -> Iterator[Finding]:
    if e.contract is None or e.frozen is None:
        return
    rule = e.contract["selection"]
    for key in ("metric", "split", "retention_limit"):
        if record.payload[key] != rule[key]:
            text = (
                f"{record.payload['run_id']} was registered with {key} {record.payload[key]!r}, frozen is {rule[key]!r}"
            )
            yield Violation(text, (e.frozen.seq, record.seq))


def settings_file(e: Evidence, run: str) -> str:
    """Where a run's registered settings are; the trainer's own config.json stands beside them."""
    name = f"runs/{run}/registration.json"
    return name if e.path(name).is_file() else f"runs/{run}/config.json"


def config_of(e: Evidence, run: str) -> dict[str, Any] | None:
    """The registered settings of a run, None where they cannot be read."""
    body = e.json(settings_file(e, run))
    config = body.get("config") if isinstance(body, dict) else None
    return config if isinstance(config, dict) else None


def _as_configured(e: Evidence, record: Record, name: str) -> Iterator[Finding]:
    run, told = record.payload["run_id"], record.payload
    config = config_of(e, run)
    if config is None:
        return
    for key in ("updates", "random_seed", "preset"):
        if key in config and config[key] != told[key]:
            text = f"{run} was registered with {key} {told[key]!r}, its settings say {config[key]!r}"
            yield Violation(text, (record.seq,), ((name, None),))
    used = f"runs/{run}/config.json"
    body = e.json(used)
    if not isinstance(body, dict):
        return
    where = ((used, None),)
    if body.get("config") != config:
        yield Violation(f"{run} was not trained with the settings it was registered with", (record.seq,), where)
    identity = body.get("identity") or {}
    if identity.get("reward") and e.contract and identity["reward"] != e.contract["reward"]["digest"]:
        yield Violation(f"{run} was trained on another reward than the contract's", (record.seq,), where)
    if identity.get("seed model") and e.contract and identity["seed model"] != e.contract["seed_model"]["digest"]:
        yield Violation(f"{run} was not started from the contract's seed model", (record.seq,), where)


def attempts(e: Evidence) -> Iterator[Finding]:
    """Attempts are counted from 1 without a gap, one end each; every attempt in a run's metrics was launched."""
    ends: dict[tuple[str, int], Record] = {}
    launches: dict[str, list[Record]] = {}
    for record in e.records:
        if record.kind == "launch":
            run = record.payload["run_id"]
            launches.setdefault(run, []).append(record)
            if record.payload["attempt"] != len(launches[run]):
                text = f"{run}: launch {len(launches[run])} calls itself attempt {record.payload['attempt']}"
                yield Violation(text, (record.seq,))
            if len(launches[run]) > 1 and (run, len(launches[run]) - 1) not in ends:
                yield Violation(
                    f"{run}: attempt {len(launches[run])} was launched while the last has no end", (record.seq,)
                )
        elif record.kind == "run_end":
            key = (record.payload["run_id"], record.payload["attempt"])
            if key[1] > len(launches.get(key[0], [])):
                yield Violation(f"{key[0]} attempt {key[1]} has an end and was never launched", (record.seq,))
            if key in ends:
                yield Violation(f"{key[0]} attempt {key[1]} ended twice", (ends[key].seq, record.seq))
            ends.setdefault(key, record)
    for run, made in launches.items():
        yield from _metrics_attempts(e, run, made)
        if e.finished and (run, len(made)) not in ends:
            yield Violation(f"{run}: its last attempt has no end, yet the run says it is finished", (made[-1].seq,))


def _metrics_attempts(e: Evidence, run: str, made: list[Record]) -> Iterator[Finding]:
    name = f"runs/{run}/metrics.jsonl"
    lines = e.jsonl(name) or []
    named = {line.get("attempt") for line in lines if "event" not in line}
    resumes = sum(line.get("event") == "resume" for line in lines)
    if len(named) > len(made) or resumes > len(made) - 1:
        text = f"{run}: its metrics tell of {max(len(named), resumes + 1)} attempts, {len(made)} were launched"
        yield Violation(text, tuple(r.seq for r in made), ((name, None),))
    for before, record in pairwise(made):
        if record.payload["from_update"] < before.payload["from_update"]:
            yield Violation(f"{run}: attempt {record.payload['attempt']} starts before the last one did", (record.seq,))
    fresh = [r for r in made[1:] if r.payload["from_update"] == 0]
    first = next((line for line in lines if "event" not in line), None)
    if made[0].payload["from_update"] != 0:
        yield Violation(f"{run}: its first attempt did not start from the seed model", (made[0].seq,))
    if first is not None and first.get("update") != 1:
        yield Violation(f"{run}: its metrics begin with update {first.get('update')}", files=((name, 1),))
    if fresh and not _restarted(lines):
        yield Violation(f"{run}: a resumed run is told as a fresh one", tuple(r.seq for r in fresh), ((name, None),))


def _restarted(lines: list[dict[str, Any]]) -> bool:
    """Whether starting again from update 0 fits the metrics: nothing kept, or a resume that says so."""
    return (
        not lines
        or any(line.get("event") == "resume" and line.get("from_update") == 0 for line in lines)
        or all(line.get("attempt") == lines[0].get("attempt") for line in lines)
    )


def hidden(e: Evidence) -> Iterator[Finding]:
    """Every folder of runs is registered; one that was trained was launched."""
    known = {r.payload["run_id"] for r in e.of("register")}
    launched = {r.payload["run_id"] for r in e.of("launch")}
    for folder in sorted(p for p in e.path("runs").glob("*") if p.is_dir()):
        trained = (folder / "metrics.jsonl").is_file() or any(folder.glob("checkpoints/u*"))
        if folder.name not in known and (trained or e.finished):
            yield Violation(f"runs/{folder.name} is on disk and in no record", files=((f"runs/{folder.name}", None),))
        elif trained and folder.name not in launched:
            yield Violation(
                f"runs/{folder.name} was trained and never launched", files=((f"runs/{folder.name}", None),)
            )
    for name in sorted(known & launched):
        if not e.path(f"runs/{name}").is_dir() and e.last("run_end", run_id=name) is not None:
            yield Violation(f"runs/{name} is on record and missing", files=((f"runs/{name}", None),))


def final_view(lines: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """update -> its line, those of a dead attempt left out where they were repeated."""
    rows: dict[int, dict[str, Any]] = {}
    for line in lines:
        if line.get("event") == "resume":
            rows = {u: row for u, row in rows.items() if u <= line["from_update"]}
        elif "event" not in line and "update" in line:
            rows[line["update"]] = line
    return rows


def metrics(e: Evidence) -> Iterator[Finding]:
    """The file is the one at the run's end, its final view holds updates 1..N once, N within the registration."""
    for run, record in registrations(e):
        name = f"runs/{run}/metrics.jsonl"
        lines = e.jsonl(name)
        end = last_end(e, run)
        if lines is None:
            if end is not None and end.payload["metrics_sha256"] is not None:
                yield Violation(f"{name} is on record and missing", (end.seq,), ((name, None),))
            continue
        if end is not None and end.seq > last_launch(e, run) and end.payload["metrics_sha256"] != e.sha256(name):
            yield Violation(f"{name} is not the file at the run's end", (end.seq,), ((name, None),))
        view = final_view(lines)
        if sorted(view) != list(range(1, len(view) + 1)):
            yield Violation(f"{run}: its metrics hold updates {_gaps(sorted(view))}", files=((name, None),))
        for number, line in enumerate(lines, start=1):
            if line == {}:
                yield Violation(f"{name} line {number} is not JSON", files=((name, number),))
        if view and max(view) > record.payload["updates"]:
            text = f"{run}: {max(view)} updates were taken, {record.payload['updates']} were registered"
            yield Violation(text, (record.seq,), ((name, None),))
        yield from _repeats(name, lines)


def _repeats(name: str, lines: list[dict[str, Any]]) -> Iterator[Finding]:
    """Within an attempt each update comes once, in order."""
    last: dict[Any, int] = {}
    for number, line in enumerate(lines, start=1):
        if "event" in line or "update" not in line:
            continue
        attempt, update = line.get("attempt"), line["update"]
        if attempt in last and update != last[attempt] + 1:
            yield Violation(
                f"{name} line {number}: update {update} follows update {last[attempt]}", files=((name, number),)
            )
        last[attempt] = update


def _gaps(updates: list[int]) -> str:
    missing = sorted(set(range(1, (updates[-1] if updates else 0) + 1)) - set(updates))
    return f"up to {updates[-1]} without {missing[:5]}" if missing else str(updates[:5])


def settings(e: Evidence) -> Iterator[Finding]:
    """Settings do not change in the middle: learning rate, answers a clip and offers of every update are the run's."""
    for run, record in registrations(e):
        config, name = config_of(e, run), f"runs/{run}/metrics.jsonl"
        if config is None:
            continue
        for number, line in enumerate(e.jsonl(name) or [], start=1):
            for text in _off_settings(config, line) if "event" not in line and "update" in line else ():
                yield Violation(f"{run} update {line['update']}: {text}", (record.seq,), ((name, number),))


def _off_settings(config: dict[str, Any], line: dict[str, Any]) -> Iterator[str]:
    warmup, lr = config.get("warmup_updates"), config.get("lr")
    if lr is not None and line.get("lr") is not None and warmup is not None:
        due = lr * min(1.0, line["update"] / warmup) if warmup else lr
        if not near(line["lr"], due, LR_TOLERANCE):
            yield f"learning rate {line['lr']}, its settings give {due}"
    groups, answers, factor = (config.get(k) for k in ("groups", "answers", "offer_factor"))
    if answers and line.get("answers") is not None and line["answers"] != line["offered"] * answers:
        yield f"{line['answers']} answers of {line['offered']} clips, its settings say {answers} a clip"
    if groups and factor and line.get("offered", 0) > groups * factor:
        yield f"{line['offered']} clips were offered, its settings say at most {groups * factor}"
    if groups and line.get("retained", 0) > groups:
        yield f"{line['retained']} groups were kept, its settings say {groups}"


def registrations(e: Evidence) -> list[tuple[str, Record]]:
    return [(r.payload["run_id"], r) for r in e.of("register")]


def last_end(e: Evidence, run: str) -> Record | None:
    return next((r for r in reversed(e.of("run_end")) if r.payload["run_id"] == run), None)


def last_launch(e: Evidence, run: str) -> int:
    return max((r.seq for r in e.of("launch") if r.payload["run_id"] == run), default=0)


def present(e: Evidence) -> Iterator[Finding]:
    """The end of a run says what its metrics and checkpoints say."""
    for run, record in registrations(e):
        end = last_end(e, run)
        if end is None:
            continue
        if end.payload["updates"] > record.payload["updates"]:
            yield Violation(
                f"{run} ended after {end.payload['updates']} updates, {record.payload['updates']} registered",
                (record.seq, end.seq),
            )
        for point in end.payload["checkpoints"]:
            if point["update"] > record.payload["updates"]:
                yield Violation(
                    f"{run} has a checkpoint at update {point['update']}, beyond its registration",
                    (record.seq, end.seq),
                )
    if not e.of("run_end") and e.finished and e.of("launch"):
        yield NotChecked("no run came to an end")


RULES = (
    Rule(
        "run-registered",
        "A run is registered once, after the freeze, before its launch; its settings are still those.",
        registered,
    ),
    Rule("run-attempts", "Launches are counted without a gap, each has its end, and no attempt is hidden.", attempts),
    Rule("run-hidden", "Every run on disk is registered and launched, and none on record is gone.", hidden),
    Rule(
        "run-metrics",
        "A run's metrics are those at its end and hold every update once, within its registration.",
        metrics,
    ),
    Rule("run-end", "A run's end says no more updates or checkpoints than were registered.", present),
    Rule("run-settings", "No setting changes in the middle of a run.", settings),
)
