"""What several steps share: the clips of a split, the recogniser, the frozen contract, and the recorded evaluation."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.act import Context, effect_key
from agent.disk import write_atomic
from agent.forecast import Work
from agent.ledger.rowfiles import write_digests
from agent.presets import choose_preset, mining_plan, work_sizes
from tools.errors import CheckError
from tools.rows import Clip

if TYPE_CHECKING:
    from tools.rows import ScoredRow
    from tools.score.labels import LabelSet
    from tools.text import Profile
    from tools.train.config import GspoConfig
    from tools.verbs.recogniser import Recogniser

CLIPS = "data/clips.jsonl"
SPLITS = ("train", "dev", "test", "retention")


def threads() -> int:
    """Threads for torch: the cores this process may use."""
    return len(os.sched_getaffinity(0))


def write_clips(context: Context, clips: list[Clip]) -> None:
    """All kept clips with their texts; private, so git-ignored: what is public of them is data/membership.jsonl."""
    lines = (json.dumps(c.to_json(), ensure_ascii=False, sort_keys=True) + "\n" for c in clips)
    write_atomic(context.workdir / CLIPS, "".join(lines))


def write_text(path: Path, text: str) -> str:
    """Writes a file whole or not at all and returns its sha256."""
    write_atomic(path, text)
    return hashlib.sha256(text.encode()).hexdigest()


def clips_of(context: Context, *splits: str) -> list[Clip]:
    """The clips of these splits, sorted by id. Raises CheckError when they are not those that were checked."""
    if "clips" not in context.scratch:
        path = context.workdir / CLIPS
        if not path.is_file():
            raise CheckError(f"{CLIPS} is missing from {context.workdir}: the checked clips cannot be read")
        with open(path, encoding="utf-8", newline="\n") as file:
            context.scratch["clips"] = [Clip.from_json(json.loads(line)) for line in file]
    return sorted((c for c in context.scratch["clips"] if c.split in splits), key=lambda c: c.id)


def recogniser(context: Context) -> Recogniser:
    """The seed model with its encoder cache, loaded once a process."""
    if "recogniser" not in context.scratch:
        from agent.steps.seeds import elsewhere

        context.scratch["recogniser"] = elsewhere(context) or _loaded(context)
    found: Recogniser = context.scratch["recogniser"]
    return found


def _loaded(context: Context) -> Recogniser:
    from tools.verbs.recogniser import Recogniser

    return Recogniser.load(seed_folder(context), context.workdir / ".rehear" / "encoder", threads())


def exported(context: Context, folder: Path) -> Recogniser:
    """The model of an export, loaded from its folder; it shares the seed's encoder outputs where its encoder is the same."""
    if "exported" not in context.scratch:
        from tools.verbs.recogniser import Recogniser

        context.scratch["exported"] = Recogniser.load(folder, context.workdir / ".rehear" / "encoder", threads())
    found: Recogniser = context.scratch["exported"]
    return found


def seed_folder(context: Context) -> Path:
    from tools.embedded.seed import resolve_model

    brief = context.session.brief
    return resolve_model(str(brief.seed_folder or brief.answer_to("seed_model")))


def contract(context: Context) -> dict[str, Any]:
    from agent.contract import read_contract

    return read_contract(context.workdir)


def profile_of(context: Context) -> Profile:
    from tools.text import profile

    return profile(str(context.session.brief.answer_to("profile")))


def labels_of(context: Context) -> LabelSet | None:
    """The labels of a label task as they were decided on; None for transcripts."""
    record = context.last("decision", what="labels")
    if record is None:
        return None
    from tools.score.labels import label_set

    return label_set(profile_of(context), record.payload["chosen"])


def metric_of(context: Context) -> str:
    """The error rate that decides: wer, cer or mer; label_error for a wished accuracy, macro_error for macro_recall."""
    from tools.score.labelled import ERROR_OF

    wished = str(context.session.brief.answer_to("metric"))
    return ERROR_OF.get(wished, wished)


def countable(context: Context, rows: Sequence[ScoredRow]) -> tuple[list[ScoredRow], Profile]:
    """The rows and the profile whose word errors are the task's errors: for labels one coded token a row."""
    labels = labels_of(context)
    if labels is None:
        return list(rows), profile_of(context)
    from tools.score.labelled import CODED, code_rows
    from tools.text import profile

    return code_rows(rows, labels, labels.strict), profile(CODED)


