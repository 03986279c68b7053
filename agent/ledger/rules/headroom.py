"""The verdict of mining: its error rates again from the stored answers, by other code than made them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.ledger.evidence import Evidence, Finding, NotChecked, Rule, Violation, near

WHERE = (("report/headroom.json", None),)
FIGURES = ("greedy", "mean_sample", "oracle")


def rebuilt(e: Evidence) -> Iterator[Finding]:
    """Greedy, mean sample and oracle of report/headroom.json are what jiwer finds in the stored answers."""
    told = e.json("report/headroom.json")
    if not isinstance(told, dict) or not told.get("figures"):
        return
    if told.get("task") == "label" or e.profile is None:
        yield NotChecked("the figures of mining were not made again: a label task, or another normaliser here")
        return
    clips = {str(c.get("id")): c for c in e.jsonl("data/clips.jsonl") or []}
    name = told["mining"]["subset"]
    answers = [a for part in (name, f"{name}-more") for a in e.jsonl(f"rollouts/{part}.jsonl") or []]
    if not clips or not answers:
        yield NotChecked("the figures of mining were not made again: the stored answers or texts are not here")
        return
    found = _figures(answers, clips, e.profile)
    for key in FIGURES:
        if not near(found[key], told["figures"].get(key)):
            text = f"{key} of mining is {told['figures'].get(key)}, the stored answers give {found[key]}"
            yield Violation(text, (told["verdict"]["record"],), WHERE)
    learn = next((r for r in e.of("decision") if r.seq == told["verdict"]["record"]), None)
    if learn is None or learn.payload["what"] != "learn" or learn.payload["chosen"] != told["verdict"]["learn"]:
        yield Violation("the verdict is not the decision on record", (told["verdict"]["record"],), WHERE)


def _figures(answers: list[dict[str, Any]], clips: dict[str, dict[str, Any]], profile: Any) -> dict[str, float | None]:
    """{greedy, mean_sample, oracle}: corpus totals over the clips that have samples (and, for greedy, a greedy answer)."""
    first: dict[str, int] = {}
    sampled: dict[str, list[int]] = {}
    units: dict[str, int] = {}
    for answer in answers:
        clip = clips[answer["clip_id"]]
        errors, units[answer["clip_id"]] = _errors(profile, clip, answer["text"])
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


def _errors(profile: Any, clip: dict[str, Any], text: str) -> tuple[int, int]:
    """(errors, reference units) of one answer, counted by jiwer."""
    import jiwer

    ref, hyp, _ = profile.pair(clip.get("text") or "", text, clip.get("lang"))
    if not ref:
        return len(hyp), 0
    found = jiwer.process_words(" ".join(ref), " ".join(hyp))
    return found.substitutions + found.deletions + found.insertions, len(ref)


RULES = (
    Rule(
        "headroom-rebuilt",
        "The verdict of mining is the one on record, and its error rates are what the stored answers give.",
        rebuilt,
    ),
)
