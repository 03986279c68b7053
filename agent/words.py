"""The next justified action, in plain words, from the figures of a result alone."""

from __future__ import annotations

from typing import Any


def next_action(result: dict[str, Any]) -> str:
    """What the figures justify doing next; one thing."""
    reason = result["termination_reason"]
    if reason == "no_contrast":
        return str(result["mining"]["advice"])
    if reason == "candidate_wins":
        last = max((c["update"] for c in result["curve"]), default=0)
        if result["selection"]["selected"] == last:
            return (
                "Try the export on your own stack. The last checkpoint was still the best on dev: a longer run, registered "
                "anew with a fresh test split, may gain more."
            )
        return "Try the export on your own stack; before a second run, take a fresh test split, since this one is now used."
    if reason == "seed_wins":
        return (
            "Keep the seed model. Listen to the worst dev rows; if their references are right, collect training clips of that "
            "kind, or fine-tune on transcripts (SFT)."
        )
    compared = result["comparison"]
    if compared and compared["verdict"] == "too_few_blocks":
        return f"Record more test {compared['block_by']}s (ten or more), then evaluate the export on them once."
    return "Collect more test speakers before training more: the difference is smaller than what this test can show."
