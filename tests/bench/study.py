"""The study: does RL help, beside supervised training with the same number of steps? `make study`; resumable.

    python -m tests.bench.study run [--root DIR] [--only NAME]   trains and evaluates what is not there yet
    python -m tests.bench.study table [--root DIR]               the table, in Markdown, from the stored rows alone

Arms, on the demo corpus with seeds 0, 1, 2, all with the same pool, presentations, optimiser steps and learning rate:

    seed        the seed model
    sft         cross-entropy on references
    rl          GSPO, reward -CER
    sft-rl      half the updates SFT, then half GSPO from the exported SFT model
    rl-xy       GSPO with general English (Y) in the pool beside the domain (X): other sentences and voices than retention's
    rl-blend    GSPO, composite reward (seed 0)
    rl-frontier GSPO, -CER, groups weighted towards a success share of one half (seed 0)

and seed, sft, rl on `../shared/speech/digits` (real voices; two speakers train, one is dev, one test). The checkpoint is
selected by the declared rule (lowest dev WER, retention within 0.01); the test is decoded after that, once an arm.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tools.data.manifest import read_manifest
from tools.embedded import corpus as demo
from tools.embedded.seed import seed_model
from tools.embedded.sentences import GENERAL
from tools.rows import Clip, ScoredRow
from tools.score import compare_rows, score_rows
from tools.select import select_checkpoint
from tools.text import profile
from tools.verbs.evaluate import decode_rows, read_rows
from tools.verbs.recogniser import Recogniser

HERE = Path(__file__).resolve().parents[2]
DIGITS = HERE.parent / "shared" / "speech" / "digits" / "manifest.jsonl"
UPDATES = 40
LIMIT = 64
SCORING = profile("english")
SETTINGS = {
    "groups": 10, "answers": 8, "temperature": 0.8, "lr": 4e-5, "optimiser_steps": 2, "checkpoint_every": 10, "kl_every": 10,
    "kl_max": None, "ratio_p99_max": 10.0, "answer_limit": LIMIT,
}  # fmt: skip
Y_VOICES = 3


@dataclass(frozen=True)
class Arm:
    """One line of the table: `stages` are (method, updates) one after the other, each from the one before."""

    name: str
    stages: tuple[tuple[str, int], ...]
    reward: str = "cer"
    mixed: bool = False
    extra: tuple[tuple[str, Any], ...] = ()


ARMS = (
    Arm("sft", (("sft", UPDATES),)),
    Arm("rl", (("gspo", UPDATES),)),
    Arm("sft-rl", (("sft", UPDATES // 2), ("gspo", UPDATES // 2))),
    Arm("rl-xy", (("gspo", UPDATES),), mixed=True),
    Arm("rl-blend", (("gspo", UPDATES),), reward="blend"),
    Arm("rl-frontier", (("gspo", UPDATES),), extra=(("frontier_weight", 4.0),)),
)
JOBS = [("demo", 0, a) for a in ARMS[:2]] + [("digits", 0, a) for a in ARMS[:2]]
JOBS += [("demo", seed, a) for seed in (1, 2) for a in ARMS[:2]]
JOBS += [("demo", seed, a) for seed in (0, 1, 2) for a in ARMS[2:4]] + [("demo", 0, a) for a in ARMS[4:]]


# --- data ----------------------------------------------------------------------------------------------------------


def digested(clips: Sequence[Clip]) -> list[Clip]:
    """The clips with their audio digests, sorted by id."""
    from tools.audio.identity import clip_digest
    from tools.audio.read import read_clip

    return sorted((replace(c, audio_sha256=clip_digest(read_clip(c))) for c in clips), key=lambda c: c.id)


def heard(manifest: Path, split: str) -> list[Clip]:
    """The rows of a manifest, digested."""
    return digested(read_manifest(manifest, split).rows)


def demo_splits(root: Path, seed: int) -> dict[str, list[Clip]]:
    folder = root / f"corpus-{seed}"
    splits = {name: heard(path, name) for name, path in demo.build_corpus(folder, seed).items()}
    also = root / f"general-{seed}"
    if not (also / "general.jsonl").is_file():
        _speak_general(also, seed)
    return {**splits, "general": heard(also / "general.jsonl", "train")}


def _speak_general(out: Path, seed: int) -> None:
    """General English for training: the sentences that retention does not use, in voices of the train split."""
    lines = demo.plan_corpus(seed)
    used = {line.text for line in lines if line.split == "retention"}
    voices = sorted({line.voice for line in lines if line.split == "train"})
    rng = random.Random(f"study general {seed}")
    made = [
        demo._line("general", i, text, voice, rng)
        for i, (text, voice) in enumerate(
            (text, voice) for text in GENERAL if text not in used for voice in rng.sample(voices, Y_VOICES)
        )
    ]
    out.mkdir(parents=True, exist_ok=True)
    plan = out / "plan.json"
    plan.write_text(json.dumps([asdict(line) for line in made]), encoding="utf-8")
    demo._speak_elsewhere(plan)


def digit_splits(root: Path) -> dict[str, list[Clip]]:
    """Takes 0-14 of two speakers train, 0-14 of a third are dev, 0-29 of the fourth test; retention is the demo's."""
    cast = {"jackson": ("train", 15), "george": ("train", 15), "lucas": ("dev", 15), "nicolas": ("test", 30)}
    rows = read_manifest(DIGITS, "").rows
    splits: dict[str, list[Clip]] = {}
    for clip in rows:
        split, takes = cast[str(clip.speaker)]
        if int(clip.extras["take"]) < takes:
            splits.setdefault(split, []).append(replace(clip, split=split))
    splits = {name: digested(clips) for name, clips in splits.items()}
    return {**splits, "retention": demo_splits(root, 0)["retention"]}


