"""evaluate: export the selected checkpoint, prove the export, open the sealed test once, decode it with seed and export."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from agent.act import Context, effect_key
from agent.contract import contract_digest
from agent.forecast import evaluate_minutes
from agent.spending import spending
from agent.steps.common import (
    clips_of,
    contract,
    evaluate_model,
    exported,
    rate,
    recogniser,
    seed_model,
    work_of,
)
from agent.steps.runs import selected_run
from tools.errors import CheckError
from tools.files import file_sha256

PROOF_CLIPS = 5


def run(context: Context) -> str:
    selected = context.must("decision", what="select").payload
    with spending(context, "evaluate", evaluate_minutes(work_of(context))):
        export = None if selected["chosen"] == "seed" else _export(context, selected)
        _open(context, selected)
        _decode(context, "seed-test", seed_model(context), None)
        if export is not None:
            _decode(context, "selected-test", export["model"], Path(export["folder"]))
    return "ready"


def _export(context: Context, selected: dict[str, Any]) -> dict[str, Any]:
    """runs/<id>/export: a folder that plain transformers loads offline, proven by decoding; made whole or not at all."""
    update, frozen, run = selected["chosen"], contract(context), selected_run(context)
    folder = context.workdir / "runs" / run / "export"
    weights = context.workdir / "runs" / run / "checkpoints" / f"u{update:04d}" / "trainable.safetensors"
    digest = selected["details"]["digest"]

    def do() -> dict[str, Any]:
        heard = recogniser(context)
        heard.wear(weights)
        shutil.rmtree(folder, ignore_errors=True)
        heard.policy.export(
            folder,
            {
                "base_model": str(context.session.brief.answer_to("seed_model")),
                "base_digest": frozen["seed_model"]["digest"],
                "run": run,
                "update": update,
                "checkpoint_digest": digest,
                "contract_sha256": contract_digest(frozen),
                "prompt": frozen["prompt"]["text"],
            },
        )
        heard.wear(None)
        _prove(context, folder, weights)
        files = {f"runs/{run}/export/{p.name}": file_sha256(p) for p in sorted(folder.iterdir()) if p.is_file()}
        return {"folder": f"runs/{run}/export", "files": files, "digest": exported(context, folder).policy.digest}

    result = context.effect("export", {"run": run, "update": update, "digest": digest}, do)
    model = {"kind": "checkpoint", "run": run, "update": update, "digest": digest}
    return {"folder": str(context.workdir / result["folder"]), "model": model}


def _prove(context: Context, folder: Path, weights: Path) -> None:
    """A fresh process without a network must decode the same text from the export as we do from the checkpoint."""
    from tools.decode.offline import offline_check

    frozen, heard = contract(context), recogniser(context)
    clips = clips_of(context, "dev")[:PROOF_CLIPS]
    heard.wear(weights)
    ours = [a.text for a in heard.greedy(clips, frozen["prompt"]["text"], frozen["decoding"]["limit"])]
    heard.wear(None)
    limit, many = frozen["decoding"]["limit"], heard.policy.multilingual
    theirs = offline_check(folder, clips, frozen["prompt"]["text"], limit, many)
    for clip, a, b in zip(clips, ours, theirs, strict=True):
        if a != b:
            raise CheckError(
                f"the export decodes {clip.id} otherwise than the checkpoint: it is kept in runs, not handed over"
            )
    context.notice(
        f"the export decodes {len(clips)} dev clips as the checkpoint does, offline, through plain transformers"
    )


def _open(context: Context, selected: dict[str, Any]) -> None:
    """The one opening of the test. A resume under the same key is the same opening."""
    frozen = contract(context)
    payload = {
        "run_id": None if selected["chosen"] == "seed" else selected_run(context),
        "update": selected["chosen"],
        "digest": selected["details"]["digest"],
        "contract_sha256": contract_digest(frozen),
        "membership_sha256": frozen["membership_sha256"],
        "reused": bool(context.session.brief.answer_to("reused_benchmark")),
    }
    key = effect_key("test_open", payload)
    if not any(r.kind == "test_open" and r.key == key for r in context.ledger.records()):
        context.record("test_open", payload, key=key)


def _decode(context: Context, eval_id: str, model: dict[str, Any], folder: Path | None) -> None:
    frozen = contract(context)
    scores = evaluate_model(
        context,
        eval_id,
        "test",
        model=model,
        weights=None,
        folder=folder,
        prompt=frozen["prompt"]["text"],
        limit=frozen["decoding"]["limit"],
        contract_sha256=contract_digest(frozen),
    )
    context.measured(f"{eval_id} {frozen['scoring']['metric']}", rate(scores, frozen["scoring"]["metric"]) or 0.0)
