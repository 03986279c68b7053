"""Throughput over HTTP against in-process decoding of the same model, 16 requests in flight.

    OMP_WAIT_POLICY=PASSIVE python -m tests.bench.bench_served [--clips 128] [--answers 8] [--threads 2] [--repeats 3]

`rehear serve` runs in a process of its own, the client in this one; in-process decoding takes its turn in this one, so that
other load on the machine hits both. Work: the first train clips of the demo corpus, each encoded and sampled `answers`
times at T = 0.8 on Whisper tiny.en. The server is started anew for every repeat, so that it has encoded nothing before.
Printed: clips a second of both by wall clock, their ratio of every repeat, and whether the sampled texts are equal.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.tools.serve.conftest import start
from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.decode.served import Served, ServedRecogniser
from tools.embedded.corpus import build_corpus
from tools.embedded.seed import cache_folder, seed_model
from tools.rows import Clip
from tools.verbs.recogniser import Recogniser

LIMIT, TEMPERATURE, SEED = 60, 0.8, 0


def corpus(count: int) -> list[Clip]:
    rows = read_manifest(build_corpus(cache_folder() / "corpus" / "seed-0")["train"], "train").rows[:count]
    return [replace(c, audio_sha256=clip_digest(read_clip(c))) for c in rows]


def timed(heard: Any, clips: list[Clip], answers: int) -> tuple[float, list[list[str]]]:
    """Seconds, and the texts by clip."""
    began = time.perf_counter()
    groups = heard.sample(clips, "", LIMIT, n=answers, temperature=TEMPERATURE, seed=SEED)
    return time.perf_counter() - began, [[a.text for a in group] for group in groups]


def in_process(clips: list[Clip], answers: int, threads: int, folder: Path) -> tuple[float, list[list[str]]]:
    heard = Recogniser.load(seed_model(), folder, threads)
    heard.sample(clips[:1], "", 4, n=1, temperature=TEMPERATURE, seed=1)  # warm, as the server is
    return timed(heard, clips, answers)


def served(
    clips: list[Clip], answers: int, threads: int, folder: Path, concurrency: int
) -> tuple[float, list[list[str]]]:
    process, url = start("--name", "tiny", "--threads", str(threads), folder=folder)
    try:
        settings = {"endpoints": url, "model": "tiny", "concurrency": concurrency}
        warm = ServedRecogniser.load(Served.build(settings), folder / "warm")
        warm.sample(clips[:1], "", 4, n=1, temperature=TEMPERATURE, seed=1)
        return timed(ServedRecogniser.load(Served.build(settings), folder / "kept"), clips, answers)
    finally:
        process.terminate()
        process.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("clips", 128), ("answers", 8), ("threads", 2), ("repeats", 3), ("concurrency", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    clips = corpus(args.clips)
    ratios = []
    for repeat in range(1, args.repeats + 1):
        with tempfile.TemporaryDirectory() as folder:
            ours, own = in_process(clips, args.answers, args.threads, Path(folder) / "encoder")
            theirs, texts = served(clips, args.answers, args.threads, Path(folder), args.concurrency)
        equal = sum(a == b for a, b in zip(own, texts, strict=True))
        ratios.append(ours / theirs)
        print(
            f"repeat {repeat}: in-process {len(clips) / ours:.2f} clips/s, served {len(clips) / theirs:.2f} clips/s, "
            f"ratio {ratios[-1]:.3f}; sampled sets equal {equal} of {len(clips)}",
            flush=True,
        )
    print(
        f"median ratio {statistics.median(ratios):.3f} ({args.concurrency} requests in flight, {args.threads} threads)"
    )


if __name__ == "__main__":
    main()
