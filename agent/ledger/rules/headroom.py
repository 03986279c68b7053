"""The verdict of mining: its error rates again from the stored answers, by other code than made them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation, near
from agent.ledger.rowfiles import rollout_files

WHERE = (("report/headroom.json", None),)
FIGURES = ("greedy", "mean_sample", "oracle")


def rebuilt(e: Evidence) -> Iterator[Finding]:
    """Greedy, mean sample and oracle of report/headroom.json and of the decision it rests on are what the stored answers
    give, and verdict, reason and headroom follow from them."""
    told = e.json("report/headroom.json")
    if not isinstance(told, dict) or not isinstance(told.get("verdict"), dict):
        return
    at = told["verdict"].get("record")
    learn = next((r for r in e.of("decision") if r.seq == at and r.payload["what"] == "learn"), None)
    details = learn.payload["details"] if learn else {}
    said = (learn.payload["chosen"], details.get("reason")) if learn else None
    if said != (told["verdict"].get("learn"), told["verdict"].get("reason")):
        yield Violation("the verdict is not the decision on record", (at,) if learn else (), WHERE)
        return
    kept = {k: v for k, v in details["evidence"].items() if k != "thresholds"}
    for key in sorted({*kept, *(told.get("evidence") or {})}):
        if kept.get(key) != (told.get("evidence") or {}).get(key):
            yield Violation(f"{key} of the evidence is not the one on record", (at,), WHERE)
    figures = told.get("figures") or {}
    if not figures:
        if details.get("evidence", {}).get("clips"):
            yield Violation("the verdict has no figures, and clips were sampled for it", (at,), WHERE)
        return
    if e.profile is None:
        yield NotChecked("the figures of mining were not made again: the contract's normaliser is another one here")
        return
    clips = {str(c.get("id")): c for c in e.jsonl("data/clips.jsonl") or []}
    answers = [a for name in rollout_files(details["subset"]) for a in e.jsonl(name) or []]
    if not clips or not answers:
        yield NotChecked("the figures of mining were not made again: the stored answers or texts are not here")
        return
    if not all(isinstance(a.get("text"), str) and a.get("clip_id") in clips and "index" in a for a in answers):
        yield Violation(f"rollouts/{details['subset']} holds lines that are no answers to the clips", (at,), WHERE)
        return
    found = _figures(answers, clips, e)
    for where, held in (("report/headroom.json", figures), ("the decision", details["evidence"])):
        for key in FIGURES:
            if not near(found[key], held.get(key)):
                text = f"{key} of mining is {held.get(key)} in {where}, the stored answers give {found[key]}"
                yield Violation(text, (at,), WHERE)
    if found["greedy"] is not None and found["oracle"] is not None:
        headroom = found["greedy"] - found["oracle"]
        for held in (figures.get("headroom"), kept["headroom"]):
            if not near(headroom, held):
                text = f"the headroom is {held}, greedy less oracle of the stored answers is {headroom}"
                yield Violation(text, (at,), WHERE)


def _figures(answers: list[dict[str, Any]], clips: dict[str, dict[str, Any]], e: Evidence) -> dict[str, float | None]:
    """{greedy, mean_sample, oracle}: corpus totals over the clips that have samples (and, for greedy, a greedy answer)."""
    first: dict[str, int] = {}
    sampled: dict[str, list[int]] = {}
    units: dict[str, int] = {}
    for answer in answers:
        clip = clips[answer["clip_id"]]
        errors, units[answer["clip_id"]] = _errors(e, clip, answer["text"])
        if answer["index"] < 0:
            first[answer["clip_id"]] = errors
        else:
            sampled.setdefault(answer["clip_id"], []).append(errors)
    return {
        "greedy": _rate(first, units),
        "mean_sample": _rate({k: sum(v) / len(v) for k, v in sampled.items()}, units),
        "oracle": _rate({k: min(v) for k, v in sampled.items()}, units),
    }


def _rate(errors: dict[str, Any], units: dict[str, int]) -> float | None:
    total = sum(units[k] for k in errors)
    return sum(errors.values()) / total if total else None


def _errors(e: Evidence, clip: dict[str, Any], text: str) -> tuple[int, int]:
    """(errors, reference units) of one answer, in the declared metric: characters and words are counted by jiwer, a label
    is right or wrong, strictly read."""
    from tools.verify.scores import cut, jiwer_totals

    reference, characters = clip.get("text") or "", e.metric == "cer"
    if e.labels is not None:
        return int(e.labels.strict(text) != e.profile.normalise(reference)), 1
    pair = cut(e.profile, {"ref": reference, "hyp": text, "lang": clip.get("lang")})
    ref, hyp = pair[2:4] if characters else pair[:2]
    *wrong, units = jiwer_totals([ref], [hyp], characters)
    return sum(wrong), units


RULES = (
    Rule(
        "headroom-rebuilt",
        "The verdict of mining is the one on record, and its figures are what the stored answers give.",
        rebuilt,
    ),
)
