"""The figures of the main job, at full size (`make figures`): resumable, since every run of the demo is.

Work directories are kept in $REHEAR_FIGURES (default `figures/`); delete one to measure it again.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, command, environment, rehear
from tests.e2e.test_main_job import TIMES, decided
from tools.train.metrics import final_view, read_metrics

pytestmark = [pytest.mark.figures, pytest.mark.seed_model, pytest.mark.voices]

FIGURES = Path(os.environ.get("REHEAR_FIGURES", ROOT / "figures"))
SEEDS = (0, 1, 2)


def demo(seed, name=None):
    """(work directory, final document, seconds of this call) of a finished demo, run or resumed."""
    FIGURES.mkdir(exist_ok=True)
    workdir = FIGURES / (name or f"demo-{seed}")
    began = time.monotonic()
    done = rehear("demo", "--seed", seed, "--workdir", workdir, "--json", cwd=FIGURES, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    return workdir, json.loads(done.stdout), time.monotonic() - began


@pytest.mark.parametrize("seed", SEEDS)
def test_the_demo_reduces_errors_with_its_interval_clear_of_zero_and_keeps_retention(seed):
    workdir, document, seconds = demo(seed)
    test, retention = document["result"]["test"], document["result"]["retention"]
    low, high = test["interval"]
    print(
        f"\nseed {seed}: WER {test['seed']:.3f} -> {test['candidate']:.3f}, reduction {test['error_reduction']:.1%} "
        f"[{low:.1%}, {high:.1%}] over {test['blocks']} speakers; retention {retention['seed']:.3f} -> "
        f"{retention['candidate']:.3f}; selected {document['result']['selected']}; "
        f"{document['budget']['spent']:.1f} CPU minutes; {seconds:.0f} s for this call"
    )
    assert document["termination_reason"] == "candidate_wins"
    assert test["error_reduction"] >= 0.6 and low > 0
    assert retention["candidate"] - retention["seed"] <= 0.01
    assert rehear("audit", workdir, cwd=FIGURES).returncode == 0


def count(path, wanted=None):
    if not path.is_file():
        return 0
    lines = [json.loads(x) for x in path.read_text(encoding="utf-8").split("\n")[:-1]]
    return len([x for x in lines if wanted is None or wanted(x)])


def evaluated(workdir, split):
    return lambda: count(
        workdir / "ledger.jsonl", lambda r: r["kind"] == "intent" and split in str(r["payload"]["args"])
    )


def test_killed_at_five_moments_the_demo_comes_to_the_same_end():
    undisturbed, _, _ = demo(SEEDS[0])
    workdir = FIGURES / f"demo-{SEEDS[0]}-killed"
    metrics = workdir / "runs/run1/metrics.jsonl"
    moments = [
        ("decoding the seed on retention", lambda: evaluated(workdir, "seed-retention")() >= 1),
        ("sampling to mine", lambda: evaluated(workdir, "mine-1")() >= 1),
        ("after update 3, before any checkpoint", lambda: count(metrics) >= 3),
        ("after update 17, between two checkpoints", lambda: count(metrics) >= 19),
        ("decoding the test", lambda: evaluated(workdir, "selected-test")() >= 1),
    ]
    for what, reached in moments:
        process = subprocess.Popen(
            command("demo", "--seed", SEEDS[0], "--workdir", workdir, "--json"),
            cwd=FIGURES,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and not reached():
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        print(f"killed while {what}: exit {process.returncode}")
    again, _, _ = demo(SEEDS[0], workdir.name)
    assert decided(again) == decided(undisturbed)
    view, plain = final_view(metrics), final_view(undisturbed / "runs/run1/metrics.jsonl")
    assert [r["update"] for r in view] == list(range(1, len(view) + 1))
    for a, b in zip(view, plain, strict=True):
        assert {k: v for k, v in a.items() if k not in TIMES} == {k: v for k, v in b.items() if k not in TIMES}
    lost = [r["lost"] for r in read_metrics(metrics) if r.get("event") == "resume"]
    print(f"lost updates, repeated bit for bit: {lost}")
    assert rehear("audit", again, cwd=FIGURES).returncode == 0
