"""Makes finished work directories through the real steps, in seconds and without a model.

Everything but hearing and training is the product's own: session, steps, gates, ledger, budget, report. The recogniser
is `speech.FakeRecogniser`; training writes the files that the trainer writes, with figures from a table. `snapshot`
keeps the work directory as a SIGKILL at that moment would leave it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import soundfile
from safetensors.numpy import load_file, save_file

from agent.act import Context, act
from agent.brief import Brief
from agent.contract import read_contract
from agent.driver import load
from agent.session import Session
from agent.steps import stages
from agent.steps import train as train_step
from agent.steps.runs import current_run, selected_run
from tests.cheats.speech import TENSORS, WORDS, FakeRecogniser, chance, digest_of, seed_folder

SIZES = {"train": (6, 4), "dev": (4, 3), "test": (12, 2), "retention": (3, 3)}  # speakers, rows each
MORE = {5: 0.3, 10: 0.15, 15: 0.22, 20: 0.2}  # update -> share of words misread


def corpus(folder: Path, seed: int = 0) -> dict[str, Path]:
    """Manifests with short noises for audio: no two alike, no speaker in two splits."""
    out = {}
    for split, (speakers, rows) in SIZES.items():
        lines = []
        for s in range(speakers):
            for r in range(rows):
                name = f"{split}-{s:02d}-{r}"
                path = folder / "audio" / f"{name}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                rng = np.random.default_rng(int(chance(seed, name) * 2**32))
                tone = np.sin(np.cumsum(rng.uniform(0.05, 0.6, 40).repeat(200))) * 0.3 + rng.normal(0, 0.05, 8000)
                soundfile.write(path, tone, 16000, subtype="PCM_16")
                text = " ".join(WORDS[int(chance(seed, name, i) * len(WORDS))] for i in range(6 + r))
                row = {"id": name, "audio_filepath": f"audio/{name}.wav", "duration": 0.5, "text": text}
                lines.append({**row, "speaker": f"{split}-speaker-{s:02d}", "lang": "en"})
        out[split] = folder / f"{split}.jsonl"
        out[split].write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


def brief_for(folder: Path, model: Path, **more: Any) -> Brief:
    data = {split: f"{split}.jsonl" for split in SIZES}
    values = {
        "name": "sample",
        "seed_model": str(model),
        "data": data,
        "budget": {"cpu_minutes": 400},
        "preset": "local-tiny",
    }
    return Brief.build({**values, **more}, base=folder)


class Maker:
    """One experiment: its corpus, its seed model, and how well each checkpoint hears.

    `snapshot` (what, count, folder): at that call of a recogniser's `greedy` or `sample`, or at that `update` of the
    training, the work directory is copied to `folder`.
    """

    def __init__(self, root: Path, skill: dict[int, float] | None = None, seed: int = 0, **brief: Any) -> None:
        self.root, self.skill = root, MORE if skill is None else skill
        self.heard: dict[str, float] = {}
        self.snapshot: tuple[str, int, Path] | None = None
        self.ticks: Counter[str] = Counter()
        self.workdir = Path()
        self.stop_after: int | None = None
        self.wasted = 2  # clips of an update that are sampled in vain
        if not (root / "seed").exists():
            seed_folder(root / "seed")
            corpus(root / "corpus", seed)
        self.brief = brief_for(root / "corpus", root / "seed", **{"random_seed": seed, **brief})

    def recogniser(self, folder: Path) -> FakeRecogniser:
        return FakeRecogniser(folder / "model.safetensors", self.heard, self.tick)

    def tick(self, what: str) -> None:
        self.ticks[what] += 1
        if self.snapshot is not None and (what, self.ticks[what]) == self.snapshot[:2]:
            copy(self.workdir, self.snapshot[2])

    @contextmanager
    def session(self, workdir: Path, **more: Any) -> Iterator[Context]:
        skill = load()
        self.workdir, self.ticks = workdir, Counter()
        with Session.open(workdir, self.brief, skill=skill.name, skill_digest=skill.digest, **more) as session:
            context = Context(session, skill, lambda event: None)
            context.scratch["recogniser"] = self.recogniser(self.root / "seed")
            self.heard.update(_known(workdir, self.skill))
            yield context

    def run(self, workdir: Path, start: str | None = None, until: str | None = None, **more: Any) -> dict[str, Any]:
        """From `start` (the procedure's own) to the end, or until `until` is done. Returns the last outcome."""
        with self.session(workdir, **more) as context, patch.object(train_step, "_train", self._train):
            procedure = context.skill.procedure
            here, result = start or procedure.start, {"outcome": "ready", "error": None}
            while here != "end":
                if here == "evaluate":
                    self._export(context)
                state = procedure.state(here)
                result = act(context, state)
                if result["error"] or here == until:
                    return {**result, "state": here}
                here = state.next[result["outcome"]]
        return {**result, "state": "end"}

    def _train(self, context: Context, config: Any, pool: list[Any], *_: Any) -> Any:
        """What the trainer leaves behind: config.json, metrics.jsonl, whole checkpoints; each one evaluated."""
        from tools.train import trainer

        run = current_run(context)
        run_dir, launch = context.workdir / "runs" / run, context.ledger.records("launch")[-1].payload
        frozen = read_contract(context.workdir)
        identity = {"reward": frozen["reward"]["digest"], "seed model": frozen["seed_model"]["digest"]}
        body = {"v": 1, "config": config.model_dump(mode="json"), "config_sha256": config.digest, "identity": identity}
        _write(run_dir / "config.json", json.dumps(body, indent=1, sort_keys=True))
        metrics, attempt, begun = run_dir / "metrics.jsonl", launch["attempt"], launch["from_update"]
        if attempt > 1:
            _add(metrics, {"event": "resume", "run": run, "attempt": attempt, "from_update": begun, "lost": []})
        if begun:
            train_step._evaluate(context, begun)
        ended = ("finished", "")
        for line in metrics_lines(config, [c.id for c in pool], attempt, run, self.wasted)[begun:]:
            update = line["update"]
            if self.stop_after == update - 1:
                raise trainer.Interrupted(update - 1, run_dir)
            _add(metrics, line)
            self.tick("update")
            if update % config.checkpoint_every == 0:
                digest = write_checkpoint(run_dir / "checkpoints", update, self.root / "seed" / "model.safetensors")
                self.heard[digest] = self.skill.get(update, 0.4)
                train_step._evaluate(context, update)
                said = stages.judge(context, config, update) if update < config.updates else None
                if said:
                    ended = said
                    break
        return trainer.RunResult(
            run, attempt, *ended, config.updates, config.updates, [], "gspo", True, True, len(pool),
            120, 160, 1280, "0" * 64, "0" * 64, 1.0, 1.0,
        )  # fmt: skip

    def _export(self, context: Context) -> None:
        """The export on record, so that the step adopts it: its own proof needs a real model."""
        selected = context.must("decision", what="select").payload
        if selected["chosen"] == "seed":
            return
        update, digest = selected["chosen"], selected["details"]["digest"]
        run = selected_run(context)
        folder = context.workdir / "runs" / run / "export"
        context.state = "evaluate"

        def do() -> dict[str, Any]:
            weights = load_file(context.workdir / f"runs/{run}/checkpoints/u{update:04d}/trainable.safetensors")
            folder.mkdir(parents=True, exist_ok=True)
            save_file({**load_file(self.root / "seed" / "model.safetensors"), **weights}, folder / "model.safetensors")
            sha = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
            return {
                "folder": f"runs/{run}/export",
                "files": {f"runs/{run}/export/model.safetensors": sha},
                "digest": digest,
            }

        context.effect("export", {"run": run, "update": update, "digest": digest}, do)
        context.scratch["exported"] = self.recogniser(folder)


def metrics_lines(
    config: Any, ids: list[str], attempt: int, run: str = "run1", wasted: int = 2
) -> list[dict[str, Any]]:
    """One line an update, clips in the order that seed and pool give."""
    from tools.train.order import ClipOrder, Position

    order, at, lines = ClipOrder(ids, config.random_seed, config.groups * config.offer_factor), Position(), []
    offered = min(len(ids), config.groups + wasted, config.groups * config.offer_factor)
    for update in range(1, config.updates + 1):
        stream = order.following(at)
        clips = [next(stream) for _ in range(offered)]
        at = order.advance(at, offered)
        lines.append(
            {
                "run": run, "attempt": attempt, "update": update, "lr": config.learning_rate(update),
                "offered": offered, "retained": config.groups, "answers": offered * config.answers,
                "clips": clips[: config.groups], "reward": -0.5 + update / 100, "offered_reward": -0.6 + update / 100,
                "contrast_share": config.groups / offered, "grad_norm": 0.5, "ratio_mean": 1.001, "ratio_p99": 1.05,
                "ratio_moved": 0.02, "clip_share": 0.01, "entropy": 1.0, "length_ratio": 1.0,
            }
        )  # fmt: skip
    return lines


def write_checkpoint(root: Path, update: int, seed: Path) -> str:
    """u<update> with trained tensors, state and the marker; returns the whole model's digest."""
    base = load_file(seed)
    moved = {name: base[name] + np.float32(update / 100) for name in TENSORS[1:]}
    digest = digest_of({**base, **moved})
    folder = root / f"u{update:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(moved, folder / "trainable.safetensors")
    save_file({"exp_avg": moved[TENSORS[1]]}, folder / "optimiser.safetensors")
    (folder / "state.json").write_text(json.dumps({"update": update}))
    files = {
        p.name: {"size": p.stat().st_size, "sha256": hashlib.sha256(p.read_bytes()).hexdigest()}
        for p in (folder / "state.json", folder / "trainable.safetensors", folder / "optimiser.safetensors")
    }
    marker = {"v": 1, "update": update, "digest": digest, "candidate": True, "files": files}
    (folder / "COMPLETE").write_text(json.dumps(marker, indent=1, sort_keys=True) + "\n")
    return digest


def _known(workdir: Path, skill: dict[int, float]) -> Iterator[tuple[str, float]]:
    """Digest and rate of the checkpoints that are there already."""
    for marker in workdir.glob("runs/*/checkpoints/u*/COMPLETE"):
        body = json.loads(marker.read_text())
        yield body["digest"], skill.get(body["update"], 0.4)


def _add(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as out:
        out.write(json.dumps(line) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy(workdir: Path, to: Path) -> Path:
    """A copy to be cheated with; audio stays where it is."""
    shutil.copytree(workdir, to, symlinks=True)
    return to