# --- one arm -------------------------------------------------------------------------------------------------------


class Bench:
    """The recogniser and the clips of one corpus and seed; `folder` keeps rows and runs."""

    def __init__(self, root: Path, corpus: str, seed: int) -> None:
        self.root, self.seed = root, seed
        self.folder = root / f"{corpus}-{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.splits = demo_splits(root, seed) if corpus == "demo" else digit_splits(root)
        self.model = seed_model()

    def load(self, folder: Path) -> Recogniser:
        return Recogniser.load(folder, self.root / "encoder", len(os.sched_getaffinity(0)))

    def rows(self, model: Recogniser, split: str, name: str) -> list[ScoredRow]:
        """Decoded once, then read from disk."""
        place = self.folder / "evals" / f"{name}-{split}"
        if not (place / "rows.jsonl").is_file():
            place.mkdir(parents=True, exist_ok=True)
            rows = decode_rows(model, self.splits[split], "", LIMIT)
            tmp = place / "rows.tmp"
            tmp.write_text("".join(json.dumps(r.to_json(), sort_keys=True) + "\n" for r in rows), encoding="utf-8")
            os.replace(tmp, place / "rows.jsonl")
        return read_rows(place)

    def wer(self, model: Recogniser, split: str, name: str) -> float:
        return score_rows(self.rows(model, split, name), SCORING).value or 0.0

    def baseline(self) -> dict[str, float]:
        model = self.load(self.model)
        return {split: self.wer(model, split, "seed") for split in ("dev", "retention", "test")}

    def run(self, arm: Arm) -> dict[str, Any]:
        """Train, select, open the test. Done before, it is read from `<arm>.json`."""
        done = self.folder / f"{arm.name}.json"
        if done.is_file():
            return json.loads(done.read_text(encoding="utf-8"))
        base = self.baseline()
        candidates: list[dict[str, Any]] = [
            {"update": "seed", "dev": base["dev"], "retention": base["retention"], "digest": "seed"}
        ]
        start, offset, ends, seconds = self.model, 0, [], 0.0
        for method, updates in arm.stages:
            model = self.load(start)
            result = self._stage(model, arm, method, updates, offset, candidates)
            offset += updates
            seconds += result.seconds
            ends.append(f"{method}: {result.reason} after {result.updates} {result.detail}".strip())
            start = self._export(model, arm, offset)
        chosen = select_checkpoint(candidates)
        out = {
            "arm": arm.name,
            "seed": self.seed,
            "baseline": base,
            "ends": ends,
            "selection": chosen.to_json(),
            "seconds": seconds,
        }
        self._open_test(arm, chosen.update)
        done.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")
        return out

    def _stage(
        self, model: Recogniser, arm: Arm, method: str, updates: int, offset: int, candidates: list[dict[str, Any]]
    ) -> Any:
        from tools.reward import make_reward
        from tools.train.config import make_config
        from tools.train.trainer import train

        pool = [*self.splits["train"], *(self.splits["general"] if arm.mixed else [])]
        more = {"method": method, "updates": updates, "random_seed": self.seed, **dict(arm.extra)}
        config = make_config({**SETTINGS, **more})
        policy = model.policy

        def evaluate(update: int) -> None:
            at, name = offset + update, f"{arm.name}-u{offset + update:03d}"
            figures = {split: self.wer(model, split, name) for split in ("dev", "retention")}
            if all(c["update"] != at for c in candidates):
                candidates.append({"update": at, **figures, "digest": name})

        result = train(
            policy, pool, model.cache.get, make_reward(arm.reward, SCORING), config, self._run_folder(arm, offset),
            prompts=lambda clip: policy.prompt_ids("", clip.lang, clip_id=clip.id), evaluate=evaluate,
            targets=lambda clip: policy.answer_tokens(clip.text or ""),
        )  # fmt: skip
        for checkpoint in result.checkpoints:  # those of an attempt before a kill
            model.wear(self._weights(arm, offset, checkpoint["update"]))
            evaluate(checkpoint["update"])
        model.wear(self._weights(arm, offset, result.last_good) if result.last_good else None)
        return result

    def _run_folder(self, arm: Arm, offset: int) -> Path:
        return self.folder / "runs" / f"{arm.name}-{offset}"

    def _weights(self, arm: Arm, offset: int, update: int) -> Path:
        return self._run_folder(arm, offset) / "checkpoints" / f"u{update:04d}" / "trainable.safetensors"

    def _export(self, model: Recogniser, arm: Arm, offset: int) -> Path:
        out = self.folder / "exports" / f"{arm.name}-{offset}"
        if not out.is_dir():
            model.policy.export(out, {"step": offset})
        return out

    def _open_test(self, arm: Arm, update: int | str) -> None:
        """The test rows of the selected checkpoint; those of the seed model where that won."""
        if update == "seed":
            rows = self.rows(self.load(self.model), "test", "seed")
            place = self.folder / "evals" / f"{arm.name}-test"
            place.mkdir(parents=True, exist_ok=True)
            text = "".join(json.dumps(r.to_json(), sort_keys=True) + "\n" for r in rows)
            (place / "rows.jsonl").write_text(text, encoding="utf-8")
            return
        start, offset = self.model, 0
        for _, updates in arm.stages:
            if int(update) <= offset + updates:
                break
            offset += updates
            start = self.folder / "exports" / f"{arm.name}-{offset}"
        model = self.load(start)
        model.wear(self._weights(arm, offset, int(update) - offset))
        self.rows(model, "test", arm.name)


