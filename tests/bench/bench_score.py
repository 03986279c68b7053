"""Speed and memory of the scoring room, in one run on the same pairs: `python -m tests.bench.bench_score [--json]`.

Each time is the best of several runs. jiwer and ours get the same, already normalised texts.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import jiwer
import numpy as np

from tools.rows import ScoredRow
from tools.score.blocks import Blocks
from tools.score.compare import compare_blocks
from tools.score.transcripts import Totals, TranscriptScore, score_pairs, score_rows, word_totals
from tools.text import profile

SENTENCES = """Please move six crates to the office before Monday morning, and don't forget the keys.
The meeting's been moved to ten thirty; we'll need twenty five copies of the report.
She said that the colour of the harbour at night wasn't what she'd expected.
Nobody in the whole village could remember a winter as cold as that one.
It was the best of times, it was the worst of times, it was the age of wisdom.
He walked down the road with his hands in his pockets, whistling an old song.
There is nothing more deceptive than an obvious fact, said the detective.
In nineteen eighty four the company sold 1,250 machines at $5.50 each.
I am not sure whether they are coming to dinner, but the table is set for eight.
The ship left at noon, and by the time we reached the shore it was out of sight.""".splitlines()


def best(run: Callable[[], object], times: int = 5) -> float:
    """Processor seconds of the fastest of several runs (the machine may be shared)."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def corpus(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """References of about 15 words and hypotheses with one word in seven wrong, normalised by `basic`."""
    rng = random.Random(seed)
    words = [profile("basic").normalise(line, "en").split() for line in SENTENCES]
    pool = [word for line in words for word in line]
    refs, hyps = [], []
    for _ in range(count):
        ref = rng.choice(words) if rng.random() < 0.5 else [rng.choice(pool) for _ in range(rng.randint(8, 22))]
        hyp = [rng.choice(pool) if rng.random() < 0.1 else w for w in ref if rng.random() > 0.03]
        refs.append(" ".join(ref))
        hyps.append(" ".join(hyp))
    return refs, hyps


def against_jiwer() -> dict[str, float]:
    """Corpus WER with its split; and everything `score_pairs` gives (CER and diagnostics too) against jiwer's two calls."""
    refs, hyps = corpus(5_000)
    exact = profile("exact")
    ours, theirs = word_totals(refs, hyps, exact), jiwer.process_words(refs, hyps)
    assert (ours.insertions, ours.deletions, ours.substitutions) == (
        theirs.insertions,
        theirs.deletions,
        theirs.substitutions,
    )
    fast, slow = best(lambda: word_totals(refs, hyps, exact)), best(lambda: jiwer.process_words(refs, hyps))
    full = best(lambda: score_pairs(refs, hyps, exact))
    both = slow + best(lambda: jiwer.process_characters(refs, hyps), 3)
    return {
        "pairs": len(refs),
        "jiwer_words_s": slow,
        "word_totals_s": fast,
        "times_faster_than_jiwer": slow / fast,
        "jiwer_words_and_characters_s": both,
        "score_pairs_s": full,
        "score_pairs_times_faster": both / full,
    }


def normalising() -> dict[str, float]:
    """Strings a second of each profile on raw English sentences, each string new."""
    rng = random.Random(1)
    texts = [" ".join(rng.sample(line.split(), len(line.split()))) for line in SENTENCES * 500]
    out = {}
    for name in ("exact", "basic", "english"):
        normalise = profile(name).normalise
        out[name] = len(texts) / best(lambda run=normalise: [run(text) for text in texts])  # type: ignore[misc]
    return out


def bootstrap() -> dict[str, float]:
    """10,000 resamples of 100,000 clips over 1,000 speakers: from per-clip counts to interval, verdict and permutation."""
    rng = np.random.default_rng(0)
    speaker = rng.integers(0, 1_000, 100_000)
    units = rng.integers(5, 25, 100_000)
    errors = [rng.binomial(units, p) for p in (0.20, 0.19)]
    empty = TranscriptScore("wer", Totals(), 0, 0, 0, Totals())

    def run() -> None:
        a, b, n = (np.bincount(speaker, weights=w, minlength=1_000).astype(np.int64) for w in (*errors, units))
        names = tuple(f"{i:04}" for i in range(1_000))
        compare_blocks(Blocks(names, a, b, n, "speaker", empty, empty), resamples=10_000)

    return {"seconds": best(run, 3)}


def stream(clips: int) -> Iterator[ScoredRow]:
    """Rows in the order of their ids, made one at a time."""
    rng = random.Random(2)
    for i in range(clips):
        line = SENTENCES[i % len(SENTENCES)]
        yield ScoredRow(f"{i:08}", line, line.replace("the", rng.choice(["a", "the", f"w{i}"])), speaker=f"s{i % 50}")


def peak_mb(clips: int) -> float:
    """Peak memory of a fresh process that scores `clips` streamed rows."""
    code = (
        "import resource\nfrom tests.bench.bench_score import stream\nfrom tools.score import score_rows\n"
        "from tools.text import profile\n"
        f"score_rows(stream({clips}), profile('basic'), ordered=True)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024.0


def memory() -> dict[str, float]:
    """Peak memory with 100,000 and with 400,000 clips (past the bounded cache of normalised texts)."""
    assert resource and score_rows
    return {str(clips): peak_mb(clips) for clips in (100_000, 400_000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures = {
        "against_jiwer": against_jiwer(),
        "strings_per_second": normalising(),
        "bootstrap": bootstrap(),
        "peak_memory_mb": memory(),
    }
    if args.json:
        print(json.dumps(figures, indent=1))
        return
    for name, values in figures.items():
        print(name)
        for key, value in values.items():
            print(f"  {key:<34}{value:,.3f}" if value < 1_000 else f"  {key:<34}{value:,.0f}")


if __name__ == "__main__":
    main()
