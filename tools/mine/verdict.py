"""Is there anything to learn from these samples? The verdict before any training, with its evidence and advice."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from tools.errors import CheckError
from tools.mine.strata import MiningStats
from tools.rows import Group

Reason = Literal[
    "enough_contrast",
    "all_right",
    "all_wrong",
    "sampler_not_sampling",
    "references_doubtful",
    "too_little_contrast",
    "no_headroom",
    "not_sampled",
]
REASONS: tuple[Reason, ...] = get_args(Reason)

ADVICE: dict[Reason, str] = {
    "enough_contrast": (
        "Train on the clips selected: their samples hold answers better than the model's own first choice."
    ),
    "all_right": "The model already answers these clips without error. Mine harder audio, or keep the seed model.",
    "all_wrong": (
        "All samples are wrong, and none is worth more than another: reinforcement cannot make an ability appear that the "
        "samples lack. Check prompt, language and reward on a few clips; then fine-tune on transcripts (SFT), or "
        "collect new data."
    ),
    "sampler_not_sampling": (
        "The answers of a clip are copies of one another. Check that temperature, number of answers and seeds reach "
        "the sampler; do not train."
    ),
    "references_doubtful": (
        "On many clips all samples agree with each other and not with the reference. Listen to the clips listed and "
        "correct their references or their order before training."
    ),
    "no_headroom": (
        "The samples differ, and yet the best of them make no fewer errors in all than the model's own first choice: there is "
        "nothing for it to learn from them. Mine harder audio, or draw more answers at a lower temperature."
    ),
    "not_sampled": (
        "The server gives greedy answers only, so what greedy costs is known and what sampling would give is not. Serve the "
        "model with chat completions (vLLM, rehear serve), or give answers sampled elsewhere."
    ),
    "too_little_contrast": (
        "Too few clips have samples of different worth. Check reward, references and prompt, then sample another "
        "stratum; if that shows no more, fine-tune on transcripts (SFT) or collect new data."
    ),
}


@dataclass(frozen=True, slots=True)
class MiningVerdict:
    """`learn` or not, why (one of REASONS), the numbers it rests on, and what to do next in plain words."""

    learn: bool
    reason: Reason
    evidence: dict[str, Any]
    advice: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        """One paragraph for a customer."""
        e = self.evidence
        rates = (
            f" Greedy error {e['greedy']:.3f}, mean sample {e['mean_sample']:.3f}, best sample {e['oracle']:.3f}."
            if e.get("greedy") is not None and e.get("oracle") is not None
            else ""
        )
        return f"{e['contrast_groups']} of {e['clips']} clips have contrast.{rates} {self.advice}"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a set of samples is worth training on. All of them are recorded with the verdict."""

    min_groups: int = 5
    min_contrast_share: float = 0.2
    min_better_share: float = 0.05
    copies_share: float = 0.95
    doubtful_share: float = 0.3
    doubtful_of_agreeing: float = 0.5
    right_share: float = 0.9
    hopeless: float = 0.9


def check_answers(groups: Sequence[Group], n: int) -> None:
    """Every clip has `n` answers, each with its own recorded seed. Raises CheckError naming the first that fails."""
    for g in groups:
        if len(g.answers) < n:
            raise CheckError(f"clip {g.clip_id} has {len(g.answers)} of {n} answers asked for: check the sampler")
        seeds = [a.seed for a in g.answers]
        if None in seeds or len(set(seeds)) < len(seeds):
            raise CheckError(f"clip {g.clip_id}: its {len(seeds)} answers do not have distinct recorded seeds")


def copies_share(groups: Sequence[Group], right: Collection[str] = (), least: int = 5) -> float:
    """Share of clips whose answers are copies of one another although the model was not sure of them (F31).

    Where log-probs are known, a clip counts only if sampling would hardly give so many equal answers: the chance of
    its answer, to the power of their number less one, is below 5 %. Without log-probs a clip with one distinct answer
    counts unless it is in `right`. An easy clip answers the same every time: it speaks neither for the sampler nor
    against it, so where `least` others do speak, the share is of those.
    """
    copied = sum(_copied(g, g.clip_id in right) for g in groups)
    varied = sum(len({a.text for a in g.answers}) > 1 for g in groups)
    speak = copied + varied
    return copied / (speak if speak >= least else max(1, len(groups)))


