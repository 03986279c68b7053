"""Sampling speed, one run, same threads: ours against CTranslate2's and transformers' sampled generate at float32.

    python -m tests.bench.bench_decode [--clips 16] [--answers 8] [--threads 2] [--repeats 3] [--without-transformers]

Work: the first test clips of the demo corpus, `answers` each at T = 0.8 on Whisper tiny.en. Every engine gets the same
log-mel features; the best of `repeats` is printed, engines taking turns, so that other load on the machine hits all.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch

from tools.decode.local import answer_seed, greedy, sample
from tools.embedded.corpus import build_corpus
from tools.embedded.seed import seed_model, wheel_folder
from tools.policy.product import multiply
from tools.policy.whisper import WhisperPolicy

TEMPERATURE, LIMIT = 0.8, 100


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    out = work()
    return time.perf_counter() - start, out


def corpus_waves(count: int) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        manifest = build_corpus(Path(folder) / "corpus")["test"]
        rows = [json.loads(line) for line in manifest.read_text().splitlines()[:count]]
        return [soundfile.read(manifest.parent / row["audio_filepath"], dtype="float32")[0] for row in rows]


class Engines:
    """The three engines on the same features. Each method returns tokens produced, to show that the work is alike."""

    def __init__(self, clips: int, answers: int, threads: int) -> None:
        import ctranslate2
        from faster_whisper import WhisperModel

        torch.set_num_threads(threads)
        self.clips, self.answers = clips, answers
        self.policy = WhisperPolicy.load(seed_model())
        self.mels = [self.policy.features(wave) for wave in corpus_waves(clips)]
        self.ids = [str(i) for i in range(clips)]
        self.prompts = [self.policy.prompt_ids()] * clips
        self.seeds = [[answer_seed(0, name, i) for i in range(answers)] for name in self.ids]
        folder = str(wheel_folder())
        self.ct2 = WhisperModel(folder, device="cpu", compute_type="float32", cpu_threads=threads).model
        self.view = ctranslate2.StorageView.from_array(torch.stack(self.mels).numpy())

    def ours_encode(self) -> torch.Tensor:
        with torch.no_grad():
            return self.policy.encode_features(self.mels)

    def ours_sample(self, encoded: torch.Tensor) -> list[int]:
        groups = sample(
            self.policy, encoded, self.prompts, self.ids, self.answers, TEMPERATURE, LIMIT, self.seeds, self.clips
        )
        return [len(answer.tokens) for group in groups for answer in group]

    def ours_greedy(self, encoded: torch.Tensor) -> list[tuple[int, ...]]:
        return [a.tokens for a in greedy(self.policy, encoded, self.prompts, LIMIT, self.ids, self.clips)]

    def ct2_encode(self) -> Any:
        return self.ct2.encode(self.view)

    def _ct2(self, encoded: Any, **settings: Any) -> list[Any]:
        prompts = [list(prompt) for prompt in self.prompts]
        return self.ct2.generate(encoded, prompts, beam_size=1, max_length=LIMIT + len(prompts[0]), **settings)

    def ct2_sample(self, encoded: Any) -> list[int]:
        out = self._ct2(encoded, num_hypotheses=self.answers, sampling_topk=0, sampling_temperature=TEMPERATURE)
        return [len(ids) + 1 for result in out for ids in result.sequences_ids]

    def ct2_greedy(self, encoded: Any) -> list[tuple[int, ...]]:
        return [tuple(result.sequences_ids[0]) for result in self._ct2(encoded)]

    def transformers_sample(self) -> list[int]:
        stop = self.policy.vocabulary.stop
        torch.manual_seed(0)
        with torch.inference_mode():
            out = self.policy.model.generate(
                torch.stack(self.mels),
                do_sample=True,
                temperature=TEMPERATURE,
                top_k=0,
                num_return_sequences=self.answers,
                max_new_tokens=LIMIT,
            )
        return [int((row != stop).sum()) + 1 for row in out]


def bound_seconds(engines: Engines, lengths: list[int]) -> float:
    """Arithmetic bound of the decoding part: its multiply-adds at the machine's measured matrix speed."""
    a = torch.randn(2048, 2048)
    speed = 2 * 2048**3 / min(timed(lambda: multiply(a, a))[0] for _ in range(10))
    config = engines.policy.model.config
    d, layers, ffn = config.d_model, config.decoder_layers, config.decoder_ffn_dim
    frames, width = config.max_source_positions, engines.policy.vocabulary.width
    token = layers * (6 * d * d + 2 * d * ffn + 2 * d * frames) + d * width
    keys = engines.clips * layers * frames * 2 * d * d
    return 2 * (sum(lengths) * token + keys) / speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=16)
    parser.add_argument("--answers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without-transformers", action="store_true")
    args = parser.parse_args()
    engines = Engines(args.clips, args.answers, args.threads)
    best: dict[str, float] = {}
    tokens: dict[str, int] = {}

    def race(name: str, work: Callable[[], Any]) -> Any:
        seconds, out = timed(work)
        best[name] = min(seconds, best.get(name, seconds))
        return out

    for _ in range(args.repeats):
        encoded, theirs = race("ours encode", engines.ours_encode), race("ct2 encode", engines.ct2_encode)
        lengths = race("ours sample", lambda: engines.ours_sample(encoded))
        tokens["ours"], tokens["ct2"] = sum(lengths), sum(race("ct2 sample", lambda: engines.ct2_sample(theirs)))
        mine = race("ours greedy", lambda: engines.ours_greedy(encoded))
        their = race("ct2 greedy", lambda: engines.ct2_greedy(theirs))
    if not args.without_transformers:
        tokens["transformers"] = sum(race("transformers sample, encoder included", engines.transformers_sample))
    same = sum(a[: len(b)] == b and len(a) == len(b) + 1 for a, b in zip(mine, their))
    print(
        f"{args.clips} clips x {args.answers} answers, T={TEMPERATURE}, {args.threads} threads, best of {args.repeats}"
    )
    for name, seconds in sorted(best.items()):
        print(f"  {name:40s} {seconds:7.2f} s")
    print(f"  answer tokens: {tokens}; greedy equal to CTranslate2's: {same} of {len(mine)}")
    ours, ct2 = best["ours sample"], best["ct2 sample"]
    per_token = (ct2 / tokens["ct2"]) / (ours / tokens["ours"])
    print(f"  decoding against CTranslate2: {ct2 / ours:.2f} times as fast ({per_token:.2f} per token)")
    if "transformers" in tokens:
        whole = best["transformers sample, encoder included"] / (ours + best["ours encode"])
        print(f"  whole against transformers: {whole:.1f} times as fast")
    bound = bound_seconds(engines, lengths)
    print(f"  arithmetic bound of the decoding part {bound:.2f} s; we take {ours / bound:.1f} times that")


if __name__ == "__main__":
    main()
