"""The verdict of `rehear mine` against what training then does, over eight small settings.

    OMP_WAIT_POLICY=PASSIVE python -m tests.bench.headroom_settings [--out workdirs/headroom] [--updates 12] [--only easy]

Each setting is a customer's folder of spoken sentences (the demo's voices and texts, Whisper tiny.en): 40 train, 6 dev and
40 test clips of a kind. `rehear mine` says what it expects; then, whatever it says, a short GSPO run is made with the
trainer on all train clips under the contract that was frozen, and its last update is measured on the test, which the
mining never saw. Resumable: what a setting has is kept in its folder, and the table is printed from that.

Kinds of clips are chosen by the seed model's own greedy answers, before any setting is made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.embedded.corpus import Line
from tools.embedded.seed import seed_model
from tools.embedded.sentences import domain_sentences, general_sentences
from tools.embedded.voices import RETENTION_SPEAKERS, SPEAKERS
from tools.rows import Clip
from tools.score.transcripts import score_pairs
from tools.text import profile
from tools.verbs.recogniser import Recogniser

DOMAIN = 420  # domain sentences, each spoken once
GENERAL = {"train": 20, "dev": 6, "test": 20}  # general sentences, each spoken by SPOKEN voices of its split
SPOKEN = 4
VOICES = (*SPEAKERS, *RETENTION_SPEAKERS)
SPLIT_OF = {
    v: ("train", "test", "train", "test", "dev", "train", "test", "train", "test")[i % 9] for i, v in enumerate(VOICES)
}
SIZES = {"train": 40, "dev": 6, "test": 40}
PROFILE = profile("english")
LIMIT = 64
SETTINGS = {
    "easy": "some words wrong (greedy WER up to 0.34)",
    "hard": "most words wrong (greedy WER from 0.5)",
    "all_right": "every clip right already (the references are the model's own greedy answers)",
    "all_wrong": "noise without speech, with references",
    "wrong_references": "train references dealt out anew",
    "wrong_prompt": "a prompt in another language",
    "mixed_right_hard": "half right already, half hard",
    "mixed_easy_hard": "half easy, half hard",
}
Graded = tuple[Clip, str, float]
WRONG_PROMPT = "Sehr geehrte Damen und Herren, anbei erhalten Sie das Protokoll der gestrigen Sitzung."


def speak(out: Path) -> Path:
    """The pool of clips, spoken once: domain sentences in hard voices, general ones in clear voices."""
    manifest = out / "pool.jsonl"
    if manifest.is_file():
        return manifest
    rng = random.Random("headroom settings 1")
    lines: list[Line] = []

    def add(kind: str, text: str, voice: str, snr: tuple[float, float]) -> None:
        name, loud = f"{kind}-{len(lines):03d}", round(rng.uniform(*snr), 2)
        lines.append(Line("pool", name, text, voice, rng.randint(150, 185), 50, loud, rng.getrandbits(63)))

    for i, text in enumerate(domain_sentences(DOMAIN, rng)):
        add("domain", text, SPEAKERS[i % len(SPEAKERS)], (15.0, 35.0))
    general = general_sentences(sum(GENERAL.values()), rng)
    for split, count in GENERAL.items():  # a sentence stays in one split, and so does a voice
        voices = [v for v in VOICES if SPLIT_OF[v] == split]
        for i in range(SPOKEN * count):
            add("general", general[i % count], voices[(i + i // count) % len(voices)], (30.0, 35.0))
        general = general[count:]
    plan = out / "plan.json"
    plan.write_text(json.dumps([asdict(line) for line in lines]))
    subprocess.run([sys.executable, "-m", "tools.embedded.corpus", str(plan)], check=True)
    return manifest


def graded(out: Path, heard: Recogniser) -> list[Graded]:
    """Every clip of the pool with the seed model's greedy answer and its WER."""
    clips = [replace(c, audio_sha256=clip_digest(read_clip(c))) for c in read_manifest(speak(out), "pool").rows]
    path = out / "graded.json"
    if not path.is_file():
        answers = heard.greedy(clips, "", LIMIT, progress("grading"))
        path.write_text(json.dumps({a.clip_id: a.text for a in answers}))
    texts = json.loads(path.read_text())
    return [(c, texts[c.id], score_pairs([c.text or ""], [texts[c.id]], PROFILE).value or 0.0) for c in clips]