# --- the table -----------------------------------------------------------------------------------------------------


def stored(root: Path, corpus: str, seed: int, name: str, split: str = "test") -> list[ScoredRow] | None:
    place = root / f"{corpus}-{seed}" / "evals" / f"{name}-{split}"
    return read_rows(place) if (place / "rows.jsonl").is_file() else None


def tagged(rows: Sequence[ScoredRow], seed: int) -> list[ScoredRow]:
    """Rows of several seeds side by side: a speaker of one corpus is another block than of the next."""
    return [replace(r, id=f"{seed}/{r.id}", speaker=f"{seed}/{r.speaker}") for r in rows]


def pooled(root: Path, corpus: str, name: str, seeds: Sequence[int]) -> list[ScoredRow]:
    return [row for seed in seeds for row in tagged(stored(root, corpus, seed, name) or [], seed)]


def line(root: Path, corpus: str, arm: str, seeds: Sequence[int], against: str = "seed") -> str:
    """One row of the table: rates by seed, then the paired comparison with `against`, pooled over (seed, speaker)."""
    a, b = pooled(root, corpus, against, seeds), pooled(root, corpus, arm, seeds)
    whole = compare_rows(a, b, SCORING)
    rates = " ".join(f"{score_rows(stored(root, corpus, s, arm) or [], SCORING).value:.3f}" for s in seeds)
    span = (
        "no interval" if whole.interval is None else f"{100 * whole.interval[0]:.0f} to {100 * whole.interval[1]:.0f}"
    )
    chosen = " ".join(_chosen(root, corpus, s, arm) for s in seeds)
    gain = "n/a" if whole.error_reduction is None else f"{100 * whole.error_reduction:.0f} %"
    verdict = whole.verdict.replace("_", " ")
    counts = f"{whole.errors_a} -> {whole.errors_b} of {whole.reference_units}"
    return f"| {corpus} | {arm} against {against} | {rates} | {counts} | {gain} | {span} | {verdict} ({whole.blocks}) | {chosen} |"


