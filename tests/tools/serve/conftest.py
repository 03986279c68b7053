"""One `rehear serve` in a process of its own, and a few spoken clips of the demo's corpus."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.data.manifest import read_manifest

ROOT = Path(__file__).resolve().parents[3]


def start(*options, folder):
    """(process, address) of a server on a free port."""
    command = [sys.executable, "-m", "agent.faces.cli", "serve", "embedded", "--port", "0", "--threads", "1", *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"http://\S+", line)
        if found:
            return process, found[0]
    raise AssertionError(f"the server ended with {process.wait()}")


@pytest.fixture(scope="session")
def address(seed_folder, tmp_path_factory):
    process, url = start("--name", "tiny", folder=tmp_path_factory.mktemp("serve"))
    yield url
    process.terminate()
    assert process.wait(timeout=20) in (0, -15)


@pytest.fixture(scope="session")
def spoken(voices, tmp_path_factory):
    from tools.embedded.corpus import build_corpus

    rows = read_manifest(build_corpus(tmp_path_factory.mktemp("corpus") / "c", seed=5)["dev"], "dev").rows
    return [replace(c, audio_sha256=clip_digest(read_clip(c))) for c in rows[:5]]
