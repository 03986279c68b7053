"""Whether a mined work directory's answers are still those of this model, prompt, decoding and scorer; and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.errors import CheckError

if TYPE_CHECKING:
    from agent.act import Context


def differences(context: Context) -> list[str]:
    """What of the frozen contract is no longer so: empty where the stored answers can be used."""
    from agent.steps.common import contract, profile_of, recogniser
    from agent.steps.rewards import frozen_reward
    from tools.score.transcripts import ALIGNER, SCORER, SCORER_VERSION

    frozen, profile = contract(context), profile_of(context)
    now = {
        "model": (frozen["seed_model"]["digest"][:12], recogniser(context).policy.digest[:12]),
        "normaliser": (frozen["profile"]["digest"][:12], profile.to_json()["digest"][:12]),
        "scorer": (
            f"{frozen['scoring']['scorer']} {frozen['scoring']['version']} {frozen['scoring'].get('aligner', ALIGNER)}",
            f"{SCORER} {SCORER_VERSION} {ALIGNER}",
        ),
        "reward": (frozen["reward"]["digest"][:12], frozen_reward(context).digest[:12]),
    }
    return [f"{name}: {before} -> {after}" for name, (before, after) in now.items() if before != after]


def reuse_answers(context: Context) -> None:
    """On a run after `rehear mine`: says that its answers are used, or raises CheckError saying why they cannot be."""
    mined = [r for r in context.ledger.records("outcome") if r.payload["effect"] == "headroom"]
    if not mined:
        return
    found = differences(context)
    if found:
        raise CheckError(
            f"the answers that were mined here cannot be used ({'; '.join(found)}): put it back, or start a new work "
            f"directory and mine again"
        )
    because = "same model, prompt, decoding and scorer as when they were sampled"
    context.decide("reuse_answers", True, because, {"record": mined[-1].seq})