def progress(what: str) -> Any:
    return lambda done, total: print(f"\r{what} {done}/{total}", end="" if done < total else "\n", file=sys.stderr)


def clips_for(setting: str, pool: Sequence[Graded]) -> list[Clip]:
    """The clips of a setting, enough for its three splits."""
    easy = [c for c, _, wer in pool if 0 < wer <= 0.34]
    hard = [c for c, _, wer in pool if 0.5 <= wer <= 1.0]
    right = [replace(c, text=text) for c, text, wer in pool if wer <= 0.34]
    kinds = {
        "easy": [easy], "hard": [hard], "all_right": [right], "all_wrong": [easy], "wrong_references": [easy],
        "wrong_prompt": [easy], "mixed_right_hard": [right, hard], "mixed_easy_hard": [easy, hard],
    }[setting]  # fmt: skip
    by_split = {s: [[c for c in k if SPLIT_OF[c.speaker or ""] == s] for k in kinds] for s in SIZES}
    return [c for held in by_split.values() for row in zip(*held) for c in row]


def splits_of(clips: Sequence[Clip]) -> dict[str, list[Clip]]:
    """Train, dev and test of SIZES at most; a voice is in one split in all settings."""
    return {s: [c for c in clips if SPLIT_OF[c.speaker or ""] == s][:n] for s, n in SIZES.items()}


