"""What was sampled and trained on: only training rows of the pool, in the order dealt, answers as many as announced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from agent.ledger.chain import Record
from agent.ledger.evidence import Evidence, Finding, Rule, Violation
from agent.ledger.rules import weights
from agent.ledger.rules.training import config_of, final_view, last_end, registrations

MOVED = 1e-6


def pool(e: Evidence) -> Iterator[Finding]:
    """Only training rows are sampled and trained on, and those of the pool that was registered."""
    train = set(e.members.get("train", {}))
    if not train:
        return
    learns = [r for r in e.of("decision") if r.payload["what"] == "learn"]
    for round_, learn in enumerate(learns, start=1):
        name, told = pool_file(round_), learn.payload["details"].get("pool_sha256")
        if told and e.sha256(name) != told:
            yield Violation(f"{name} is missing or not the pool on record", (learn.seq,), ((name, None),))
        for clip in sorted(set(_pool(e, round_)) - train)[:5]:
            yield Violation(f"the training pool holds {clip}, which is not a training row", files=((name, None),))
    for round_, (run, _) in enumerate(registrations(e), start=1):
        path, listed = f"runs/{run}/metrics.jsonl", set(_pool(e, round_))
        for number, line in enumerate(e.jsonl(path) or [], start=1):
            foreign = sorted(set(line.get("clips") or []) - (listed or train)) if "event" not in line else []
            if foreign:
                yield Violation(f"{run} trained on {foreign[0]}, which is not in its pool", files=((path, number),))


def pool_file(round_: int) -> str:
    return "data/pool.json" if round_ == 1 else f"data/pool-{round_}.json"


def _pool(e: Evidence, round_: int) -> list[str]:
    """The clips of a round's pool; one round a registered run."""
    filed = e.json(pool_file(round_))
    return list(filed.get("clips", [])) if isinstance(filed, dict) else []


def order(e: Evidence) -> Iterator[Finding]:
    """The clips of every update are among those that seed and pool put on offer: no other data crept in."""
    from tools.train.order import ClipOrder, Position

    for round_, (run, _) in enumerate(registrations(e), start=1):
        ids = _pool(e, round_)
        config, view = config_of(e, run), final_view(e.jsonl(f"runs/{run}/metrics.jsonl") or [])
        if not ids or config is None or not all("offered" in row and "clips" in row for row in view.values()):
            continue
        dealt = ClipOrder(ids, config["random_seed"], config["groups"] * config["offer_factor"])
        at = Position()
        for update in sorted(view):
            offer = dealt.following(at)
            window = {next(offer) for _ in range(view[update]["offered"])}
            if not set(view[update]["clips"]) <= window:
                text = f"{run} update {update}: its clips are not those that seed and pool put on offer"
                yield Violation(text, files=((f"runs/{run}/metrics.jsonl", None),))
                break
            at = dealt.advance(at, view[update]["offered"])


def rollouts(e: Evidence) -> Iterator[Finding]:
    """Sampled answers: of training rows, as many a clip as announced, at the contract's temperature, seeds distinct."""
    intents = {r.key: r for r in e.of("intent") if r.payload["effect"] == "sample"}
    train = set(e.members.get("train", {}))
    for outcome in e.of("outcome"):
        intent = intents.get(outcome.key)
        if intent is None or not outcome.payload["ok"]:
            continue
        for name in outcome.payload["result"].get("files") or {}:
            rows = e.jsonl(name)
            if rows is not None:
                yield from _answers(e, name, rows, intent, train)


def _answers(e: Evidence, name: str, rows: list[dict[str, Any]], intent: Record, train: set[str]) -> Iterator[Finding]:
    args = intent.payload["args"]
    sampled = [row for row in rows if row.get("index", -1) >= 0]
    counts = Counter(row.get("clip_id") for row in sampled)
    for number, row in enumerate(rows, start=1):
        if train and row.get("clip_id") not in train:
            yield Violation(
                f"{row.get('clip_id')} was sampled and is no training row", (intent.seq,), ((name, number),)
            )
        heat = e.contract["sampling"]["temperature"] if e.contract else None
        due = 0 if row.get("index", -1) < 0 else heat
        if due is not None and row.get("temperature") != due:
            text = f"an answer to {row.get('clip_id')} was sampled at {row.get('temperature')}, the contract says {due}"
            yield Violation(text, (intent.seq,), ((name, number),))
    clips, wanted = args.get("clips"), args.get("n")
    for clip in clips or []:
        if wanted and counts[clip] != wanted:
            text = f"{clip} has {counts[clip]} sampled answers in {name}, {wanted} were announced"
            yield Violation(text, (intent.seq,), ((name, None),))
    for clip in sorted(set(counts) - set(clips or counts), key=str):
        yield Violation(f"{clip} has answers in {name} and was not announced", (intent.seq,), ((name, None),))
    given = e.contract is not None and e.contract["sampling"].get("n") is None  # drawn by others: a seed counts by clip
    seeds = [(row.get("clip_id") if given else "", row["seed"]) for row in sampled if row.get("seed") is not None]
    if len(set(seeds)) != len(seeds):
        yield Violation(f"answers in {name} share a seed", (intent.seq,), ((name, None),))


def claimed(e: Evidence) -> Iterator[Finding]:
    """GSPO is claimed only where the sequence ratio moved, so that its clip could act at all."""
    for run, record in registrations(e):
        view = final_view(e.jsonl(f"runs/{run}/metrics.jsonl") or [])
        moved = any(_moved(row) for row in view.values())
        end = last_end(e, run)
        told = (end.payload["details"] if end else {}).get("gspo_claimed")
        if told and not moved:
            yield Violation(f"{run} claims its clipped ratio, which never moved", (record.seq, end.seq if end else 0))
        if not view or moved:
            continue
        for claim in e.of("claim"):
            if claim.payload["register"] == record.seq and "gspo" in claim.payload["text"].casefold():
                yield Violation(f"a claim names GSPO, and the ratio of {run} never moved", (record.seq, claim.seq))


def _moved(row: dict[str, Any]) -> bool:
    if row.get("ratio_moved") is not None:
        return bool(row["ratio_moved"] > MOVED)
    ratios = [row[k] for k in ("ratio_mean", "ratio_p99") if row.get(k) is not None]
    return any(abs(ratio - 1.0) > MOVED for ratio in ratios)


RULES = (
    Rule("run-pool", "Only training rows of the registered pool are sampled and trained on.", pool),
    Rule("run-order", "Every update's clips are those that seed and pool put on offer.", order),
    Rule(
        "run-rollouts",
        "Stored answers are as many, as hot and as distinct as was announced; none was filtered out.",
        rollouts,
    ),
    Rule("run-gspo", "GSPO is claimed only where the ratio moved.", claimed),
    Rule("run-checkpoints", "Checkpoints on disk are those on record, byte for byte.", weights.checkpoints),
    Rule("run-surface", "Frozen tensors did not move, and trained ones did.", weights.surface),
)
