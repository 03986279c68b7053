"""How an update scales: CPU and wall seconds against clips, answers, tokens and threads; memory against training clips.

    python -m tests.bench.bench_scaling [--updates 4] [--only clips,answers,tokens,threads,pool]

Whisper tiny.en on the demo corpus, decoder trained, encoder outputs from the cache on disk; one axis is varied at a time
from 8 clips x 8 answers of at most 40 tokens, one thread. Answers are drawn until the limit (the stop token is left to
the model), so `tokens` raises the limit and the temperature to 2, where the model runs on. Every point is a process of its
own; medians over all updates but the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

BASE = {"clips": 8, "answers": 8, "tokens": 40, "threads": 1, "pool": 140, "temperature": 0.8}
AXES: dict[str, list[dict[str, Any]]] = {
    "clips": [{"clips": n} for n in (2, 4, 8, 16)],
    "answers": [{"answers": n} for n in (4, 8, 16, 32)],
    "tokens": [{"tokens": n, "temperature": 2.0} for n in (10, 20, 40, 80)],
    "threads": [{"threads": n} for n in (1, 2)],
    "pool": [{"pool": n} for n in (140, 1_400, 14_000)],
}


def point(work: Path, job: dict[str, Any]) -> dict[str, Any]:
    """One training run in this process; its figures."""
    import resource

    import torch

    from tools.audio.identity import clip_digest
    from tools.audio.read import read_clip
    from tools.data.manifest import read_manifest
    from tools.decode.encoder_cache import EncoderCache, training_encode
    from tools.embedded.seed import seed_model
    from tools.policy.whisper import WhisperPolicy
    from tools.reward import make_reward
    from tools.text import profile
    from tools.train.config import make_config
    from tools.train.metrics import final_view
    from tools.train.trainer import train

    torch.set_num_threads(job["threads"])
    rows = read_manifest(work / "corpus" / "train.jsonl", "train").rows
    rows = [replace(c, audio_sha256=clip_digest(read_clip(c))) for c in rows]
    pool = [replace(c, id=f"{c.id}-{n}") for n in range(-(-job["pool"] // len(rows))) for c in rows][: job["pool"]]
    policy = WhisperPolicy.load(seed_model())
    cache = EncoderCache(WhisperPolicy.load(seed_model()), work / "cache")
    for clip in rows:
        cache.get([clip])
    loose = {"truncated_share_max": None, "length_ratio_max": 1e9, "length_ratio_min": 0, "empty_share_max": None}
    loose |= {"kl_max": None, "ratio_p99_max": None, "truncated": "keep", "flat_updates": 1000}
    size = {"groups": job["clips"], "answers": job["answers"], "answer_limit": job["tokens"], "updates": job["updates"]}
    more = {"temperature": job["temperature"], "checkpoint_every": 1000, "kl_every": 0, "offer_factor": 1, "lr": 1e-9}
    with tempfile.TemporaryDirectory() as folder:
        reward, run_dir = make_reward("cer", profile("english")), Path(folder) / "run"
        config = make_config({**size, **more, **loose})
        encode = training_encode(policy, cache)
        train(policy, pool, encode, reward, config, run_dir, prompts=lambda c: policy.prompt_ids("", c.lang))
        lines = final_view(run_dir / "metrics.jsonl")[1:]
    names = ("seconds", "cpu_s", "sample_s", "learn_s", "tokens_mean")
    out = {name: median(row[name] for row in lines) for name in names}
    return {**out, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--only", default=",".join(AXES))
    parser.add_argument("--point", nargs=2, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        print(json.dumps(point(Path(args.point[0]), json.loads(args.point[1]))))
        return
    from tools.embedded.corpus import build_corpus

    with tempfile.TemporaryDirectory() as folder:
        build_corpus(Path(folder) / "corpus")
        for axis in args.only.split(","):
            print(axis)
            for change in AXES[axis]:
                job = {**BASE, **change, "updates": args.updates}
                env = {**os.environ, "OMP_NUM_THREADS": str(job["threads"])}
                command = [sys.executable, "-m", "tests.bench.bench_scaling", "--point", folder, json.dumps(job)]
                done = subprocess.run(command, env=env, capture_output=True, text=True)
                if done.returncode:
                    raise SystemExit(done.stderr[-2000:])
                got = json.loads(done.stdout.strip().splitlines()[-1])
                print(
                    f"  {axis} {change[axis]:>6}: {got['seconds']:6.2f} s, {got['cpu_s']:6.2f} CPU s an update (sampling "
                    f"{got['sample_s']:.2f} s, learning {got['learn_s']:.2f} s), {got['tokens_mean']:.1f} tokens an answer, "
                    f"peak {got['peak_mib']:.0f} MiB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
