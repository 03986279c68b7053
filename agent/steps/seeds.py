"""Seed models that are not weights on this machine: served by somebody, or known only by answers already decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tools.errors import CheckError, ProviderError, UsageError
from tools.rows import Clip

if TYPE_CHECKING:
    from agent.act import Context


def named(said: Any) -> str:
    """The seed model as it is written down: a folder or name, a served model's name, or the file of its answers."""
    return str(said.get("model") or said.get("answers")) if isinstance(said, dict) else str(said)


def elsewhere(context: Context) -> Any | None:
    """A recogniser for a served model or for given answers; None where the brief names weights."""
    said = context.session.brief.answer_to("seed_model")
    if not isinstance(said, dict):
        return None
    if "answers" in said:
        from tools.decode.given import GivenRecogniser

        clips, aside = manifest_clips(context)
        heard = GivenRecogniser.load(context.session.brief.resolve(str(said["answers"])), clips, aside=aside)
        _tell(context, heard, clips)
        return heard
    from tools.decode.served import Served, ServedRecogniser

    return ServedRecogniser.load(Served.build(said), context.workdir / ".rehear" / "served")


def manifest_clips(context: Context) -> tuple[list[Clip], int]:
    """Every row of the brief's manifests, in their order, unchecked; and how many could not be read."""
    from tools.data.manifest import read_manifest

    read = [read_manifest(p, s) for s, paths in context.session.brief.manifests().items() for p in paths]
    return [clip for one in read for clip in one.rows], sum(len(one.quarantined) for one in read)


def _tell(context: Context, heard: Any, clips: list[Clip]) -> None:
    """Says which answers and clips are left out, so that nobody takes a part for the whole."""
    if heard.without:
        context.notice(f"{heard.without} of the given answers belong to no clip of the manifests: left out", "warn")
    train = [c for c in clips if c.split not in ("dev", "test", "retention")]
    lacking = sum(not heard.has_answers(c) for c in train)
    if lacking:
        context.notice(f"{lacking} of {len(train)} training rows lack a greedy answer or two others: not mined", "warn")


def refuse_to_train(context: Context) -> None:
    """Raises UsageError where the seed model cannot be trained here: it is asked about, not worn."""
    from agent.steps.common import recogniser

    heard = recogniser(context)
    if heard.trains or context.scratch.get("until"):
        return
    what = "given answers have" if heard.given else "a served model has"
    raise UsageError(
        f"{what} no weights here: rehear mine says what there is to learn; to train, answer seed_model with the folder of "
        f"the same weights (--answer seed_model=FOLDER, or in the brief)"
    )


def probe_server(context: Context, prompts: list[str], limit: int) -> None:
    """A served model is probed once, with train clips, before anything is measured with it.

    Raises ProviderError naming what its server does wrong; nothing that came is counted.
    """
    from agent.presets import mining_plan
    from agent.steps.common import clips_of, recogniser

    heard = recogniser(context)
    if heard.trains or heard.given:
        return
    from tools.decode.served import probe

    plan, prompt = mining_plan(context.skill), max(prompts, key=len)
    clips = clips_of(context, "train")

    def do() -> dict[str, Any]:
        found = probe(heard, clips, prompt, limit, n=plan.answers, temperature=plan.temperature)  # type: ignore[arg-type]
        if not found.ok:
            raise ProviderError(f"the server cannot be measured as it is: {found.text()}")
        return found.to_json()

    args = {"model": heard.policy.digest, "prompt": prompt, "limit": limit, "n": plan.answers}
    result = context.effect("probe", args, do)
    for finding in result["findings"]:
        context.notice(f"{finding['check']}: {finding['text']}", "info" if finding["ok"] else "warn")


def minable(context: Context, clips: list[Clip]) -> list[Clip]:
    """The clips that answers exist for, or can be asked for. Raises CheckError where given answers cover none."""
    from agent.steps.common import recogniser

    heard: Any = recogniser(context)
    if not heard.given:
        return clips
    kept = [c for c in clips if heard.has_answers(c)]
    if clips and not kept:
        raise CheckError("no training clip has a greedy answer and two others among those given: nothing can be mined")
    return kept
