"""A thousand clips through `rehear serve`, the client killed (SIGKILL) and resumed three times: each answer once.

OMP_WAIT_POLICY=PASSIVE python -m pytest -q -s -m figures tests/tools/serve/test_thousand.py
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.tools.serve.conftest import start
from tools.data.manifest import read_manifest
from tools.decode.served.journal import Journal
from tools.embedded.corpus import build_corpus

pytestmark = [pytest.mark.figures, pytest.mark.seed_model, pytest.mark.voices]
ROOT = Path(__file__).resolve().parents[3]
CLIPS = int(os.environ.get("REHEAR_CLIPS", 1000))  # fewer to try the test itself
ANSWERS, LIMIT = 4, 40
CLIENT = """
import json, sys
from pathlib import Path
from tools.decode.served import Served, ServedRecogniser
from tools.rows import Clip
url, clips, out, n, limit = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
rows = [Clip.from_json(json.loads(line)) for line in open(clips)]
heard = ServedRecogniser.load(Served.build({"endpoints": url, "model": "tiny"}), out)
groups = heard.sample(rows, "", limit, n=n, temperature=0.8, seed=0)
print(json.dumps([[[a.clip_id, a.index, a.seed] for a in g] for g in groups]))
"""


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    """1,000 spoken clips of four corpora, with ids that do not clash."""
    folder = tmp_path_factory.mktemp("thousand")
    rows = []
    for seed in range(-(-CLIPS // 300)):
        for split, manifest in build_corpus(folder / f"seed-{seed}", seed).items():
            rows += [{**c.to_json(), "id": f"{seed}-{split}-{c.id}"} for c in read_manifest(manifest, split).rows]
    assert len(rows) >= CLIPS, len(rows)
    path = folder / "clips.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:CLIPS]))
    return path


def lines_of(path):
    return path.read_bytes().count(b'"key"') if path.is_file() else 0


def test_a_thousand_clips_each_answered_once_though_the_client_was_killed_three_times(thousand, tmp_path):
    process, url = start("--name", "tiny", "--threads", "2", folder=tmp_path)
    kept = tmp_path / "kept"
    command = [sys.executable, "-c", CLIENT, url, str(thousand), str(kept), str(ANSWERS), str(LIMIT)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed_at = []
    try:
        for share in (0.2, 0.5, 0.8):
            client = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
            while sum(map(lines_of, kept.glob("*.jsonl"))) < share * CLIPS * ANSWERS:
                assert client.poll() is None, "the client ended before it was killed"
                time.sleep(0.1)
            client.send_signal(signal.SIGKILL)
            client.wait()
            killed_at.append(sum(map(lines_of, kept.glob("*.jsonl"))))
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=3600)
        assert done.returncode == 0, done.stderr
    finally:
        process.terminate()
        process.wait(20)
    answers = [tuple(a) for group in json.loads(done.stdout) for a in group]
    assert len(answers) == CLIPS * ANSWERS and max(Counter(a[:2] for a in answers).values()) == 1
    assert len({a[2] for a in answers}) == CLIPS * ANSWERS, "every answer has a seed of its own"
    (path,) = kept.glob("*.jsonl")
    journal = Journal(path)
    assert len(journal.confirmed) == CLIPS * ANSWERS and not journal.pending
    journal.close()
    twice = lines_of(path) - CLIPS * ANSWERS
    assert twice == 0, "what was kept is not asked for again"
    print(
        f"\n{CLIPS} clips, {len(answers)} answers, killed at {killed_at} kept answers: each once, {twice} lines twice"
    )