def write_setting(setting: str, folder: Path, clips: Sequence[Clip]) -> Path:
    """The customer's folder: manifests, spoilt where the setting says so, and the brief."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = splits_of(clips)
    for split, rows in splits.items():
        texts = [c.text or "" for c in rows]
        if setting == "wrong_references" and split == "train":
            random.Random(1).shuffle(texts)
        lines = []
        for clip, text in zip(rows, texts, strict=True):
            audio = noise(folder, clip) if setting == "all_wrong" else clip.audio
            row = {
                "id": clip.id,
                "audio_filepath": os.fspath(audio),
                "text": text,
                "speaker": clip.speaker,
                "lang": "en",
            }
            lines.append(json.dumps(row) + "\n")
        (folder / f"{split}.jsonl").write_text("".join(lines))
    brief = {
        "name": setting.replace("_", "-"),
        "task": "asr",
        "languages": ["en"],
        "seed_model": "embedded",
        "data": {split: f"{split}.jsonl" for split in SIZES},
        "metric": "wer",
        "profile": "english",
        "prompts": [WRONG_PROMPT] if setting == "wrong_prompt" else [""],
        "budget": {"cpu_minutes": 120},
        "random_seed": 0,
        "reused_benchmark": False,
    }
    path = folder / "brief.yaml"
    path.write_text(yaml.safe_dump(brief, sort_keys=False))
    return path


def noise(folder: Path, clip: Clip) -> Path:
    """Noise as long as the clip."""
    import numpy as np
    import soundfile

    path = folder / "noise" / clip.audio.name
    path.parent.mkdir(exist_ok=True)
    rng = np.random.default_rng(list(hashlib.sha256(clip.id.encode()).digest()))
    soundfile.write(path, rng.normal(0, 0.05, len(read_clip(clip))), 16_000, subtype="PCM_16")
    return path


def mine(brief: Path, workdir: Path) -> dict[str, Any]:
    """The verdict, by the command itself; a check that refuses to go on is a verdict too."""
    command = [sys.executable, "-m", "agent.faces.cli", "mine", str(brief), "--workdir", str(workdir), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    found = workdir / "report/headroom.json"
    if document["status"] != "finished" or not found.is_file():
        return {"refused": document["error"]["message"]}
    told: dict[str, Any] = json.loads(found.read_text())
    return told


def rate(heard: Recogniser, clips: Sequence[Clip], prompt: str) -> float:
    answers = heard.greedy(clips, prompt, LIMIT)
    return score_pairs([c.text or "" for c in clips], [a.text for a in answers], PROFILE).value or 0.0


def train(folder: Path, heard: Recogniser, updates: int) -> dict[str, Any]:
    """Test WER before and after `updates` updates of GSPO on all train clips."""
    from agent.procedure import skills_folder
    from tools.decode.encoder_cache import training_encode
    from tools.policy.load import load_policy
    from tools.reward import make_reward
    from tools.train.config import load_config
    from tools.train.trainer import train as run

    def clips(split: str) -> list[Clip]:
        rows = read_manifest(folder / f"{split}.jsonl", split).rows
        return [replace(c, audio_sha256=clip_digest(read_clip(c))) for c in rows]

    prompt = yaml.safe_load((folder / "brief.yaml").read_text())["prompts"][0]
    preset = skills_folder() / "nemotron-transcribe-rl/assets/presets/local-tiny.yaml"
    free: dict[str, Any] = {"kl_max": None, "ratio_p99_max": None, "empty_share_max": None, "truncated_share_max": None}
    free |= {"length_ratio_min": 0.0, "length_ratio_max": 1e6, "flat_updates": updates}
    config = load_config(preset, updates=updates, checkpoint_every=updates, random_seed=0, **free)
    policy, test = load_policy(seed_model()), clips("test")
    before = rate(heard, test, prompt)
    result = run(
        policy,
        clips("train"),
        training_encode(policy, heard.cache),
        make_reward("cer", PROFILE),
        config,
        folder / "run",
        prompts=lambda clip: policy.prompt_ids(prompt, clip.lang, clip_id=clip.id),
    )
    after = rate(Recogniser(policy, heard.cache), test, prompt)
    return {"test_before": before, "test_after": after, "updates": result.updates, "reason": result.reason}


def table(out: Path) -> str:
    """The settings that are done, one line each, as Markdown."""
    head = (
        "| setting | clips | verdict | greedy | best of 8 | headroom | 95 % interval | test before | test after | gain |",
        "|---|---|---|---:|---:|---:|---|---:|---:|---:|",
    )
    rows = []
    for name, what in SETTINGS.items():
        path = out / name / "outcome.json"
        if not path.is_file():
            continue
        d = json.loads(path.read_text())
        f, t = d["verdict"].get("figures") or {}, d["trained"]
        reason = (
            d["verdict"]["verdict"]["reason"] if "verdict" in d["verdict"] else f"refused: {d['verdict']['refused']}"
        )
        eight = next((b["rate"] for b in f.get("best_of", []) if b["k"] == 8), None)
        span = "" if not f.get("interval") else f"{f['interval'][0]:.3f} to {f['interval'][1]:.3f}"
        figures = [f.get("greedy"), eight, f.get("headroom")]
        cells = ["" if v is None else f"{v:.3f}" for v in figures]
        gain = t["test_before"] - t["test_after"]
        rows.append(
            f"| {name} | {what} | {reason} | {' | '.join(cells)} | {span} | {t['test_before']:.3f} | "
            f"{t['test_after']:.3f} | {gain:+.3f} |"
        )
    return "\n".join([*head, *rows])


def shrink(share: float) -> None:
    """Fewer clips of everything, for a trial of the script itself."""
    global DOMAIN
    DOMAIN = round(DOMAIN * share)
    for sizes in (GENERAL, SIZES):
        sizes.update({split: max(3, round(count * share)) for split, count in sizes.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("workdirs/headroom"))
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--share", type=float, default=1.0, help="of the clips, to try the script out")
    parser.add_argument("--only", choices=SETTINGS, action="append")
    args = parser.parse_args()
    shrink(args.share)
    out = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    heard = Recogniser.load(seed_model(), out / "encoder", args.threads)
    pool = graded(out, heard)
    for setting in args.only or SETTINGS:
        folder = out / setting
        done = folder / "outcome.json"
        if done.is_file():
            continue
        print(f"{setting}: {SETTINGS[setting]}", file=sys.stderr)
        told = mine(write_setting(setting, folder, clips_for(setting, pool)), folder / "mined")
        done.write_text(json.dumps({"verdict": told, "trained": train(folder, heard, args.updates)}, indent=1))
        print(table(out), file=sys.stderr)
    print(table(out))


if __name__ == "__main__":
    main()
