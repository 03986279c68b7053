"""What to watch while a run goes: figures of an update, limits declared beforehand, and why a run learns nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tools.errors import CheckError
from tools.groups import scored, spread
from tools.groups.stats import distinct
from tools.rows import Clip
from tools.select.stage import rises
from tools.train.config import GspoConfig
from tools.train.learner import StepStats
from tools.train.prepare import TrainGroup
from tools.train.rollout import Normalise, Rollout, normaliser

Line = dict[str, Any]
Error = Callable[..., float]
AS_WRITTEN = normaliser(None)
ALL_RIGHT = 0.95  # this share of right answers or more leaves nothing to learn
FEATURES_MATTER = 1e-6  # log-probs that move less than this under other audio did not hear it


def rollout_figures(rollout: Rollout, clips: Mapping[str, Clip], normalise: Normalise = AS_WRITTEN) -> Line:
    """Figures of the sampling half. `offered_reward`: all answers sampled; `reward`: those of retained groups.

    `group_spread` is the mean over clips of a group's highest less its lowest reward, `batch_spread` that of all answers
    together; `right_share` the answers that read as their reference does.
    `length_ratio` is characters said over characters due, both as the reward reads them: "4" for "four" is no shortening.
    """
    answers = [a for g in rollout.groups for a in g.answers]
    offered = [r for row in rollout.raw.values() for r in scored(row)]
    kept = [r for g in rollout.retained.groups for r in scored(g.rewards)]
    tokens = sum(len(a.tokens) for a in answers)
    lang = {g.clip_id: clips[g.clip_id].lang for g in rollout.groups}
    said = sum(len("".join(normalise(a.text, lang[a.clip_id]).split())) for a in answers)
    right = sum(
        normalise(a.text, lang[a.clip_id]) == normalise(clips[a.clip_id].text or "", lang[a.clip_id]) for a in answers
    )
    refs = {g.clip_id: normalise(clips[g.clip_id].text or "", lang[g.clip_id]) for g in rollout.groups}
    due = sum(len("".join(refs[g.clip_id].split())) * len(g.answers) for g in rollout.groups)
    return {
        "offered_reward": fmean(offered) if offered else None,
        "reward": fmean(kept) if kept else None,
        "offered": len(rollout.groups),
        "retained": len(rollout.retained.groups),
        "refills": rollout.retained.refills,
        "contrast_share": len(rollout.retained.groups) / max(1, len(rollout.groups)),
        "answers": len(answers),
        "group_spread": fmean(spread(row) for row in rollout.raw.values()) if rollout.raw else None,
        "batch_spread": spread(offered) if offered else None,
        "right_share": right / len(answers),
        "unscored": sum(r is None for row in rollout.raw.values() for r in row),
        "distinct_answers": fmean(distinct(g.answers) for g in rollout.groups),
        "empty_share": fmean(not a.text.strip() for a in answers),
        "truncated_share": fmean(a.finish == "length" for a in answers),
        "stop_share": fmean(a.finish == "stop" for a in answers),
        "length_ratio": said / due if due else 1.0,
        "entropy": -sum(sum(a.logprobs or ()) for a in answers) / max(1, tokens),
        "tokens_mean": tokens / len(answers),
        "tokens_max": max(len(a.tokens) for a in answers),
        "clips": [g.clip_id for g in rollout.retained.groups],
    }


def step_figures(stats: StepStats | None) -> Line:
    """Figures of the learning half; None for every one where no step was taken."""
    if stats is None:
        names = ("loss", "grad_norm", "grad_norm_max", "ratio_mean", "ratio_p99", "ratio_moved", "clip_share")
        return {**dict.fromkeys(names), "kl_mean": None, "kl_max": None, "logprob_gap": None, "steps": 0}
    import torch

    ratios = torch.cat(stats.ratios or [torch.zeros(0)]).double()
    return {
        "loss": fmean(stats.loss),
        "grad_norm": fmean(stats.grad_norm),
        "grad_norm_max": max(stats.grad_norm),
        "ratio_mean": ratios.mean().item() if len(ratios) else None,
        "ratio_p99": torch.quantile(ratios, 0.99).item() if len(ratios) else None,
        "ratio_moved": stats.moved if len(ratios) else None,
        "clip_share": stats.clipped / stats.counted if stats.counted else None,
        "kl_mean": stats.kl_mean,
        "kl_max": stats.kl_max,
        "logprob_gap": stats.gap if len(ratios) else None,
        "steps": len(stats.grad_norm),
    }


def ratio_moved(line: Line, config: GspoConfig) -> bool:
    """Whether an update's ratio moved by more than rounding.

    Against log-probs stored while sampling, training and decoding differ by up to `logprob_gap` before anything is learnt.
    """
    rounding = (line.get("logprob_gap") or 0.0) if config.old_logprobs == "sampled" else 0.0
    return (line.get("ratio_moved") or 0.0) > max(1e-6, math.expm1(2 * rounding))


SAMPLED = (
    "group_spread",
    "batch_spread",
    "right_share",
    "contrast_share",
    "distinct_answers",
    "empty_share",
    "truncated_share",
    "stop_share",
    "length_ratio",
    "entropy",
)


def reference_figures(rollout: Rollout, clips: Mapping[str, Clip]) -> Line:
    """The figures of `rollout_figures` for supervised training: None for those that only samples have."""
    return {**rollout_figures(rollout, clips), **dict.fromkeys(SAMPLED)}


def correlation(groups: Sequence[TrainGroup], error: Error | None = None) -> float | None:
    """Pearson correlation of advantage and error inside groups, pooled; None where one of them never varies.

    Without `error` the error is minus the reward, and the sign is then a matter of arithmetic: anything but a negative
    number means that advantages and answers do not belong together (F41).
    """
    top = left = right = 0.0
    for g in groups:
        e = [-r for r in g.rewards]
        if error is not None:
            e = [error(a.text, g.clip.text or "", g.clip.lang) for a in g.answers]
        rows = list(zip(g.advantages, e, g.counts))
        a_mean, e_mean = (fmean(column, g.counts) for column in (g.advantages, e))
        top += sum(n * (a - a_mean) * (x - e_mean) for a, x, n in rows)
        left += sum(n * (a - a_mean) ** 2 for a, _, n in rows)
        right += sum(n * (x - e_mean) ** 2 for _, x, n in rows)
    return top / math.sqrt(left * right) if left > 0 and right > 0 else None


def assert_direction(groups: Sequence[TrainGroup], update: int) -> float:
    """The correlation of advantage with minus the reward. Raises CheckError unless it is negative."""
    value = correlation(groups)
    if value is None or value >= 0:
        raise CheckError(
            f"update {update}: advantages and errors correlate by {value} inside groups where they must fall together: "
            "the rewards do not belong to these answers, or a sign is flipped"
        )
    return value


@dataclass(frozen=True)
class Broken:
    """Which declared limit an update broke. `sampled`: the figure is of what the update sampled, and so of the weights it
    started from; otherwise of its own steps."""

    text: str
    sampled: bool = True


def breach(config: GspoConfig, line: Line, first: Line) -> Broken | None:
    """Which declared limit this update broke; None for none.

    A limit on what answers look like (empty or cut share, length) counts only where the update is also further out than
    the run's first one, whose answers are the seed model's own.
    """
    for name, limit, sampled in (("kl_mean", config.kl_max, True), ("ratio_p99", config.ratio_p99_max, False)):
        if limit is not None and line.get(name) is not None and line[name] > limit:
            return Broken(f"{name} {line[name]:.4g} is above the limit of {limit:g}", sampled)
    shares = (("empty_share", config.empty_share_max), ("truncated_share", config.truncated_share_max))
    for name, limit in shares:
        if limit is not None and line[name] is not None and line[name] > max(limit, first[name]):
            return Broken(f"{name} {line[name]:.3g} is above the limit of {limit:g}")
    ratio, start = line["length_ratio"], first["length_ratio"]
    if ratio is None:
        return None
    if ratio < min(config.length_ratio_min, start):
        return Broken(f"length_ratio {ratio:.3g} is below the limit of {config.length_ratio_min:g}")
    if ratio > max(config.length_ratio_max, start):
        return Broken(f"length_ratio {ratio:.3g} is above the limit of {config.length_ratio_max:g}")
    return None


def diagnose(lines: Sequence[Line], config: GspoConfig) -> list[str]:
    """Why a run learns nothing, and what to try: one sentence a cause found, none where it learns.

    Looks at the last updates of `lines` (metrics of updates, in order).
    """
    last = list(lines[-5:])
    if not last:
        return ["no update was taken"]
    out = _flat_causes(last, config) if config.method != "sft" else []
    stepped = [row for row in last if row.get("steps")]
    if stepped and max(row["grad_norm_max"] for row in stepped) == 0.0:
        out.append(
            "the gradient is exactly 0: the loss mask is empty or the log-probs do not depend on what trains: check surface "
            "and freeze, and that the training forward runs the layers that train"
        )
    offered = [row["offered_reward"] for row in lines if row.get("offered_reward") is not None]
    third = len(offered) // 3
    if not out and len(lines) >= 10 and third >= 2 and max(offered[-third:]) < min(offered[:third]):
        out.append("the reward falls: try a lower lr, a penalty (kl_weight), or look at what the answers have become")
    elif not out and len(lines) >= 10 and not rises(offered):
        out.append("the reward does not rise: try a higher lr, more updates, or clips with more contrast")
    return out


def _flat_causes(last: Sequence[Line], config: GspoConfig) -> list[str]:
    """Why samples carry no signal: copies, cut answers, equal rewards."""
    out = []
    mean = lambda key: fmean([row[key] for row in last if row.get(key) is not None] or [0.0])  # noqa: E731
    if mean("distinct_answers") < 1.05 and mean("right_share") < ALL_RIGHT:
        out.append(
            f"the {config.answers} answers of a clip are copies of one another: check that temperature "
            f"{config.temperature:g} and the answers' seeds reach the sampler"
        )
    if mean("truncated_share") > 0.5:
        out.append(
            f"{mean('truncated_share'):.0%} of the answers were cut at {config.answer_limit} tokens: raise "
            "answer_limit, or look for loops in the answers"
        )
    if mean("contrast_share") < 0.1:
        out.append(
            f"{1 - mean('contrast_share'):.0%} of the groups are flat: all answers of a clip get the same reward "
            f"(mean {mean('offered_reward'):.3g}); {_flat_advice(mean('right_share'))}"
        )
    return out


def _flat_advice(right: float) -> str:
    if right >= ALL_RIGHT:
        return f"nothing to learn from: {right:.0%} of the answers are right; take harder clips, or stop here"
    if right <= 0.05:
        return (
            f"nothing to learn from: {1 - right:.0%} of the answers are wrong; check references and prompt, mine other clips "
            "or fine-tune on transcripts first"
        )
    return f"{right:.0%} of the answers are right: mine for clips between always right and always wrong"
