"""baseline: compare prompts on dev, look at the errors, freeze the contract, measure the seed on dev and retention."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from agent.act import Context
from agent.contract import (
    CLASSES_RULE,
    SELECTION_RULE,
    build_contract,
    contract_digest,
    references_digest,
    write_contract,
)
from agent.forecast import baseline_minutes
from agent.result.labels import COMPARATOR
from agent.spending import spending
from agent.steps.common import (
    clips_of,
    contract,
    countable,
    evaluate_model,
    labels_of,
    metric_of,
    profile_of,
    rate,
    recogniser,
    seed_model,
    work_of,
    write_text,
)
from agent.steps.reading import read_errors
from agent.steps.references import answers_of, refuse_slipped
from agent.steps.rewards import said_reward
from agent.steps.seeds import named, probe_server
from tools.rows import Clip

ROOM = 2.0
LEAST_LIMIT = 24
LEAST_LABEL_LIMIT = 16
STYLE_WORDS = 12
GLOSSARY_WORDS = 16
STOP_LENGTH = 3


def run(context: Context) -> str:
    with spending(context, "baseline", baseline_minutes(work_of(context))):
        limit = answer_limit(context)
        prompts = candidate_prompts(context)
        probe_server(context, prompts, limit)
        chosen = _compare(context, prompts, limit)
        refuse_slipped(context, "dev", answers_of(context, f"prompt-{chosen + 1}-dev"))
        read_errors(context, f"prompt-{chosen + 1}-dev")
        _freeze(context, prompts[chosen], limit)
        _measure_seed(context)
        _comparator(context)
        _noise_floor(context)
    return "ready"


def answer_limit(context: Context) -> int:
    """Tokens an answer may have: twice the longest reference outside the test, within the model's window."""
    heard = recogniser(context)
    longest, _ = heard.longest_reference(clips_of(context, "train", "dev", "retention"))
    least = LEAST_LIMIT if labels_of(context) is None else LEAST_LABEL_LIMIT
    return min(heard.policy.max_target // 2, max(least, round(ROOM * longest)))


def candidate_prompts(context: Context) -> list[str]:
    """The brief's prompts, or some made without dev and test: none, an example of style and a glossary from training
    references; for labels none, and the labels."""
    if recogniser(context).given:  # under whichever prompt they were decoded
        return [""]
    said = context.session.brief.prompts
    if said:
        return list(dict.fromkeys(said))
    labels = context.last("decision", what="labels")
    if labels is not None:
        return ["", ", ".join(labels.payload["chosen"])]
    texts = [c.text or "" for c in clips_of(context, "train")]
    return list(dict.fromkeys(["", style_example(texts), glossary(texts)]))


def style_example(texts: list[str]) -> str:
    """One training reference of middling length: it shows case, punctuation and number style."""
    fitting = sorted(
        (t.strip() for t in texts if t.strip() and len(t.split()) <= STYLE_WORDS), key=lambda t: (len(t), t)
    )
    return fitting[len(fitting) // 2] if fitting else ""


def glossary(texts: list[str]) -> str:
    """The commonest longer words of the training references, as a list."""
    words = Counter(w for t in texts for w in re.findall(r"\w+", t.casefold()) if len(w) > STOP_LENGTH)
    common = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:GLOSSARY_WORDS]
    return ", ".join(w for w, _ in common)


def _compare(context: Context, prompts: list[str], limit: int) -> int:
    """Every prompt on dev; the lowest error wins, the shorter prompt on a tie."""
    metric = metric_of(context)
    errors: list[float] = []
    for i, prompt in enumerate(prompts):
        scores = evaluate_model(
            context,
            f"prompt-{i + 1}-dev",
            "dev",
            model=seed_model(context),
            weights=None,
            prompt=prompt,
            limit=limit,
            contract_sha256=None,
        )
        value = rate(scores, metric)
        errors.append(float("inf") if value is None else value)
        context.measured(f"prompt {i + 1} dev {metric}", errors[-1], prompt=repr(prompt))
        _look(context, scores, f"prompt-{i + 1}-dev")
    best = min(range(len(prompts)), key=lambda i: (errors[i], len(prompts[i])))
    because = f"lowest dev {metric} of {len(prompts)} prompts"
    details = {"prompts": prompts, "errors": errors, "evals": [f"prompt-{i + 1}-dev" for i in range(len(prompts))]}
    context.decide("prompt", prompts[best], because, details)
    return best


def _look(context: Context, scores: dict[str, Any], eval_id: str) -> None:
    """Say what would make the number mean something else: wrong script, loops, truncation, a leaked prompt."""
    told = {k: v for k, v in scores["diagnostics"].items() if isinstance(v, int) and v and k != "length_outliers"}
    if told:
        context.notice(f"{eval_id}: " + ", ".join(f"{v} rows {k}" for k, v in told.items()), level="warn")


def _freeze(context: Context, prompt: str, limit: int) -> None:
    if context.last("freeze") is not None:
        return
    brief, heard, profile = context.session.brief, recogniser(context), profile_of(context)
    from agent.presets import mining_plan
    from tools.score.transcripts import ALIGNER, SCORER, SCORER_VERSION

    mining = mining_plan(context.skill)
    labels, metric = labels_of(context), metric_of(context)
    protected = [] if labels is None else [profile.normalise(x) for x in brief.answer_to("protected") or []]
    parts = build_contract(
        seed_model={
            "path_name": named(brief.answer_to("seed_model")),
            "digest": heard.policy.digest,
            **heard.provenance(),
        },
        prompt={"text": prompt, "ids": _prompt_ids(context, prompt)},
        profile=profile.to_json(),
        scoring={
            "metric": metric,
            "unit": profile.to_json().get("unit", "word") if labels is None else "label",
            "scorer": SCORER,
            "version": SCORER_VERSION,
            "aligner": ALIGNER,
            **({} if labels is None else {"reading": "strict", "labels": list(labels.labels)}),
        },
        decoding={"kind": "greedy", "temperature": 0, "limit": limit, "chunk": heard.chunk},
        sampling=heard.sampling(mining.temperature, mining.answers, mining.extend_to),
        reward=said_reward(context).to_contract(),
        selection={
            "rule": CLASSES_RULE if protected else SELECTION_RULE,
            "metric": metric,
            "split": "dev",
            "retention_limit": brief.answer_to("retention_limit"),
            **({"protected": protected, "class_limit": brief.answer_to("class_limit")} if protected else {}),
        },
        references={s: references_digest(_pairs(clips_of(context, s))) for s in ("train", "dev", "test", "retention")},
        membership_sha256=context.must("data_check").payload["membership_sha256"],
        languages=list(brief.answer_to("languages") or []),
        random_seed=int(brief.answer_to("random_seed") or 0),
    )
    write_contract(context.workdir, parts)
    context.record("freeze", {"contract_sha256": contract_digest(parts), "contract": parts})


def _pairs(clips: list[Clip]) -> list[tuple[str, str]]:
    return [(c.id, c.text or "") for c in clips]


def _prompt_ids(context: Context, prompt: str) -> list[int]:
    policy = recogniser(context).policy
    lang = clips_of(context, "dev")[0].lang
    return list(policy.prompt_ids(prompt, lang))


def _measure_seed(context: Context) -> None:
    frozen = contract(context)
    metric = frozen["scoring"]["metric"]
    for split in ("dev", "retention"):
        if not clips_of(context, split):
            continue
        scores = evaluate_model(
            context,
            f"seed-{split}",
            split,
            model=seed_model(context),
            weights=None,
            prompt=frozen["prompt"]["text"],
            limit=frozen["decoding"]["limit"],
            contract_sha256=contract_digest(frozen),
        )
        context.measured(f"seed {split} {metric}", rate(scores, metric) or 0.0)


def _comparator(context: Context) -> None:
    """For labels: what aliases, priors and parsing alone would gain, fitted on the seed's dev answers and no others."""
    labels = labels_of(context)
    if labels is None:
        return
    from tools.score.comparator import fit_comparator
    from tools.verbs.evaluate import read_rows

    def do() -> dict[str, Any]:
        fitted = fit_comparator(read_rows(context.workdir / "evals" / "seed-dev"), labels)
        text = json.dumps(fitted.to_json(), ensure_ascii=False, sort_keys=True) + "\n"
        told = {
            "aliases": len(fitted.aliases),
            "remap": len(fitted.remap),
            "fitted_on": fitted.fitted_on,
            "split": "dev",
        }
        return {"files": {COMPARATOR: write_text(context.workdir / COMPARATOR, text)}, **told}

    told = context.effect("fit_comparator", {"contract": contract_digest(contract(context))}, do)
    context.notice(f"comparator without training: {told['aliases']} aliases and {told['remap']} remaps from dev")


def _noise_floor(context: Context) -> None:
    """The seed on dev once more in other batches: what differs is noise, and a gain below it is not shown."""
    from tools.score.transcripts import score_rows
    from tools.verbs.evaluate import decode_rows, read_rows

    frozen, heard = contract(context), recogniser(context)
    if not heard.can_repeat:
        context.notice("noise floor: not measured, given answers cannot be decoded again", level="warn")
        return

    def do() -> dict[str, Any]:
        usual, heard.chunk = heard.chunk, 5
        try:
            heard.wear(None)
            again = decode_rows(heard, clips_of(context, "dev"), frozen["prompt"]["text"], frozen["decoding"]["limit"])
        finally:
            heard.chunk = usual
        before = read_rows(context.workdir / "evals" / "seed-dev")
        metric = "cer" if frozen["scoring"]["metric"] == "cer" else "unit"
        pairs = (countable(context, rows) for rows in (before, again))
        a, b = (rate(score_rows(rows, profile).to_json(), metric) or 0.0 for rows, profile in pairs)
        differing = sum(x.hyp != y.hyp for x, y in zip(before, again, strict=True))
        return {"rows": len(again), "differing": differing, "delta": b - a}

    result = context.effect("noise_floor", {"contract": contract_digest(frozen)}, do)
    context.notice(f"noise floor: {result['differing']} of {result['rows']} dev answers differ in other batches")
