"""The verdict of `rehear mine`: report/headroom.json, .txt and .html from the ledger and the stored answers.

Like a run's result it is not remembered but made: the same ledger and the same files give the same figures again.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from agent.disk import write_atomic
from agent.ledger.rowfiles import rollout_files
from agent.steps.common import clips_of, contract, labels_of, profile_of, rate, write_text
from tools.errors import CheckError
from tools.files import file_sha256
from tools.rows import Answer, Clip, Group

if TYPE_CHECKING:
    from agent.act import Context

FILES = ("report/headroom.json", "report/headroom.txt", "report/headroom.html")
INFORMATIVE = 2  # checkpoints that a run needs before its dev curve has a direction


def publish(context: Context) -> dict[str, Any]:
    """Writes the verdict and puts it on record, once; what is on record already is read again."""
    learn = context.must("decision", what="learn")
    path = context.workdir / FILES[0]

    def do() -> dict[str, Any]:
        return {"files": {n: write_text(context.workdir / n, page) for n, page in _pages(build(context)).items()}}

    args = {"learn": learn.seq, "contract": context.must("freeze").payload["contract_sha256"]}
    _put_back(context, context.effect("headroom", args, do)["files"])
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    _ask_for_more(context, document)
    return document


def _pages(document: dict[str, Any]) -> dict[str, str]:
    from tools.report.headroom import render_html, render_text

    text = json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    return {FILES[0]: text, FILES[1]: render_text(document), FILES[2]: render_html(document)}


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _put_back(context: Context, files: dict[str, str]) -> None:
    """A verdict that was lost or edited is made again; raises CheckError where what it is made from was changed as well."""
    paths = {name: context.workdir / name for name in files}
    lost = [n for n, p in paths.items() if not p.is_file() or file_sha256(p) != files[n]]
    if not lost:
        return
    made = _pages(build(context))
    if any(_sha256(made[name]) != files[name] for name in lost):
        raise CheckError(
            f"{lost[0]} is not the one on record, and what it was made from has changed too: put it back, or start a new "
            f"work directory to mine again"
        )
    for name in lost:
        write_atomic(paths[name], made[name])
    context.notice(f"{', '.join(lost)} was lost or edited: made again as it is on record", "warn")


MORE = {
    "seed_model": "To train it: where are the weights of this very model (a folder here)?",
    "budget": "A training run is paid for apart: which budget shall all of it have?",
}


def _ask_for_more(context: Context, document: dict[str, Any]) -> None:
    """What a later run may answer though the brief stays as it is: its budget, and the weights of a model known by its
    answers alone."""
    from agent.questions import QUESTIONS

    wanted = ["budget"] if document["model"]["kind"] == "local" else ["budget", "seed_model"]
    asked = {r.payload["id"] for r in context.ledger.records("question")}
    for name in wanted:
        if document["verdict"]["learn"] and name not in asked and name in QUESTIONS:
            schema = {"type": "object"} if name == "budget" else {"type": "string", "minLength": 1}
            why = "nothing is trained by rehear mine"
            context.record("question", {"id": name, "text": MORE[name], "schema": schema, "why": why})


def build(context: Context) -> dict[str, Any]:
    """The whole of headroom.json, from ledger, contract and rollouts."""
    record = context.must("decision", what="learn")
    details, frozen = record.payload["details"], contract(context)
    return {
        "schema_version": 1,
        "name": context.session.brief.name,
        "task": "asr" if labels_of(context) is None else "label",
        "metric": frozen["scoring"]["metric"],
        "model": _model(context, frozen),
        "verdict": {
            "learn": record.payload["chosen"],
            "reason": details["reason"],
            "text": record.payload["because"],
            "advice": details["advice"],
            "thresholds": details["evidence"]["thresholds"],
            "record": record.seq,
        },
        "baseline": _baseline(context, frozen["scoring"]["metric"]),
        "noise": _result(context, "noise_floor"),
        "probe": _result(context, "probe"),
        "prompt": _prompts(context),
        "sampling": dict(frozen["sampling"]),
        "mining": {k: details[k] for k in ("subset", "selected", "extended", "pool")},
        "evidence": {k: v for k, v in details["evidence"].items() if k != "thresholds"},
        "doubtful": {"clips": details["doubtful"], "fits": details.get("fits", {})},
        "figures": _figures(context, details),
        "labels": _labels(context, details),
        "cost": cost(context, details),
        "data": dict(context.must("data_check").payload["splits"]),
        "assumptions": context.session.assumptions(),
        "contract_sha256": context.must("freeze").payload["contract_sha256"],
        "not_tested": _not_tested(context, frozen),
    }


def _model(context: Context, frozen: dict[str, Any]) -> dict[str, Any]:
    """What was mined: weights here, a served model, or answers that were given."""
    said = context.session.brief.answer_to("seed_model")
    kind = "local" if not isinstance(said, dict) else "given" if "answers" in said else "served"
    return {"kind": kind, **{k: frozen["seed_model"].get(k, True) for k in ("name", "digest", "weights_known")}}


def _baseline(context: Context, metric: str) -> list[dict[str, Any]]:
    """Greedy on dev and retention, as evaluated."""
    out = []
    for split in ("dev", "retention"):
        found = context.last("eval", eval_id=f"seed-{split}")
        if found is not None:
            p = found.payload
            scores = json.loads((context.workdir / "evals" / p["eval_id"] / "scores.json").read_text(encoding="utf-8"))
            out.append(
                {
                    "split": split,
                    "value": rate(scores, metric),
                    "rows": p["rows"],
                    "eval": p["eval_id"],
                    "rows_sha256": p["rows_sha256"],
                    "record": found.seq,
                }
            )
    return out


def _result(context: Context, effect: str) -> dict[str, Any] | None:
    found = [r for r in context.ledger.records("outcome") if r.payload["effect"] == effect]
    return dict(found[-1].payload["result"]) if found else None


def _prompts(context: Context) -> dict[str, Any]:
    record = context.must("decision", what="prompt")
    d = record.payload["details"]
    return {"chosen": record.payload["chosen"], "tried": d["prompts"], "errors": d["errors"], "record": record.seq}


def mined_groups(context: Context, subset: str) -> list[Group]:
    """The groups of a mined subset, from its stored answers."""
    from agent.steps.mine import groups_of

    answers: list[Answer] = []
    for name in rollout_files(subset):
        path = context.workdir / name
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        answers += [Answer.from_json(json.loads(line)) for line in lines if line]
    by_id = {c.id: c for c in clips_of(context, "train")}
    order = list(dict.fromkeys(a.clip_id for a in answers))
    return groups_of(context, [by_id[i] for i in order], answers)


def _pool(context: Context) -> dict[str, Clip]:
    return {c.id: c for c in clips_of(context, "train")}


def _figures(context: Context, details: dict[str, Any]) -> dict[str, Any] | None:
    """Figures of the answers; None where nothing could be sampled."""
    from agent.steps.mine import errors_of
    from tools.mine import by_keys, headroom, mining_stats

    groups = mined_groups(context, details["subset"])
    if not any(g.answers for g in groups):
        return None
    clips, errors = _pool(context), errors_of(context)
    name = by_keys(details.get("keys", ()))
    stats = mining_stats(groups, {i: name(c) for i, c in clips.items()}, errors)
    by = "speaker" if all(clips[g.clip_id].speaker for g in groups) else "recording"
    frozen, labels = contract(context), labels_of(context)
    metric = "cer" if frozen["scoring"]["metric"] == "cer" else "unit"
    found = headroom(
        clips,
        groups,
        stats,
        profile_of(context),
        errors,
        by=by,
        metric=metric,
        seed=frozen["random_seed"],
        labels=labels,
    )
    return {"metric": frozen["scoring"]["metric"] if labels is None else "label_error", **found}


def _labels(context: Context, details: dict[str, Any]) -> dict[str, Any] | None:
    labels = labels_of(context)
    if labels is None:
        return None
    from tools.mine.classes import label_report

    return label_report(mined_groups(context, details["subset"]), _pool(context), labels)


def cost(context: Context, details: dict[str, Any]) -> dict[str, Any]:
    """What a training run would take at worst: the preset's run, and the smallest one that tells anything."""
    from agent.forecast import evaluate_minutes, train_minutes
    from agent.presets import choose_preset
    from agent.steps.common import SPLITS, work_of

    rows = {s: len(clips_of(context, s)) for s in SPLITS}
    config = choose_preset(context.skill, context.session.brief, rows)
    local = not isinstance(context.session.brief.answer_to("seed_model"), dict)
    few = min(config.updates, INFORMATIVE * config.checkpoint_every)
    out: dict[str, Any] = {"preset": config.preset, "pool": details["pool"], "local": local}
    for name, updates in (("whole", config.updates), ("smallest", few)):
        asked = config.model_copy(update={"updates": updates})
        work = work_of(context, asked)
        minutes = round(train_minutes(work) + evaluate_minutes(work), 2)
        out[name] = {
            "updates": updates,
            "checkpoints": updates // config.checkpoint_every,
            "answers": updates * asked.groups * asked.answers,
            "sampled_answers_worst": updates * asked.groups * asked.offer_factor * asked.answers,
            "cpu_minutes_worst": minutes if local else None,
        }
    return out


def _not_tested(context: Context, frozen: dict[str, Any]) -> list[str]:
    out = ["training: an oracle is an opportunity; how much of it a run would keep is not known before one is made"]
    if "retention" not in context.session.brief.manifests():
        out.append("retention: there is no set for it")
    if "given" in frozen["sampling"]:
        out.append(
            "the noise floor, other prompts and more answers: nothing can be asked again of answers that were given"
        )
    elif not frozen["seed_model"].get("weights_known", True):
        out.append(
            "the model's weights: its server tells no digest, so another model under the same name would not show by it"
        )
    return out
