"""SIGKILL at node boundaries and at random moments of a real job: always the same end, each effect once, a valid ledger.

Eight kills in one work directory in `make test`; sixty over several in `make figures`, resumable: `KILLS=FOLDER` keeps what
was done, so that a run of it that was stopped goes on.
"""

import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from agent.ledger.chain import read_ledger
from tests.e2e.conftest import begun, line_count, rehear
from tests.e2e.test_main_job import decided, warmed

pytestmark = [pytest.mark.seed_model, pytest.mark.voices]


def kill_once(brief, workdir, rng, boundary):
    """Runs until a state is left (its commit is there) or some records further, and kills. False when it came to its end."""
    watched = workdir / (".git/logs/HEAD" if boundary else "ledger.jsonl")
    due = line_count(watched) + (1 if boundary else rng.randint(1, 4))
    process = begun(brief, workdir, workdir.parent, lambda: line_count(watched) >= due)
    time.sleep(0 if boundary else rng.random() * 0.5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode != 0


def killed_through(brief, workdir, finished, kills, seed):
    """Kills a run up to `kills` times, lets it end, and holds it against the undisturbed one. Returns the kills it took."""
    rng, done = random.Random(seed), 0
    while done < kills and kill_once(brief, workdir, rng, boundary=done % 2 == 0):
        done += 1
        read_ledger(workdir)  # raises where a line in the middle is broken
    end = rehear("run", brief, "--workdir", workdir, "--json", cwd=workdir.parent)
    assert end.returncode == 0, end.stdout + end.stderr
    assert decided(workdir) == decided(finished[0])
    outcomes = Counter(r.key for r in read_ledger(workdir)[0] if r.kind == "outcome")
    assert max(outcomes.values()) == 1, "an effect was done twice"
    found = json.loads(rehear("audit", workdir, "--json", cwd=workdir.parent).stdout)
    assert found["ok"], found["violations"]
    return done


def test_eight_kills_in_one_work_directory_change_nothing(finished, small_brief, tmp_path):
    workdir = warmed(tmp_path / "killed", finished)
    assert killed_through(small_brief, workdir, finished, kills=8, seed=5) == 8


@pytest.mark.figures
def test_sixty_kills_change_nothing(finished, small_brief):
    folder = Path(os.environ.get("KILLS") or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "kills.jsonl"
    rounds = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
    while sum(r["kills"] for r in rounds) < 60:
        workdir = folder / f"round-{len(rounds)}"
        shutil.rmtree(workdir, ignore_errors=True)
        kills = killed_through(small_brief, warmed(workdir, finished), finished, kills=12, seed=100 + len(rounds))
        rounds.append({"round": len(rounds), "kills": kills})
        with open(log, "a", encoding="utf-8") as out:
            out.write(json.dumps(rounds[-1]) + "\n")
        shutil.rmtree(workdir)
    print(f"{sum(r['kills'] for r in rounds)} kills in {len(rounds)} runs: the same end each time")


@pytest.mark.figures
@pytest.mark.parametrize("records", [12, 30, 55])
def test_a_signal_stops_within_ten_seconds(finished, small_brief, tmp_path, records):
    workdir = warmed(tmp_path / "stopped", finished)
    process = begun(small_brief, workdir, tmp_path, lambda: line_count(workdir / "ledger.jsonl") >= records)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    took = time.monotonic() - began
    assert process.returncode == 143 and took < 10, f"{took:.1f} s at record {records}"
    print(f"stopped {took:.1f} s after SIGTERM at record {records}")
