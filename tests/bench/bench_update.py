"""Seconds of one GSPO update on the demo corpus, by phase, with peak memory.

    python -m tests.bench.bench_update [--clips 10] [--answers 8] [--updates 5] [--threads 2] [--surface decoder]

Encoder outputs are computed beforehand, as in a run with the encoder frozen. The first update is left out of the medians.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.embedded.corpus import build_corpus
from tools.embedded.seed import seed_model
from tools.policy.whisper import WhisperPolicy
from tools.reward import make_reward
from tools.rows import Clip
from tools.text import profile
from tools.train.config import make_config
from tools.train.metrics import final_view
from tools.train.trainer import train

PHASES = ("sample_s", "learn_s", "seconds", "cpu_s", "offered", "tokens_mean")


def measure(work: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Train a few updates in `work` and sum up the figures of all but the first."""
    manifests = build_corpus(work / "corpus")
    clips = list(read_manifest(manifests["train"], "train").rows)[: 2 * args.clips]
    policy = WhisperPolicy.load(seed_model())
    with torch.no_grad():
        kept = {c.id: policy.encode([read_clip(c)])[0] for c in clips}

    def encode(batch: Sequence[Clip]) -> torch.Tensor:
        return torch.stack([kept[c.id] for c in batch])

    settings = {"updates": args.updates, "groups": args.clips, "answers": args.answers, "surface": args.surface}
    config = make_config({**settings, "checkpoint_every": args.updates, "kl_every": 0, "answer_limit": 40})
    train(
        policy,
        clips,
        encode,
        make_reward("cer", profile("english")),
        config,
        work / "run",
        prompts=lambda c: policy.prompt_ids("", c.lang, clip_id=c.id),
    )
    rows = final_view(work / "run" / "metrics.jsonl")[1:]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {name: round(median(row[name] for row in rows), 3) for name in PHASES}
    return {**vars(args), **figures, "peak_mib": round(peak)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("clips", 10), ("answers", 8), ("updates", 5), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--surface", default="decoder")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), args)))


if __name__ == "__main__":
    main()
