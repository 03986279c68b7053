"""The steps of the procedures: what each state does. A step composes tools, records every effect, and ends in an outcome.

`VERBS` is the one table of verbs with the outcomes each can have; modules are imported when they are first needed, so that
nothing heavy is loaded for `--help`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

VERBS: dict[str, tuple[str, ...]] = {
    "intake": ("ready",),
    "define": ("ready",),
    "check_data": ("ready",),
    "baseline": ("ready",),
    "mine": ("learn", "no_contrast", "exhausted"),
    "choose_run": ("ready",),
    "train": ("trained", "refresh"),
    "select": ("candidate", "seed"),
    "evaluate": ("ready",),
    "handover": ("done",),
    "recommend_sft": ("done",),
}


def load(verb: str) -> Any:
    """The module of a verb; it has `run(context) -> outcome`."""
    return import_module(f"agent.steps.{verb}")
