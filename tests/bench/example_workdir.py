"""Makes the auditor's example anew: a small real run, without what is private or large.

    python -m tests.bench.example_workdir FOLDER [OUT]      FOLDER: the customer's folder; OUT: default workdirs/example

The paths of FOLDER stand in the example's records, so give one that says nothing about anybody's machine. Left out of the copy:
git history, caches, checkpoints, the export and TensorBoard.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests.e2e.conftest import ROOT, spread
from tools.embedded.corpus import build_corpus

ROWS = {"train": 20, "dev": 10, "test": 20, "retention": 5}
PRESET = {"updates": 8, "groups": 4, "answers": 4, "optimiser_steps": 2, "checkpoint_every": 4, "lr": 4.0e-5}
LEFT_OUT = (".git", ".rehear", "checkpoints", "export", "tensorboard", "*.tmp")


def customer(folder: Path) -> Path:
    """A brief over a few clips of the demo's corpus; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, manifest in build_corpus(folder / "audio", seed=3).items():
        rows = [json.loads(line) for line in Path(manifest).read_text(encoding="utf-8").splitlines()]
        kept = [{**row, "audio_filepath": f"audio/{row['audio_filepath']}"} for row in spread(rows, ROWS[split])]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
    (folder / "preset.yaml").write_text(yaml.safe_dump(PRESET), encoding="utf-8")
    brief = {
        "name": "example", "task": "asr", "languages": ["en"], "seed_model": "embedded", "metric": "wer", "profile": "english",
        "data": {split: f"{split}.jsonl" for split in ROWS}, "prompts": ["", "Orders and deliveries."], "keep_text": True,
        "preset": "preset.yaml", "budget": {"cpu_minutes": 60}, "random_seed": 3, "reused_benchmark": False,
    }  # fmt: skip
    (folder / "brief.yaml").write_text(yaml.safe_dump(brief, sort_keys=False), encoding="utf-8")
    return folder / "brief.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "workdirs" / "example")
    given = parser.parse_args()
    brief, workdir = customer(given.folder), given.folder / "work"
    command = [sys.executable, "-m", "agent.faces.cli", "run", str(brief), "--workdir", str(workdir), "--json"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    document = json.loads(done.stdout)
    shutil.rmtree(given.out, ignore_errors=True)
    shutil.copytree(workdir, given.out, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (given.out / ".gitignore").unlink(missing_ok=True)
    print(document["termination_reason"], f"{document['ledger']['head']}:{document['ledger']['records']}")


if __name__ == "__main__":
    main()
