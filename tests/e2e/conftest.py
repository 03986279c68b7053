"""A small customer folder made of the demo's spoken corpus, and one finished run of it, shared by the end-to-end tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROWS = {"train": 8, "dev": 3, "test": 10, "retention": 2}
PRESET = {
    "updates": 4,
    "groups": 2,
    "answers": 4,
    "optimiser_steps": 2,
    "checkpoint_every": 2,
    "lr": 2.0e-5,
    "warmup_updates": 1,
    "temperature": 0.8,
}


def command(*args):
    return [sys.executable, "-m", "agent.faces.cli", *map(str, args)]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}


def rehear(*args, cwd, timeout=600):
    """Runs the command line in a process of its own; a traceback fails the test."""
    done = subprocess.run(command(*args), cwd=cwd, env=environment(), capture_output=True, text=True, timeout=timeout)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def line_count(path):
    """Whole lines of a file; 0 where there is none."""
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def begun(brief, workdir, cwd, reached):
    """A run in a process of its own, as soon as `reached()` holds or it has ended."""
    process = subprocess.Popen(
        command("run", brief, "--workdir", workdir, "--json"),
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not reached():
        time.sleep(0.01)
    return process


def spread(rows, n):
    """n rows, going round the speakers."""
    by_speaker = {}
    for row in rows:
        by_speaker.setdefault(row["speaker"], []).append(row)
    out = []
    while len(out) < n:
        for queue in by_speaker.values():
            if queue and len(out) < n:
                out.append(queue.pop(0))
    return out


@pytest.fixture(scope="session")
def small_brief(tmp_path_factory, voices, seed_folder) -> Path:
    """A brief over a few clips of the demo's corpus, with a preset of four small updates."""
    from tools.embedded.corpus import build_corpus

    folder = tmp_path_factory.mktemp("customer")
    for split, manifest in build_corpus(folder / "corpus", seed=3).items():
        manifest = Path(manifest)
        rows = [json.loads(line) for line in manifest.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            row["audio_filepath"] = os.fspath(manifest.parent / row["audio_filepath"])
        kept = spread(rows, ROWS[split])
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in kept), encoding="utf-8")
    (folder / "preset.yaml").write_text(yaml.safe_dump(PRESET))
    brief = {
        "name": "small",
        "task": "asr",
        "languages": ["en"],
        "seed_model": "embedded",
        "data": {split: f"{split}.jsonl" for split in ROWS},
        "metric": "wer",
        "profile": "english",
        "prompts": ["", "Orders and deliveries."],
        "preset": "preset.yaml",
        "budget": {"cpu_minutes": 60},
        "random_seed": 3,
        "reused_benchmark": False,
    }
    path = folder / "brief.yaml"
    path.write_text(yaml.safe_dump(brief))
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory, small_brief):
    """(work directory, final document) of one undisturbed run."""
    workdir = tmp_path_factory.mktemp("runs") / "undisturbed"
    done = rehear("run", small_brief, "--workdir", workdir, "--json", cwd=workdir.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return workdir, json.loads(done.stdout)
