"""What a mined sample showed, by task, language, domain and part of the mix: counts, cost, and real examples of errors.

Counts go on record; examples hold texts, so they stay in `rollouts/`, which is private.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agent.act import Context
from agent.steps.common import clips_of, labels_of, profile_of, write_text
from tools.rows import Clip, Group

if TYPE_CHECKING:
    from tools.groups import GroupStats

EXAMPLES = "rollouts/examples.jsonl"
PER_KIND = 2
MIX = "mix"  # the manifest field that says which part of the training mix a clip belongs to
TARGET, KEPT = "target", "retention"
SURE = 0.05


def flat_bound(answers: int) -> float:
    """How likely another answer may still be (95 %) after so many equal ones: eight equal answers are weak evidence."""
    return 1 - SURE ** (1 / answers) if answers else 1.0


def summarise(context: Context, groups: list[Group], stats: Iterable[GroupStats]) -> dict[str, Any]:
    """{by_task, by_language, by_domain, by_mix: {name: figures}, cost, flat}; writes the examples."""
    clips = {c.id: c for c in clips_of(context, "train")}
    rows = list(stats)
    task = "asr" if labels_of(context) is None else "label"
    keys: dict[str, Callable[[Clip], str]] = {
        "by_task": lambda c: task,
        "by_language": lambda c: c.lang or "unknown",
        "by_domain": lambda c: str(c.extras.get("domain", "unknown")),
        "by_mix": lambda c: str(c.extras.get(MIX, TARGET)),
    }
    tokens = {g.clip_id: sum(len(a.tokens) for a in g.answers) for g in groups}
    examples = _write_examples(context, groups, clips)
    flat = [r for r in rows if not r.contrast]
    return {
        **{name: _sliced(rows, clips, key, tokens) for name, key in keys.items()},
        "cost": {"cpu_s": round(_cpu_seconds(context), 3), "tokens": sum(tokens.values())},
        "flat": {
            "groups": len(flat),
            "other_answer_at_most": round(flat_bound(min((r.answers for r in flat), default=0)), 4),
        },
        "examples": examples,
    }


def _sliced(
    rows: list[GroupStats], clips: dict[str, Clip], key: Callable[[Clip], str], tokens: dict[str, int]
) -> dict[str, dict[str, Any]]:
    parts: dict[str, list[GroupStats]] = {}
    for row in rows:
        parts.setdefault(key(clips[row.clip_id]), []).append(row)
    return {name: _figures(part, clips, tokens) for name, part in sorted(parts.items())}


def _figures(rows: list[GroupStats], clips: dict[str, Clip], tokens: dict[str, int]) -> dict[str, Any]:
    from tools.groups import set_stats

    s = set_stats(rows)
    right = sum(r.mean_errors == 0 for r in rows)
    wrong = sum(bool(r.best_errors) for r in rows)
    return {
        "clips": s.clips,
        "answers": s.answers,
        "valid_share": s.valid_share,
        "truncated_share": s.truncated_share,
        "contrast": sum(r.contrast for r in rows),
        "better_than_greedy": sum(bool(r.better) for r in rows),
        "spread_mean": s.spread_mean,
        "all_right": right,
        "all_wrong": wrong,
        "mixed": s.clips - right - wrong,
        "greedy": s.greedy,
        "oracle": s.oracle,
        "tokens": sum(tokens[r.clip_id] for r in rows),
        "audio_s": round(sum(clips[r.clip_id].duration_s or 0.0 for r in rows), 3),
    }


def _cpu_seconds(context: Context) -> float:
    done = [r.payload for r in context.ledger.records("outcome") if r.payload["effect"] == "sample"]
    return float(sum(p["result"].get("cpu_s", 0.0) for p in done))


def kinds_of(context: Context, clip: Clip, answer: str, finish: str) -> list[str]:
    """What went wrong with an answer: empty, repetition, label confusion, omission, insertion, substitution, code switch."""
    from tools.score.diagnose import is_loop, wrong_script
    from tools.score.transcripts import score_pairs

    labels, profile = labels_of(context), profile_of(context)
    if not profile.normalise(answer, clip.lang):
        return ["empty"]
    if labels is not None:
        said, due = labels.strict(answer), labels.profile.normalise(clip.text or "")
        return [] if said == due else ["label confusion" if said in labels.labels else "no label"]
    ref, hyp = profile.units(clip.text or "", clip.lang), profile.units(answer, clip.lang)
    out = ["repetition"] if is_loop(ref, hyp, finish) else []
    score = score_pairs([clip.text or ""], [answer], profile, clip.lang)
    counts = {"substitution": score.substitutions, "omission": score.deletions, "insertion": score.insertions}
    out += [kind for kind, n in counts.items() if n]
    return out + (["code switch"] if wrong_script(clip.text or "", answer) else [])


def _write_examples(context: Context, groups: list[Group], clips: dict[str, Clip]) -> dict[str, int]:
    """Up to two greedy answers of each kind with their references and the best sampled answer; returns how many."""
    found: dict[str, list[dict[str, Any]]] = {}
    counts: dict[str, int] = {}
    for g in groups:
        if g.greedy is None:
            continue
        clip = clips[g.clip_id]
        for kind in kinds_of(context, clip, g.greedy.text, g.greedy.finish):
            counts[kind] = counts.get(kind, 0) + 1
            best = max(zip(g.rewards, g.answers), key=lambda pair: pair[0] if pair[0] is not None else float("-inf"))[1]
            row = {"kind": kind, "id": clip.id, "ref": clip.text, "greedy": g.greedy.text, "best": best.text}
            if len(found.setdefault(kind, [])) < PER_KIND:
                found[kind].append(row)
    rows = [row for kind in sorted(found) for row in found[kind]]
    write_text(context.workdir / EXAMPLES, "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
    return dict(sorted(counts.items()))


def mixed_parts(context: Context) -> bool:
    """Whether the training material has two parts: what shall improve, and what shall be kept."""
    return any(c.extras.get(MIX) for c in clips_of(context, "train"))


def watch_mix(context: Context, summary: dict[str, Any], pool: list[str], round_: int) -> None:
    """Both parts are mined and both are trained on; a part without contrast is said to teach nothing."""
    if not mixed_parts(context):
        return
    part = {c.id: str(c.extras.get(MIX, TARGET)) for c in clips_of(context, "train")}
    chosen = {name: sum(part[i] == name for i in pool) for name in (TARGET, KEPT)}
    kept = summary["by_mix"].get(KEPT, {"contrast": 0, "clips": 0})
    because = f"{kept['contrast']} of {kept['clips']} mined clips of the part to be kept have contrast"
    if not kept["contrast"] or not chosen[KEPT]:
        context.notice(
            f"{because}: nothing of it will be trained on; evaluating it protects nothing, give other clips of it",
            "warn",
        )
    context.decide("mix", chosen, because, {"by_mix": summary["by_mix"]}, round_=round_)
