"""One whole update on the same work, one thread each: ours against whisper-rl at commit 5e2f49e in its own Python.

    python -m tests.bench.bench_whisper_rl --peer-python PY312 --peer-source CHECKOUT [--clips 2] [--answers 8] [--tokens 32]

CHECKOUT is a clone of github.com/will-rice/whisper-rl at 5e2f49e, PY312 a Python 3.12 that has what its training step
imports (torch 2.13.0, transformers 5.24.0, lightning, datasets, jiwer). Both train the same random Whisper of tiny's shape,
GRPO with a reference pass, AdamW, float32. The peer's own supervised term is left out, which is in its favour. Each system
runs in processes of its own, in turns; the least CPU seconds of an update are compared, the highest memory is printed.
Ours is measured with the encoder trained, as the peer's is, and with the encoder frozen and its outputs kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PEER = """
import json, resource, sys, time
import numpy as np, torch
torch.set_num_threads(1)
job = json.loads(sys.argv[1])
sys.path.insert(0, job["source"] + "/src")
from whisper_rl.config import Config
from whisper_rl.datasets import Batch
from whisper_rl.lightning_module import WhisperGRPOModule
config = Config(base_model=job["folder"], num_generations=job["answers"], max_new_tokens=job["tokens"], sft_weight=0.0)
module = WhisperGRPOModule(config).train()
module.log = lambda *a, **k: None
type(module).global_step = property(lambda self: 0)
module._sft_loss = lambda *a, **k: torch.zeros(())
optimiser = torch.optim.AdamW(module.policy.parameters(), lr=1e-6)
waves = [w for w in np.load(job["waves"])]
features = module.processor(waves, sampling_rate=16000, return_tensors="pt").input_features
batch = Batch(features, job["references"], ["en"] * len(waves))
out = []
for step in range(job["updates"]):
    wall, cpu = time.perf_counter(), time.process_time()
    loss = module.training_step(batch, step)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(module.policy.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    out.append({"seconds": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu})
print(json.dumps({"updates": out, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def random_tiny(folder: Path) -> Path:
    """A random Whisper of tiny.en's shape that both systems take for a multilingual one."""
    import shutil

    import torch
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    from tools.embedded.seed import seed_model

    seed = seed_model()
    shutil.copytree(seed, folder)
    tokens = {t["content"]: t["id"] for t in json.loads((seed / "tokenizer.json").read_text())["added_tokens"]}
    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(WhisperConfig.from_pretrained(seed))
    settings = json.loads((seed / "generation_config.json").read_text())
    settings |= {"is_multilingual": True, "lang_to_id": {"<|en|>": tokens["<|en|>"]}}
    settings |= {"task_to_id": {"transcribe": tokens["<|transcribe|>"]}, "forced_decoder_ids": None}
    model.generation_config = GenerationConfig(**settings)
    model.save_pretrained(folder)
    return folder


def ours(job: dict[str, Any]) -> dict[str, Any]:
    """Updates of this project's trainer on the same clips; runs in a process of its own."""
    import resource

    import numpy as np
    import torch

    from tools.policy.whisper import WhisperPolicy
    from tools.reward import make_reward
    from tools.rows import Clip
    from tools.text import profile
    from tools.train.config import make_config
    from tools.train.metrics import final_view
    from tools.train.trainer import train

    torch.set_num_threads(1)
    policy = WhisperPolicy.load(job["folder"])
    waves = list(np.load(job["waves"]))
    clips = [
        Clip(f"c{i}", Path("none"), ref, lang="en", audio_sha256=str(i)) for i, ref in enumerate(job["references"])
    ]
    by_id = {c.id: w for c, w in zip(clips, waves)}
    with torch.no_grad():
        kept = {c.id: policy.encode([by_id[c.id]])[0] for c in clips}

    def encode(batch: Any) -> Any:
        if policy.encoder_trains:
            return policy.encode([by_id[c.id] for c in batch])
        return torch.stack([kept[c.id] for c in batch])

    off = {"kl_max": None, "ratio_p99_max": None, "empty_share_max": None, "truncated_share_max": None}
    off |= {"length_ratio_min": 0.0, "length_ratio_max": 1e9}
    size = {"groups": job["clips"], "answers": job["answers"], "answer_limit": job["tokens"], "offer_factor": 1}
    config = make_config(
        {
            "method": "grpo",
            "kl_weight": 0.04,
            "kl_every": 1,
            "optimiser_steps": 1,
            "temperature": 1.0,
            "lr": 1e-6,
            "surface": job["surface"],
            "truncated": "keep",
            "updates": job["updates"] + 1,
            "checkpoint_every": 10**6,
            "flat_updates": 10**6,
            "chunk_clips": job["clips"],
            **size,
            **off,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        cer = make_reward("cer", profile("basic"))

        def reward(hyp: str, ref: str, lang: str | None = None) -> float:
            """Scored as usual; random answers are all as bad as can be, so their letters make the contrast."""
            return (cer(hyp, ref, lang) or 0.0) - sum(map(ord, hyp)) % 997 / 997

        run_dir = Path(folder) / "run"
        train(policy, clips, encode, reward, config, run_dir, prompts=lambda c: policy.prompt_ids("", "en"))
        rows = final_view(run_dir / "metrics.jsonl")[1:]  # the first one also checks that audio reaches the loss
    assert all(row["steps"] == 1 for row in rows), "every update took its step"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tokens = [row["tokens_mean"] for row in rows]
    return {"updates": [{k: r[k] for k in ("seconds", "cpu_s")} for r in rows], "peak_mib": peak, "tokens": tokens}


def child(command: list[str], job: dict[str, Any]) -> dict[str, Any]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([*command, json.dumps(job)], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stderr[-2000:]}")
    out: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("clips", 2), ("answers", 8), ("tokens", 32), ("updates", 2), ("rounds", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--peer-python", default="")
    parser.add_argument("--peer-source", default="")
    parser.add_argument("--ours", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ours:
        print(json.dumps(ours(json.loads(args.ours))))
        return
    import numpy as np

    from tests.bench.bench_decode import corpus_waves

    with tempfile.TemporaryDirectory() as folder:
        waves = Path(folder) / "waves.npy"
        sound = np.zeros((args.clips, 80_000), np.float32)
        for row, wave in zip(sound, corpus_waves(args.clips)):
            row[: len(wave)] = wave[:80_000]
        np.save(waves, sound)
        job: dict[str, Any] = {"folder": str(random_tiny(Path(folder) / "model")), "waves": str(waves)}
        job |= {"references": ["please move six crates"] * args.clips, "source": args.peer_source}
        job |= {k: getattr(args, k) for k in ("clips", "answers", "tokens", "updates")}
        me = [sys.executable, "-m", "tests.bench.bench_whisper_rl", "--ours"]
        systems: dict[str, tuple[list[str], dict[str, Any]]] = {
            "ours, encoder trained": (me, {**job, "surface": "all", "updates": 3 * args.updates}),
            "ours, encoder kept": (me, {**job, "surface": "decoder", "updates": 3 * args.updates}),
        }
        if args.peer_python:
            systems["whisper-rl"] = ([args.peer_python, "-c", PEER], job)
        seen: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
        for _ in range(args.rounds):
            for name, (command, one) in systems.items():
                seen[name].append(child(command, one))
    print(
        f"{args.clips} clips x {args.answers} answers x {args.tokens} tokens, tiny's shape, random weights, one thread"
    )
    least = {}
    for name, runs in seen.items():
        least[name] = min(u["cpu_s"] for run in runs for u in run["updates"])
        wall = min(u["seconds"] for run in runs for u in run["updates"])
        peak = max(run["peak_mib"] for run in runs)
        print(f"  {name:24} {least[name]:7.2f} CPU s, {wall:7.2f} s an update, peak {peak:6.0f} MiB")
    if "whisper-rl" in least:
        for name in list(systems)[:2]:
            print(f"  {name}: {least['whisper-rl'] / least[name]:.1f} times as fast as whisper-rl")


if __name__ == "__main__":
    main()
