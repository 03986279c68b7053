"""References that do not belong to their audio, once the seed model has answered (dev and train only).

A column that slipped is refused: whatever is trained on it learns the neighbour's words. Single references that all
answers contradict are listed for a person to listen to; nothing is rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from agent.act import Context
from agent.steps.common import clips_of, labels_of, write_text
from tools.errors import CheckError
from tools.rows import Group

LIST = "rollouts/doubtful.jsonl"  # holds texts: private, as all rollouts are
NAMED = 5


def answers_of(context: Context, eval_id: str) -> dict[str, str]:
    """The greedy answers of an evaluation by clip id."""
    with open(context.workdir / "evals" / eval_id / "rows.jsonl", encoding="utf-8", newline="\n") as file:
        return {row["id"]: row["hyp"] for row in map(json.loads, file)}


def refuse_slipped(context: Context, split: str, answers: Mapping[str, str]) -> None:
    """Raises CheckError where the answers match the references of neighbouring rows and not their own."""
    from tools.data.doubtful import slipped_references

    if labels_of(context) is not None:  # a label recurs: neighbours say nothing
        return
    clips = sorted(clips_of(context, split), key=lambda c: (c.manifest, c.row))
    slip = slipped_references([c.text or "" for c in clips], [answers.get(c.id) for c in clips])
    if slip is not None:
        rows = f"{abs(slip.rows)} row{'s' if abs(slip.rows) > 1 else ''} too {'late' if slip.rows > 0 else 'early'}"
        raise CheckError(
            f"the references of {split} stand {rows} against the audio: the seed model's answers have a word error rate of "
            f"{slip.error:.2f} against their own reference and {slip.moved_error:.2f} against that of the row they match; "
            f"mend the text column of {clips[0].manifest}"
        )


def look_at_references(context: Context, groups: Sequence[Group]) -> None:
    """Refuses slipped references of train, and lists the clips whose answers agree with each other and not with the
    reference.
    """
    from tools.data.doubtful import doubtful_references

    if labels_of(context) is not None:
        return
    refuse_slipped(context, "train", {g.clip_id: g.greedy.text for g in groups if g.greedy is not None})
    references = {c.id: c.text or "" for c in clips_of(context, "train")}
    answers = {g.clip_id: [a.text for a in g.answers if a.finish == "stop"] for g in groups}
    doubts = doubtful_references({g.clip_id: references[g.clip_id] for g in groups}, answers)
    text = "".join(json.dumps(doubt.to_json(), ensure_ascii=False) + "\n" for doubt in doubts)
    (context.workdir / LIST).parent.mkdir(exist_ok=True)
    write_text(context.workdir / LIST, text)
    if doubts:
        named = ", ".join(doubt.id for doubt in doubts[:NAMED]) + (" …" if len(doubts) > NAMED else "")
        context.notice(
            f"{len(doubts)} reference(s) of train that all answers contradict alike: {named}; listen to them ({LIST})",
            "warn",
        )
