"""Whether a mined work directory's answers are still those of this model, prompt, decoding and scorer; and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.errors import CheckError, RehearError

if TYPE_CHECKING:
    from agent.act import Context


def differences(context: Context) -> list[str]:
    """What of the frozen contract is no longer so: empty where the stored answers can be used."""
    from agent.steps.common import contract, profile_of, recogniser
    from agent.steps.rewards import frozen_reward
    from tools.score.transcripts import ALIGNER, SCORER, SCORER_VERSION

    frozen, profile = contract(context), profile_of(context)
    now = {
        "normaliser": (frozen["profile"]["digest"][:12], profile.to_json()["digest"][:12]),
        "scorer": (
            f"{frozen['scoring']['scorer']} {frozen['scoring']['version']} {frozen['scoring'].get('aligner', ALIGNER)}",
            f"{SCORER} {SCORER_VERSION} {ALIGNER}",
        ),
        "reward": (frozen["reward"]["digest"][:12], frozen_reward(context).digest[:12]),
    }
    if context.scratch.get("until") is None or _is_here(context):
        digest = recogniser(context).policy.digest
        now = {"model": (frozen["seed_model"]["digest"][:12], digest[:12]), **now}
    return [f"{name}: {before} -> {after}" for name, (before, after) in now.items() if before != after] + _edited(
        context
    )


def _edited(context: Context) -> list[str]:
    """The manifests that are others than those that were read: their rows are not read again. One that is away cannot
    be compared."""
    from agent.steps.check_data import manifest_digests

    before = context.must("data_check").payload.get("manifests", {})
    paths = context.session.brief.manifests()
    if not all(path.exists() for held in paths.values() for path in held):
        return []
    now = manifest_digests(context.session.brief)
    moved = [split for split in now if before.get(split, now[split]) != now[split]]
    return [f"{split} manifest: {before[split][:12]} -> {now[split][:12]}" for split in moved]


def _is_here(context: Context) -> bool:
    """Whether the model, or the file of its answers, lies here to be compared; a verdict can be read again without it."""
    from agent.steps.common import seed_folder

    said = context.session.brief.answer_to("seed_model")
    if isinstance(said, dict):
        return "answers" in said and context.session.brief.resolve(str(said["answers"])).exists()
    try:
        return seed_folder(context).is_dir()
    except RehearError:
        return False


def refuse_changed(context: Context) -> None:
    """Raises CheckError where a verdict is asked for again and what it rests on was changed since."""
    from agent.contract import contract_digest
    from agent.steps.common import contract

    freeze = context.last("freeze")
    if freeze is None:
        return
    if contract_digest(contract(context)) != freeze.payload["contract_sha256"]:
        raise CheckError(
            "contract.json is not the contract that was frozen: put it back, or start a new work directory"
        )
    if not (found := differences(context)):
        return
    raise CheckError(
        f"the verdict here is of something else ({'; '.join(found)}): put it back, or start a new work directory to mine again"
    )


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
