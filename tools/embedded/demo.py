"""The demo's brief: an ordinary customer folder made from the embedded corpus. The run knows nothing special about it."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from tools.embedded.corpus import build_corpus
from tools.embedded.seed import cache_folder

CPU_MINUTES = 60


def demo_brief(seed: int = 0) -> Path:
    """Speaks the corpus (once a seed) and writes `brief.yaml` beside its manifests; returns the brief's path."""
    folder = cache_folder() / "corpus" / f"seed-{seed}"
    manifests = build_corpus(folder, seed)
    brief = {
        "name": f"demo-{seed}",
        "task": "asr",
        "languages": ["en"],
        "seed_model": "embedded",
        "data": {split: os.fspath(Path(path).relative_to(folder)) for split, path in manifests.items()},
        "metric": "wer",
        "profile": "english",
        "retention_limit": 0.01,
        "budget": {"cpu_minutes": CPU_MINUTES},
        "where": "local",
        "random_seed": seed,
        "reused_benchmark": False,
    }
    path = folder / "brief.yaml"
    text = yaml.safe_dump(brief, sort_keys=False)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        tmp = path.with_suffix(".tmp")
        tmp.write_text(text, encoding="utf-8")
        os.replace(tmp, path)
    return path