def _chosen(root: Path, corpus: str, seed: int, arm: str) -> str:
    """Selected update and the change of retention there."""
    body = json.loads((root / f"{corpus}-{seed}" / f"{arm}.json").read_text(encoding="utf-8"))
    update = body["selection"]["selected"]
    row = next(c for c in body["selection"]["candidates"] if c["update"] == update)
    return f"{update} ({row['retention'] - body['baseline']['retention']:+.3f})"


def table(root: Path) -> str:
    head = (
        "| corpus | arm | test WER by seed | errors | fewer | 95 % interval | verdict (blocks) | update (retention) |"
    )
    lines = [head, "|" + "---|" * 8]
    for corpus in ("demo", "digits"):
        for arm in ARMS:
            seeds = [s for s in (0, 1, 2) if (root / f"{corpus}-{s}" / f"{arm.name}.json").is_file()]
            if seeds:
                lines.append(line(root, corpus, arm.name, seeds))
        for arm, other in (
            ("rl", "sft"),
            ("sft-rl", "sft"),
            ("rl-xy", "rl"),
            ("rl-blend", "rl"),
            ("rl-frontier", "rl"),
        ):
            both = [s for s in (0, 1, 2) if all((root / f"{corpus}-{s}" / f"{n}.json").is_file() for n in (arm, other))]
            if both:
                lines.append(line(root, corpus, arm, both, other))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--root", type=Path, default=HERE / "workdirs" / "study")
    parser.add_argument("--only", default="", help="CORPUS-SEED-ARM")
    given = parser.parse_args()
    if given.what == "run":
        for corpus, seed, arm in JOBS:
            name = f"{corpus}-{seed}-{arm.name}"
            if given.only in ("", name) and not (given.root / f"{corpus}-{seed}" / f"{arm.name}.json").is_file():
                if corpus == "digits" and not DIGITS.is_file():
                    print(f"{name}: left out, {DIGITS} is absent", flush=True)
                    continue
                out = Bench(given.root, corpus, seed).run(arm)
                print(
                    name, "selected", out["selection"]["selected"], f"{out['seconds']:.0f} s", *out["ends"], flush=True
                )
    print(table(given.root))


if __name__ == "__main__":
    main()
