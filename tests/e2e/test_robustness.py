"""What gets in the way of a real process: another one, a signal, a full or read-only disk, secrets around it."""

import json
import os
import signal
import subprocess

import pytest
import yaml

from agent.ledger.chain import read_ledger
from tests.e2e.conftest import begun, command, environment, line_count, rehear

pytestmark = [pytest.mark.seed_model, pytest.mark.voices]

SECRETS = {
    "HF_TOKEN": "hf_TESTTESTTESTtesttesttest",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "OPENAI_API_KEY": "sk-proj-TESTtestTESTtestTESTtest",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYTESTTESTTEST",
    "SOME_PASSWORD": "correct-horse-battery",
}


def recorded(brief, workdir, cwd, records=8):
    """A run in a process of its own, once its ledger holds so many records."""
    return begun(brief, workdir, cwd, lambda: line_count(workdir / "ledger.jsonl") >= records)


def test_a_second_process_is_refused_and_a_signal_stops_the_first_resumable(small_brief, tmp_path):
    workdir = tmp_path / "work"
    first = recorded(small_brief, workdir, tmp_path)
    second = rehear("run", small_brief, "--workdir", workdir, "--json", cwd=tmp_path)
    assert second.returncode == 2 and f"pid {first.pid}" in json.loads(second.stdout)["error"]["message"]
    first.send_signal(signal.SIGTERM)
    out, err = first.communicate(timeout=60)
    assert first.returncode == 143 and json.loads(out)["status"] == "interrupted" and "Traceback" not in err
    assert json.loads(rehear("audit", workdir, "--json", cwd=tmp_path).stdout)["ok"]


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own, to be filled or made read-only; skipped where none may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk may be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=False)


def remount(place, options):
    subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)


def test_a_full_disk_is_told_in_one_sentence_and_what_was_written_is_whole(small_brief, disk, tmp_path):
    workdir = disk / "work"
    done = rehear("run", small_brief, "--workdir", workdir, "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode in (1, 2, 5) and "\n" not in told["error"]["message"], done.stderr
    assert "space" in told["error"]["message"] or "disk" in told["error"]["message"]
    records, torn = read_ledger(workdir)
    assert records and not torn
    remount(disk, "size=400m")  # with room the same brief goes on
    process = recorded(small_brief, workdir, tmp_path, len(records) + 4)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert read_ledger(workdir)[0][: len(records)] == records


def test_a_read_only_disk_is_refused_and_untouched(small_brief, disk, tmp_path):
    remount(disk, "ro")
    done = rehear("run", small_brief, "--workdir", disk / "work", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 2 and "read-only" in told["error"]["message"].lower(), told["error"]
    assert not list(disk.iterdir())


def test_a_foreign_file_in_the_way_is_named_and_kept(small_brief, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/thesis.txt").write_text("mine")
    done = rehear("run", small_brief, "--workdir", tmp_path / "work", "--json", cwd=tmp_path)
    assert done.returncode == 2 and "thesis.txt" in json.loads(done.stdout)["error"]["message"]
    assert [p.name for p in (tmp_path / "work").iterdir()] == ["thesis.txt"]


def test_f54_secrets_around_a_run_reach_no_file_and_no_screen(small_brief, tmp_path):
    brief = {**yaml.safe_load(small_brief.read_text()), "budget": {"cpu_minutes": 0.01}}
    brief["data"] = {split: str(small_brief.parent / name) for split, name in brief["data"].items()}
    brief["preset"] = str(small_brief.parent / "preset.yaml")
    brief["prompts"] = ["", f"Bearer {SECRETS['OPENAI_API_KEY']}"]
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(brief))
    (tmp_path / "brief.yaml").write_text(yaml.safe_dump({**brief, "prompts": [""]}))
    refused = rehear("run", "bad.yaml", "--workdir", "work", "--json", cwd=tmp_path)
    assert refused.returncode == 2 and "prompts" in json.loads(refused.stdout)["error"]["message"]
    screen = [refused.stdout + refused.stderr]
    for args in (
        ["plan", "brief.yaml"],
        ["run", "brief.yaml", "--workdir", "work"],
        ["status", "work"],
        ["audit", "work"],
    ):
        done = subprocess.run(
            command(*args), cwd=tmp_path, env={**environment(), **SECRETS}, capture_output=True, text=True, check=False
        )
        screen.append(done.stdout + done.stderr)
    files = [p.read_bytes() for p in (tmp_path / "work").rglob("*") if p.is_file() and os.path.getsize(p) < 2**20]
    for name, value in SECRETS.items():
        assert value not in "".join(screen), name
        assert not any(value.encode() in body for body in files), name
