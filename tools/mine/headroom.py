"""How much better the samples are than the model's own first choice, how sure that is, and where it lies.

An oracle picks with the reference in hand: it is an opportunity, not a trained model. So beside it stand what one sample
costs on average, what the samples' own consensus gives without any reference, and an interval by speaker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

from tools.groups import Errors
from tools.mine.contrast import loose
from tools.mine.doubt import medoid
from tools.mine.repairs import repairs
from tools.mine.strata import MiningStats
from tools.rows import Answer, Clip, Group, ScoredRow
from tools.score.labels import LabelSet
from tools.text.profile import Profile

STEPS = (1, 2, 4, 8, 16)


def row_of(clip: Clip, answer: Answer) -> ScoredRow:
    """An answer as a scored row."""
    return ScoredRow(
        id=clip.id,
        ref=clip.text or "",
        hyp=answer.text,
        speaker=clip.speaker,
        recording=clip.recording,
        lang=clip.lang,
        finish=answer.finish,
        tokens=len(answer.tokens),
        duration_s=clip.duration_s or 0.0,
    )


def best_answer(group: Group, errors: Errors) -> Answer | None:
    """The sample with the fewest errors, the first of equals; None where there is no sample."""
    return min(group.answers, key=lambda a: (errors(group.clip_id, a.text)[0], a.index), default=None)


def consensus(group: Group) -> Answer | None:
    """The sample closest to the other samples: what can be picked without a reference."""
    if not group.answers:
        return None
    return group.answers[medoid([loose(a.text) for a in group.answers])[0]]


def expected_best(counts: Sequence[float], k: int) -> float:
    """Mean over all choices of `k` of these error counts of the smallest one (drawn without putting back)."""
    ordered, n = sorted(counts), len(counts)
    if not 1 <= k <= n:
        raise ValueError(f"best of {k} of {n} answers")
    total = comb(n, k)
    return sum(value * comb(n - 1 - i, k - 1) for i, value in enumerate(ordered)) / total


def best_of(groups: Sequence[Group], errors: Errors) -> list[dict[str, Any]]:
    """[{k, rate, clips}]: the error rate of the best of k, over the clips that have k answers or more."""
    table = {g.clip_id: [errors(g.clip_id, a.text) for a in g.answers] for g in groups}
    out = []
    for k in STEPS:
        held = [counts for counts in table.values() if len(counts) >= k]
        units = sum(counts[0][1] for counts in held)
        if held and units:
            wrong = sum(expected_best([e for e, _ in counts], k) for counts in held)
            out.append({"k": k, "rate": wrong / units, "clips": len(held)})
    return out


def headroom(
    clips: Mapping[str, Clip],
    groups: Sequence[Group],
    stats: MiningStats,
    profile: Profile,
    errors: Errors,
    *,
    by: str = "speaker",
    metric: str = "unit",
    seed: int = 0,
    labels: LabelSet | None = None,
) -> dict[str, Any]:
    """The figures of a verdict: greedy against the oracle, paired by clip, blocks by speaker; all rates are ratios.

    {greedy, mean_sample, oracle, consensus, headroom, relative, best_of[{k, rate, clips}], interval of `headroom` or None
    under ten blocks, blocks, block_by, repairs[...], strata[...]}. Clips without a greedy answer or samples are left out.
    With `labels` an error is another label than the clip's, strictly read.
    """
    from tools.score.compare import compare_rows
    from tools.score.labelled import CODED, code_rows
    from tools.text import profile as named

    held = [g for g in groups if g.greedy is not None and g.answers]
    picked = [(clips[g.clip_id], g.greedy, best_answer(g, errors)) for g in held]
    first = [row_of(clip, greedy) for clip, greedy, _ in picked if greedy is not None]
    best = [row_of(clip, answer) for clip, _, answer in picked if answer is not None]
    if labels is not None:
        first, best = code_rows(first, labels, labels.strict), code_rows(best, labels, labels.strict)
        profile = named(CODED)
    agreed = [errors(g.clip_id, answer.text) for g in held if (answer := consensus(g)) is not None]
    units = sum(u for _, u in agreed)
    o = stats.overall
    figures: dict[str, Any] = {
        "clips": o.clips,
        "answers": o.answers,
        "greedy": o.greedy,
        "mean_sample": o.mean_sample,
        "oracle": o.oracle,
        "consensus": sum(e for e, _ in agreed) / units if units else None,
        "headroom": None,
        "relative": None,
        "best_of": best_of(held, errors),
        "interval": None,
        "blocks": 0,
        "block_by": by,
        "repairs": [] if labels else [r.to_json() for r in repairs(zip(first, best, strict=True), profile)],
        "strata": [s.to_json() for s in stats.strata],
    }
    if o.greedy is not None and o.oracle is not None:
        figures["headroom"] = o.greedy - o.oracle
        figures["relative"] = (o.greedy - o.oracle) / o.greedy if o.greedy else 0.0
    if first:
        compared = compare_rows(first, best, profile, by=by, metric=metric, seed=seed)
        span = compared.delta_interval
        figures |= {
            "interval": None if span is None else [0.0 - span[1], 0.0 - span[0]],
            "blocks": compared.blocks,
            "block_by": compared.block_by,
        }
    return figures
