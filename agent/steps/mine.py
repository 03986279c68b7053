"""mine: sample a small stratified subset of train, count what its answers show, decide whether there is anything to learn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent.act import Context
from agent.contract import contract_digest
from agent.forecast import mine_minutes
from agent.ledger.rowfiles import DEEP, MORE
from agent.presets import MiningPlan, choose_preset, mining_plan
from agent.spending import spending
from agent.steps.common import (
    SPLITS,
    clips_of,
    contract,
    labels_of,
    profile_of,
    recogniser,
    same_model,
    work_of,
    write_text,
)
from agent.steps.references import look_at_references
from agent.steps.rewards import frozen_reward, order_of_reward
from agent.steps.runs import pool_file, round_of
from agent.steps.seeds import minable
from agent.steps.summary import MIX, mixed_parts, summarise, watch_mix
from tools.rows import Answer, Clip, Group

if TYPE_CHECKING:
    from tools.mine import MiningStats, MiningVerdict, Subset
    from tools.score.labels import LabelSet


def run(context: Context) -> str:
    round_ = round_of(context)
    prefix = "" if round_ == 1 else f"refresh-{round_}-"
    with spending(context, "mine", mine_minutes(work_of(context))):
        order_of_reward(context)
        if not recogniser(context).can_sample:
            return _decide(context, Mined(f"{prefix}mine-1", unsampled(), [], context), round_)
        gone = seen_before(context, prefix)
        first = _mine(context, f"{prefix}mine-1", exclude=gone)
        if first is None:
            return "exhausted"
        look_at_references(context, first.groups)
        if not first.verdict.learn and first.verdict.reason in (
            "too_little_contrast",
            "no_headroom",
            "all_right",
            "all_wrong",
        ):
            context.notice(f"{first.verdict.text()} Sampling one other subset before giving up.")
            second = _mine(context, f"{prefix}mine-2", exclude=gone | {g.clip_id for g in first.groups})
            if second is not None:
                first = second if second.verdict.learn else first
    outcome = _decide(context, first, round_)
    return "exhausted" if outcome == "no_contrast" and round_ > 1 else outcome


def seen_before(context: Context, prefix: str) -> set[str]:
    """For a refreshed selection: the clips that an earlier round has sampled already. A first round has seen none."""
    if not prefix:
        return set()
    intents = [r.payload["args"] for r in context.ledger.records("intent") if r.payload["effect"] == "sample"]
    return {clip for args in intents if not args["name"].startswith(prefix) for clip in args["clips"]}


class Mined:
    """One mined subset: its groups, statistics and verdict."""

    def __init__(self, name: str, subset: Subset, groups: list[Group], context: Context) -> None:
        from tools.mine import doubtful_references, doubts, mining_stats, select_contrast, verdict

        errors = errors_of(context)
        seed = contract(context)["random_seed"]
        self.name, self.subset, self.groups = name, subset, groups
        self.stats: MiningStats = mining_stats(groups, subset.strata, errors)
        # a confident wrong label is a confusion of classes, not a sign of a wrong reference
        asr = labels_of(context) is None
        found = doubts(groups, {c.id: c.text or "" for c in clips_of(context, "train")} if asr else {})
        self.fits, agreed = dict(found.fits), doubtful_references(groups, errors) if asr else []
        self.doubtful = list(dict.fromkeys([*agreed, *found.clips]))
        self.chosen = select_contrast(groups, subset.strata, seed=seed, doubtful=self.doubtful)
        self.verdict: MiningVerdict = verdict(
            self.stats,
            groups,
            doubtful=self.doubtful,
            selected=len(self.chosen.selected),
            agreeing=found.agreeing,
            sampled=recogniser(context).can_sample,
        )


def unsampled() -> Subset:
    """The subset of a model that cannot be sampled: none."""
    from tools.mine import Subset

    return Subset((), {}, (), ())


def _mine(context: Context, name: str, exclude: set[str]) -> Any:
    """Mines one subset; None when no clips are left to sample."""
    from tools.mine import check_answers, merge_groups, mining_stats, pick_subset, strata_to_extend, useful_keys

    plan, frozen = mining_plan(context.skill), contract(context)
    left = [c for c in minable(context, clips_of(context, "train")) if c.id not in exclude]
    if not left:
        return None
    size = min(plan.clips, len(left))
    strata = (MIX, *useful_keys(left, size)) if mixed_parts(context) else None
    subset = pick_subset(left, size, frozen["random_seed"], strata)
    given = recogniser(context).given
    groups = _sampled(context, name, list(subset.clips), 0 if given else plan.answers, 0, plan)
    if given:  # however many somebody else has drawn, and none beyond them
        return Mined(name, subset, groups, context)
    check_answers(groups, plan.answers)
    stats = mining_stats(groups, subset.strata, errors_of(context))
    ids = {clip for e in strata_to_extend(stats, plan.extend_to) for clip in e.clips}
    if ids:
        again = [c for c in subset.clips if c.id in ids]
        more = _sampled(context, f"{name}{MORE}", again, plan.extend_to - plan.answers, plan.answers, plan)
        extra = {g.clip_id: g for g in more}
        groups = [merge_groups(g, extra[g.clip_id]) if g.clip_id in extra else g for g in groups]
    return Mined(name, subset, _deepened(context, name, subset, stats, groups), context)


def _deepened(context: Context, name: str, subset: Subset, before: MiningStats, groups: list[Group]) -> list[Group]:
    """Strata whose second eight answers paid, sampled on where the run would otherwise lack groups; else as they were."""
    from tools.mine import merge_groups, mining_stats, select_contrast, strata_to_deepen

    plan = mining_plan(context.skill)
    after = mining_stats(groups, subset.strata, errors_of(context))
    have = len(select_contrast(groups, subset.strata).selected)
    rows = {s: len(clips_of(context, s)) for s in SPLITS}
    need = 2 * choose_preset(context.skill, context.session.brief, rows).groups
    chosen = strata_to_deepen(before, after, have=have, need=need, deepen_to=plan.deepen_to)
    ids = {clip for e in chosen for clip in e.clips}
    if not ids:
        return groups
    context.notice(f"{len(ids)} clips sampled on to {plan.deepen_to} answers: {'; '.join(e.why for e in chosen)}")
    again = [c for c in subset.clips if c.id in ids]
    first = plan.extend_to
    extra = {g.clip_id: g for g in _sampled(context, f"{name}{DEEP}", again, plan.deepen_to - first, first, plan)}
    return [merge_groups(g, extra[g.clip_id]) if g.clip_id in extra else g for g in groups]


def _sampled(context: Context, name: str, clips: list[Clip], n: int, first: int, plan: MiningPlan) -> list[Group]:
    """Greedy (the first time) and n sampled answers a clip, kept in rollouts/<name>.jsonl and read back when done before."""
    frozen = contract(context)
    path = context.workdir / "rollouts" / f"{name}.jsonl"
    args = {"name": name, "clips": [c.id for c in clips], "n": n, "first": first, "contract": contract_digest(frozen)}

    def do() -> dict[str, Any]:
        began = time.process_time()
        heard, prompt, limit = recogniser(context), frozen["prompt"]["text"], frozen["decoding"]["limit"]
        heard.wear(None)
        same_model(name, frozen["seed_model"]["digest"], heard.policy.digest)
        greedy = heard.greedy(clips, prompt, limit, context.progress(f"greedy {name}")) if first == 0 else []
        sampled = heard.sample(
            clips,
            prompt,
            limit,
            n=n,
            first=first,
            temperature=plan.temperature,
            seed=frozen["random_seed"],
            progress=context.progress(f"sampling {name}"),
        )
        answers = [*greedy, *(a for group in sampled for a in group)]
        path.parent.mkdir(exist_ok=True)
        text = "".join(json.dumps(a.to_json(), ensure_ascii=False, sort_keys=True) + "\n" for a in answers)
        spent = round(time.process_time() - began, 3)
        return {"files": {f"rollouts/{name}.jsonl": write_text(path, text)}, "answers": len(answers), "cpu_s": spent}

    context.effect("sample", args, do)
    return groups_of(
        context, clips, [Answer.from_json(json.loads(x)) for x in path.read_text("utf-8").split("\n") if x]
    )


def groups_of(context: Context, clips: list[Clip], answers: list[Answer]) -> list[Group]:
    """Answers -> groups with rewards, keyed by clip id."""
    reward = frozen_reward(context)
    by_clip: dict[str, list[Answer]] = {c.id: [] for c in clips}
    greedy: dict[str, Answer] = {}
    for a in answers:
        if a.index < 0:
            greedy[a.clip_id] = a
        else:
            by_clip[a.clip_id].append(a)
    out = []
    for c in clips:
        g = greedy.get(c.id)
        rewards = tuple(reward(a.text, c.text or "", c.lang) for a in by_clip[c.id])
        out.append(
            Group(c.id, tuple(by_clip[c.id]), rewards, g, None if g is None else reward(g.text, c.text or "", c.lang))
        )
    return out


def errors_of(context: Context) -> Callable[[str, str], tuple[float, float]]:
    """(clip id, text) -> (errors, reference units) under the frozen profile, in the unit of the declared metric."""
    from tools.score.transcripts import score_pairs

    labels = labels_of(context)
    if labels is not None:
        return _label_errors(context, labels)
    profile, characters = profile_of(context), contract(context)["scoring"]["metric"] == "cer"
    by_id = {c.id: c for c in clips_of(context, "train")}

    def errors(clip_id: str, text: str) -> tuple[float, float]:
        clip = by_id[clip_id]
        score = score_pairs([clip.text or ""], [text], profile, clip.lang)
        totals = score.characters if characters else score.totals
        return totals.errors, totals.reference_units

    return errors


def _label_errors(context: Context, labels: LabelSet) -> Callable[[str, str], tuple[float, float]]:
    """(clip id, answer) -> (0 or 1, 1): whether the answer, strictly read, is another label than the clip's."""
    truth = {c.id: labels.profile.normalise(c.text or "") for c in clips_of(context, "train")}
    return lambda clip_id, text: (float(labels.strict(text) != truth[clip_id]), 1.0)


