"""Killed runs, broken checkpoints, full disks: the resumed run equals the undisturbed one, bit for bit."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.conftest import ROOT
from tests.tools.train import toy
from tests.tools.train.test_trainer import same_figures
from tools.errors import CheckError
from tools.train import checkpoint as disk
from tools.train.metrics import MetricsFile, final_view, read_metrics

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("plain") / "r"
    return folder, toy.run(folder)[0].trained_sha256


class Crash(Exception):
    pass


def die_at(event: str, update: int):
    def on_event(e: dict) -> None:
        if e["event"] == event and e.get("update") == update:
            raise Crash

    return on_event


@pytest.mark.parametrize(
    ("event", "update", "resumed_from", "lost"),
    [
        ("update", 2, 0, [1, 2]),
        ("update", 4, 0, [1, 2, 3, 4]),
        ("checkpoint", 4, 4, []),
        ("update", 7, 4, [5, 6, 7]),
        ("update", 12, 8, [9, 10, 11, 12]),
    ],
)
def test_killed_anywhere_the_final_weights_are_bit_equal(
    tmp_path: Path, plain: tuple[Path, str], event: str, update: int, resumed_from: int, lost: list[int]
) -> None:
    with pytest.raises(Crash):
        toy.run(tmp_path / "r", on_event=die_at(event, update))
    torch.manual_seed(999)  # a new process starts with another random state
    result, _ = toy.run(tmp_path / "r")
    assert result.trained_sha256 == plain[1]
    assert same_figures(plain[0], tmp_path / "r")
    lines = read_metrics(tmp_path / "r" / "metrics.jsonl")
    note = next(row for row in lines if row.get("event") == "resume")
    assert (note["from_update"], note["lost"], note["attempt"]) == (resumed_from, lost, 2)
    assert [row["update"] for row in final_view(tmp_path / "r" / "metrics.jsonl")] == list(range(1, 13))
    assert result.attempt == 2


@pytest.mark.parametrize("kill_after", ["update:3", "checkpoint:8"])
def test_sigkill_of_a_real_process(tmp_path: Path, plain: tuple[Path, str], kill_after: str) -> None:
    command = [sys.executable, "-m", "tests.tools.train.toy", str(tmp_path / "r")]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = subprocess.run([*command, kill_after], cwd=ROOT, env=env, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = subprocess.run([*command, "never:0"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert resumed.stdout.strip() == plain[1], resumed.stderr
    assert same_figures(plain[0], tmp_path / "r")


def test_twice_killed_in_the_same_stretch(tmp_path: Path, plain: tuple[Path, str]) -> None:
    for update in (6, 7):
        with pytest.raises(Crash):
            toy.run(tmp_path / "r", on_event=die_at("update", update))
    result, _ = toy.run(tmp_path / "r")
    assert result.trained_sha256 == plain[1]
    notes = [r for r in read_metrics(tmp_path / "r" / "metrics.jsonl") if r.get("event") == "resume"]
    assert [(n["attempt"], n["from_update"], n["lost"]) for n in notes] == [(2, 4, [5, 6]), (3, 4, [5, 6, 7])]


def cut_in_half(root: Path) -> str:
    path = root / "u0008" / disk.WEIGHTS
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return "bytes where"


def flip_a_bit(root: Path) -> str:
    path = root / "u0008" / disk.OPTIMISER
    body = bytearray(path.read_bytes())
    body[-1] ^= 1
    path.write_bytes(bytes(body))
    return "sha256"


def no_marker(root: Path) -> str:
    (root / "u0008" / disk.MARKER).unlink()
    return "no COMPLETE marker"


def torn_marker(root: Path) -> str:
    (root / "u0008" / disk.MARKER).write_text("{")
    return "cannot be read"


def gone(root: Path) -> str:
    (root / "u0008" / disk.STATE).unlink()
    return "is missing"


@pytest.mark.parametrize("damage", [cut_in_half, flip_a_bit, no_marker, torn_marker, gone])
def test_a_damaged_checkpoint_is_skipped_and_named(tmp_path: Path, plain: tuple[Path, str], damage) -> None:
    """F51: the newest whole one is taken, the reason for skipping the others told, nothing thrown away."""
    with pytest.raises(Crash):
        toy.run(tmp_path / "r", on_event=die_at("update", 9))
    root = tmp_path / "r" / "checkpoints"
    why = damage(root)
    (root / ".tmp-u0012").mkdir()
    result, _ = toy.run(tmp_path / "r")
    note = next(r for r in read_metrics(tmp_path / "r" / "metrics.jsonl") if r.get("event") == "resume")
    assert note["from_update"] == 4
    assert note["lost"] == [5, 6, 7, 8, 9]
    assert why in note["skipped"]["u0008"]
    assert "being written" in note["skipped"][".tmp-u0012"]
    assert result.trained_sha256 == plain[1]
    assert (root / "aside-1-u0008").is_dir()


def test_all_checkpoints_of_a_finished_run_damaged(tmp_path: Path, plain: tuple[Path, str]) -> None:
    shutil.copytree(plain[0], tmp_path / "r")
    for folder in (tmp_path / "r" / "checkpoints").iterdir():
        (folder / disk.MARKER).unlink()
    result, _ = toy.run(tmp_path / "r")
    assert result.trained_sha256 == plain[1]


def test_a_full_disk_leaves_the_older_checkpoint_and_says_how_much_is_needed(tmp_path: Path, monkeypatch) -> None:
    real = shutil.disk_usage
    with pytest.raises(CheckError, match=r"needs [\d,]+ bytes .* [\d,]+ are free"):
        monkeypatch.setattr(disk.shutil, "disk_usage", lambda p: real(p)._replace(free=1000))
        toy.run(tmp_path / "early")
    monkeypatch.undo()

    def fill(e: dict) -> None:
        if e["event"] == "update" and e["update"] == 8:
            monkeypatch.setattr(disk.shutil, "disk_usage", lambda p: real(p)._replace(free=1000))

    with pytest.raises(CheckError, match="checkpoint u0008 needs"):
        toy.run(tmp_path / "r", on_event=fill)
    monkeypatch.undo()
    assert [c.update for c in disk.find_checkpoints(tmp_path / "r" / "checkpoints").complete] == [4]
    assert toy.run(tmp_path / "r")[0].reason == "finished"


def test_enospc_in_the_middle_of_a_write(tmp_path: Path, monkeypatch) -> None:
    import errno

    own = disk._write_bytes

    def failing(path: Path, body: bytes) -> None:
        if path.name == disk.OPTIMISER and "u0008" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        own(path, body)

    monkeypatch.setattr(disk, "_write_bytes", failing)
    with pytest.raises(CheckError, match="make room and run again"):
        toy.run(tmp_path / "r")
    root = tmp_path / "r" / "checkpoints"
    assert sorted(p.name for p in root.iterdir()) == ["u0004"]


def test_a_torn_last_metrics_line_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps({"update": 1, "attempt": 1}) + "\n" + '{"update": 2, "att')
    assert [r["update"] for r in read_metrics(path)] == [1]
    file = MetricsFile(path)
    assert file.attempt == 2
    file.append({"update": 2, "attempt": 2})
    assert [r["update"] for r in final_view(path)] == [1, 2]
    assert (tmp_path / "metrics.torn").read_text() == '{"update": 2, "att'
    with pytest.raises(CheckError, match="loss is not finite at update 3"):
        file.append({"update": 3, "loss": float("nan")})
    path.write_text("{}\nnot json\n{}\n")
    with pytest.raises(CheckError, match="line 2"):
        read_metrics(path)


def test_final_view_holds_each_update_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [{"update": u, "attempt": 1} for u in (1, 2, 3)]
    rows += [{"event": "resume", "attempt": 2, "from_update": 2, "lost": [3]}, {"update": 3, "attempt": 2}]
    rows += [{"event": "resume", "attempt": 3, "from_update": 0, "lost": [1, 2, 3]}, {"update": 1, "attempt": 3}]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert final_view(path) == [{"update": 1, "attempt": 3}]
    assert final_view(tmp_path / "absent.jsonl") == []
