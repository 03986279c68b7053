"""The doctor looks at this very machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.doctor import doctor_document


def levels(folder: Path) -> dict[str, str]:
    return {f["what"]: f["level"] for f in doctor_document(folder)["findings"]}


def test_this_machine_can_run_what_it_tests(tmp_path: Path) -> None:
    document = doctor_document(tmp_path / "not" / "there" / "yet")
    assert document["ok"] and levels(tmp_path)["git"] == "ok" and levels(tmp_path)["libraries"] != "fail"
    assert not (tmp_path / "not").exists()


def test_missing_git_and_held_back_threads_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = levels(tmp_path)
    assert found["git"] == "fail" and found["processor"] == "warn" and not doctor_document(tmp_path)["ok"]


def test_the_command_ends_with_5_where_a_run_cannot(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent.faces.cli", "doctor", str(tmp_path)]
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    assert subprocess.run(command, env=here, capture_output=True).returncode == 0
    done = subprocess.run(command, env={**here, "PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 5 and "fail  git" in done.stdout