def evaluate_model(
    context: Context,
    eval_id: str,
    split: str,
    *,
    model: dict[str, Any],
    weights: Path | None,
    prompt: str,
    limit: int,
    contract_sha256: str | None,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Decodes a split with a model, writes evals/<id>, records it; done before, it is only read. Returns the scores.

    The model is the seed wearing `weights` (None: its own), or the exported `folder`.
    """
    from tools.verbs.evaluate import decode_rows, write_evaluation

    place = context.workdir / "evals" / eval_id
    args = {
        "eval_id": eval_id,
        "split": split,
        "model": model,
        "prompt": prompt,
        "limit": limit,
        "contract": contract_sha256,
    }

    def do() -> dict[str, Any]:
        heard = recogniser(context) if folder is None else exported(context, folder)
        heard.wear(weights)
        if model["kind"] == "seed" or folder is None:
            same_model(eval_id, model["digest"], heard.policy.digest)
        rows = decode_rows(heard, clips_of(context, split), prompt, limit, context.progress(f"decoding {eval_id}"))
        done = write_evaluation(place, rows, profile_of(context), labels_of(context))
        return {
            "rows": done.rows,
            "rows_sha256": done.rows_sha256,
            "scores_sha256": done.scores_sha256,
            "row_digests_sha256": write_digests(place),
            "scores": done.scores,
        }

    result = context.effect("evaluate", args, do)
    record_eval(context, args, result)
    scores: dict[str, Any] = result["scores"]
    return scores


def same_model(what: str, said: str, is_: str) -> None:
    """Raises CheckError where the model at hand, or the file of its answers, is another than the one on record."""
    if said != is_:
        raise CheckError(
            f"{what}: the weights at hand have digest {is_[:12]}, on record is {said[:12]}: they were changed"
        )


def rate(scores: dict[str, Any], metric: str) -> float | None:
    """The declared metric of scores.json: a ratio of corpus totals, None where there is nothing to divide by."""
    if metric in ("label_error", "macro_error"):
        strict = scores["labels"]["strict"]
        return 1.0 - float(strict["accuracy" if metric == "label_error" else "macro_recall"])
    value = scores["cer"]["value"] if metric == "cer" else scores["value"]
    return None if value is None else float(value)


def label_figures(scores: dict[str, Any]) -> dict[str, float | int]:
    """What an `eval` record of a label task holds beside the word errors; {} for transcripts."""
    if "labels" not in scores:
        return {}
    strict, parsed = scores["labels"]["strict"], scores["labels"]["parsed"]
    return {
        "label_error": rate(scores, "label_error") or 0.0,
        "macro_error": rate(scores, "macro_error") or 0.0,
        "parsed_label_error": 1.0 - float(parsed["accuracy"]),
        "parsed_macro_error": 1.0 - float(parsed["macro_recall"]),
        "invalid": int(strict["invalid"]),
    }


def figure(record: Any, metric: str) -> float | None:
    """The value of `metric` on an `eval` record (a MER is what its profile's words give)."""
    scores = record.payload["scores"]
    value = scores[metric] if metric in scores else scores["wer"]
    return None if value is None else float(value)


def record_eval(context: Context, args: dict[str, Any], result: dict[str, Any]) -> None:
    """One `eval` record an evaluation, whatever happened between its outcome and now."""
    key = effect_key("eval", args)
    if any(r.kind == "eval" and r.key == key for r in context.ledger.records()):
        return
    counts = ("insertions", "deletions", "substitutions", "reference_units")
    payload = {
        "eval_id": args["eval_id"],
        "split": args["split"],
        "model": args["model"],
        "prompt": args["prompt"],
        "rows": result["rows"],
        "rows_sha256": result["rows_sha256"],
        "scores_sha256": result["scores_sha256"],
        "row_digests_sha256": result["row_digests_sha256"],
        "contract_sha256": args["contract"],
        "scores": {
            "wer": rate(result["scores"], "wer"),
            "cer": rate(result["scores"], "cer"),
            **{k: result["scores"][k] for k in counts},
            **label_figures(result["scores"]),
        },
        "decoding": {"limit": args["limit"], "temperature": 0},
    }
    context.record("eval", payload, key=key)


def seed_model(context: Context) -> dict[str, Any]:
    """The seed as an evaluation's `model`; whatever checkpoint was worn last is taken off first."""
    heard = recogniser(context)
    heard.wear(None)
    return {"kind": "seed", "run": None, "update": None, "digest": heard.policy.digest}


def work_of(context: Context, config: GspoConfig | None = None) -> Work:
    """The sizes of this run, from the checked clips."""
    brief, rows = context.session.brief, {s: len(clips_of(context, s)) for s in SPLITS}
    return work_sizes(brief, rows, config or choose_preset(context.skill, brief, rows), mining_plan(context.skill))