def _copied(group: Group, right: bool) -> bool:
    if len(group.answers) < 2 or len({a.text for a in group.answers}) > 1:
        return False
    known = [sum(a.logprobs) for a in group.answers if a.logprobs]
    return (len(group.answers) - 1) * max(known) < math.log(0.05) if known else not right


def verdict(
    stats: MiningStats,
    groups: Sequence[Group],
    *,
    doubtful: Sequence[str] = (),
    selected: int | None = None,
    thresholds: Thresholds | None = None,
    agreeing: int = 0,
    sampled: bool = True,
) -> MiningVerdict:
    """Decide whether to train. `doubtful` from `doubtful_references` and `doubts`; `selected`: how many
    `select_contrast` kept; `agreeing`: clips whose answers agree enough to speak about a reference (`Doubt`);
    `sampled` False where the server gives greedy answers only.

    Order of the questions: does the sampler sample; are the references to be trusted; is there contrast with answers
    better than greedy; and if not, is everything right, everything wrong, or contrast just scarce.
    """
    t = thresholds or Thresholds()
    o = stats.overall
    contrast = sum(g.contrast for g in stats.groups)
    usable = contrast if selected is None else selected
    all_right = {g.clip_id for g in stats.groups if g.mean_errors == 0}
    # nothing can beat a greedy answer without error, however much the samples differ
    right = _share(sum(0 in (g.mean_errors, g.greedy_errors) for g in stats.groups), o.clips)
    # wrong throughout: no answer of a flat group is without error
    wrong = _share(sum(not g.contrast and bool(g.best_errors) for g in stats.groups), o.clips)
    evidence: dict[str, Any] = {
        "clips": o.clips,
        "contrast_groups": contrast,
        "usable_groups": usable,
        "contrast_share": o.contrast_share,
        "better_share": o.better_share,
        "valid_share": o.valid_share,
        "truncated_share": o.truncated_share,
        "one_distinct_share": o.one_distinct_share,
        "copies_share": copies_share(groups, all_right, t.min_groups),
        "right_share": right,
        "flat_and_wrong_share": wrong,
        "doubtful": len(doubtful),
        "agreeing": agreeing,
        "greedy": o.greedy,
        "mean_sample": o.mean_sample,
        "oracle": o.oracle,
        "headroom": None if o.greedy is None or o.oracle is None else o.greedy - o.oracle,
        "thresholds": asdict(t),
    }
    reason: Reason = _reason(evidence, t) if sampled else "not_sampled"
    return MiningVerdict(reason == "enough_contrast", reason, evidence, ADVICE[reason])


def _reason(e: dict[str, Any], t: Thresholds) -> Reason:
    clips = max(1, e["clips"])
    if e["copies_share"] >= t.copies_share:
        return "sampler_not_sampling"
    told = e["agreeing"] >= t.min_groups and e["doubtful"] / e["agreeing"] >= t.doubtful_of_agreeing
    if e["doubtful"] / clips >= t.doubtful_share or told:
        return "references_doubtful"
    if e["oracle"] is not None and e["oracle"] >= t.hopeless:
        return "all_wrong"  # even the best of the samples has next to nothing of the reference: what differs is chance
    enough = e["usable_groups"] >= t.min_groups and e["contrast_share"] >= t.min_contrast_share
    if enough and (e["better_share"] is None or e["better_share"] >= t.min_better_share):
        return "no_headroom" if e["headroom"] is not None and e["headroom"] <= 0 else "enough_contrast"
    if e["right_share"] >= t.right_share:
        return "all_right"
    if e["flat_and_wrong_share"] >= t.right_share:
        return "all_wrong"
    return "too_little_contrast"


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
