"""Cheats on work directories that are not finished, and on one that was killed and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.ledger.audit import audit
from tests.cheats.forge import Forger
from tests.cheats.workdirs import Maker, copy


@pytest.fixture(scope="module")
def running(maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained, nothing selected yet."""
    workdir = tmp_path_factory.mktemp("running") / "w"
    assert Maker(maker.root).run(workdir, until="train")["error"] is None
    return workdir


@pytest.fixture(scope="module")
def resumed(maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Killed at update 12, resumed from update 10 and finished."""
    folder = tmp_path_factory.mktemp("resumed")
    first = Maker(maker.root)
    first.snapshot = ("update", 12, folder / "killed")
    first.run(folder / "w", until="train")
    again = Maker(maker.root)
    assert again.run(folder / "killed", start="train")["outcome"] == "done"
    return folder / "killed"


def the_test_is_decoded_on_the_side(f: Forger) -> None:
    folder = copy(f.workdir / "evals/seed-dev", f.workdir / "evals/look")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    (folder / "rows.jsonl").write_text("".join(json.dumps({**row, "id": "test-00-0"}) + "\n" for row in rows[:1]))


def the_test_is_scored_before_anything_is_selected(f: Forger) -> None:
    payload = json.loads(json.dumps(f.payload("eval", eval_id="seed-dev")))
    f.append("eval", {**payload, "eval_id": "seed-test", "split": "test"})
    f.save()


def the_test_is_opened_while_training(f: Forger) -> None:
    frozen = f.payload("freeze")
    opening = {"run_id": "run1", "update": 10, "digest": "a" * 64, "contract_sha256": frozen["contract_sha256"]}
    f.append("test_open", {**opening, "membership_sha256": frozen["contract"]["membership_sha256"], "reused": False})
    f.save()


def the_reward_is_changed(f: Forger) -> None:
    f.edit_json("runs/run1/config.json", lambda c: c["identity"].update(reward="b" * 64))


def the_settings_are_changed(f: Forger) -> None:
    f.edit_json("runs/run1/config.json", lambda c: c["config"].update(lr=1e-3))


def more_steps_are_taken_than_registered(f: Forger) -> None:
    f.edit_lines("runs/run1/metrics.jsonl", lambda lines: [*lines, {**lines[-1], "update": 21}])


def other_data_is_trained_on(f: Forger) -> None:
    f.edit_lines("runs/run1/metrics.jsonl", lambda lines: lines[-1]["clips"].append("test-00-0"))


def a_second_run_goes_on_beside_it(f: Forger) -> None:
    copy(f.workdir / "runs/run1", f.workdir / "runs/run2")


def the_split_file_is_edited(f: Forger) -> None:
    f.edit_lines("data/membership.jsonl", lambda rows: rows[0].update(split="train"))


def the_contract_is_edited(f: Forger) -> None:
    f.edit_json("contract.json", lambda c: c["decoding"].update(limit=400))


RUNNING: list[tuple[str, Callable[[Forger], Any]]] = [
    ("test-sealed", the_test_is_decoded_on_the_side),
    ("eval-hidden", the_test_is_decoded_on_the_side),
    ("test-sealed", the_test_is_scored_before_anything_is_selected),
    ("test-once", the_test_is_opened_while_training),
    ("run-registered", the_reward_is_changed),
    ("run-registered", the_settings_are_changed),
    ("run-metrics", more_steps_are_taken_than_registered),
    ("run-pool", other_data_is_trained_on),
    ("run-hidden", a_second_run_goes_on_beside_it),
    ("data-membership", the_split_file_is_edited),
    ("contract-frozen", the_contract_is_edited),
]


@pytest.mark.parametrize("rule, plant", RUNNING, ids=[f"{plant.__name__}-{rule}" for rule, plant in RUNNING])
def test_cheat_on_a_running_work_directory_is_caught(
    rule: str, plant: Callable[[Forger], Any], running: Path, tmp_path: Path
) -> None:
    forger = Forger(copy(running, tmp_path / "w"))
    plant(forger)
    report = audit(forger.workdir, only={rule})
    assert report.rules == [rule] and any(v["records"] or v["files"] for v in report.violations), report.to_text()


def the_lost_attempt_is_not_told(f: Forger) -> None:
    f.drop("launch", attempt=1)
    f.drop("run_end", attempt=1)
    for kind in ("launch", "run_end"):
        f.payload(kind)["attempt"] = 1
    f.save()


def the_lost_attempts_end_is_deleted(f: Forger) -> None:
    f.drop("run_end", reason="lost")
    f.save()


def a_resumed_run_is_told_as_a_fresh_one(f: Forger) -> None:
    f.payload("launch", attempt=2)["from_update"] = 0
    f.save()


RESUMED: list[tuple[str, Callable[[Forger], Any]]] = [
    ("run-attempts", the_lost_attempt_is_not_told),
    ("run-attempts", the_lost_attempts_end_is_deleted),
    ("run-attempts", a_resumed_run_is_told_as_a_fresh_one),
]


@pytest.mark.parametrize("rule, plant", RESUMED, ids=[plant.__name__ for _, plant in RESUMED])
def test_cheat_on_a_resumed_work_directory_is_caught(
    rule: str, plant: Callable[[Forger], Any], resumed: Path, tmp_path: Path
) -> None:
    assert audit(resumed, only={rule}).ok
    forger = Forger(copy(resumed, tmp_path / "w"))
    plant(forger)
    assert audit(forger.workdir, only={rule}).rules == [rule]