def _decide(context: Context, mined: Any, round_: int) -> str:
    from tools.mine import training_pool

    verdict = mined.verdict
    pool = training_pool(clips_of(context, "train"), mined.chosen, mined.stats, mined.subset.strata)
    summary = summarise(context, mined.groups, mined.stats.groups)
    watch_mix(context, summary, [c.id for c in pool.clips], round_)
    details = {
        "summary": summary,
        "reason": verdict.reason,
        "evidence": verdict.evidence,
        "advice": verdict.advice,
        "stats": mined.stats.to_json(),
        "subset": mined.name,
        "selected": len(mined.chosen.selected),
        "extended": sum(len(g.answers) > mining_plan(context.skill).answers for g in mined.groups),
        "doubtful": list(mined.doubtful),
        "fits": mined.fits,
        "keys": list(mined.subset.keys),
        "pool": len(pool.clips),
        "pool_sha256": _write_pool(context, round_, [c.id for c in pool.clips], dict(pool.excluded)),
    }
    context.decide("learn", verdict.learn, verdict.text(), details, round_=round_)
    return "learn" if verdict.learn else "no_contrast"


def _write_pool(context: Context, round_: int, ids: list[str], excluded: dict[str, str]) -> str:
    text = json.dumps({"clips": ids, "excluded": excluded}, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    return write_text(context.workdir / pool_file(round_), text)
