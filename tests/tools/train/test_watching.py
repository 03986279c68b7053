"""Watching a run: every figure by name, TensorBoard, W&B, curves, and why a run learns nothing, each cause planted."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.tools.train import toy
from tools.decode.local import sample
from tools.errors import CheckError, RehearError, UsageError
from tools.reward import make_reward
from tools.rows import Answer
from tools.text import profile
from tools.train.curves import blocks, curves_png, run_rows, show, terminal_curves
from tools.train.metrics import final_view

# issue and seed 000 section 5: what is logged an update
NAMED = (
    "offered_reward", "reward", "contrast_share", "refills", "distinct_clips", "repeats", "loss", "grad_norm",
    "ratio_mean", "ratio_p99", "clip_share", "kl_mean", "kl_max", "entropy", "length_ratio", "empty_share",
    "truncated_share", "stop_share", "tokens_per_s", "seconds", "sample_s", "learn_s", "group_spread", "batch_spread",
    "right_share", "unscored", "distinct_answers", "logprob_gap", "advantage_error_correlation",
)  # fmt: skip


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "work" / "runs" / "run1"
    toy.run(folder, toy.config(kl_every=1, updates=6))
    return folder


def test_every_figure_of_an_update_is_there(ran: Path) -> None:
    for row in final_view(ran / "metrics.jsonl"):
        for name in NAMED:
            assert math.isfinite(row[name]), name
        assert row["stop_share"] + row["truncated_share"] == pytest.approx(1)
        assert row["kl_max"] >= row["kl_mean"] >= 0
        assert row["batch_spread"] >= row["group_spread"] >= 0
        assert row["distinct_clips"] + row["repeats"] >= row["retained"]


def test_tensorboard_holds_the_same_figures(ran: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(ran / "tensorboard"))
    events.Reload()
    rows = final_view(ran / "metrics.jsonl")
    for name in NAMED:
        points = events.Scalars(f"train/{name}")
        assert [p.step for p in points] == [row["update"] for row in rows]
        assert [p.value for p in points] == pytest.approx([row[name] for row in rows], rel=1e-5)


def test_wandb_offline_where_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="W&B is not installed: pip install 'rehear[wandb]'")
    monkeypatch.setenv("WANDB_API_KEY", "never-needed-offline")
    plain, _ = toy.run(tmp_path / "plain", toy.config(updates=2))
    result, _ = toy.run(tmp_path / "r", toy.config(updates=2, wandb="offline"))
    assert result.trained_sha256 == plain.trained_sha256
    runs = list((tmp_path / "r" / "wandb").glob("offline-run-*"))
    assert len(runs) == 1
    body = next(runs[0].glob("*.wandb")).read_bytes()
    assert b"train/offered_reward" in body
    assert b"never-needed" not in body
    assert toy.config(wandb="offline").digest == toy.config().digest


def test_without_wandb_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=r"rehear\[wandb\]"):
        toy.run(tmp_path / "r", toy.config(updates=2, wandb="offline"))


# -- curves -----------------------------------------------------------------------------------------------------------


def test_blocks_by_hand() -> None:
    assert blocks([0.0, 1.0, None, 0.5]) == "▁█·▅"
    assert blocks([3.0, 3.0]) == "▁▁"
    assert blocks([None, None]) == "··"
    assert blocks(list(range(100)), width=4) == "▁▃▆█"
    assert len(blocks([0.1] * 1000, width=48)) == 48


def test_curves_in_the_terminal_and_as_png(ran: Path) -> None:
    rows = run_rows(ran)
    text = terminal_curves(rows)
    assert text.splitlines()[0] == "6 updates"
    for label in ("reward, all offered", "reward, retained", "ratio, p99", "KL a token, max", "tokens a second"):
        assert label in text
    assert curves_png(rows)[:8] == b"\x89PNG\r\n\x1a\n"
    assert curves_png(rows) == curves_png(rows)
    assert curves_png(rows[:1])[:4] == b"\x89PNG"
    whole, files = show(ran.parents[1])
    assert files == [ran / "curves.png"] and files[0].is_file() and whole.startswith("run1: 6 updates")


def test_curves_are_a_command(ran: Path, tmp_path: Path) -> None:
    from agent.faces.cli import app

    out = CliRunner().invoke(app, ["curves", str(ran)])
    assert out.exit_code == 0 and "gradient norm" in out.output
    assert json.loads(CliRunner().invoke(app, ["curves", str(ran), "--json"]).output)["curves"]
    assert isinstance(CliRunner().invoke(app, ["curves", str(tmp_path)]).exception, UsageError)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('{"loss": 1}', "line 1 has no number as its update"),
        ('{"update": 1, "loss": 1}\n{"event": "resume"}', "line 2 has no number as its from_update"),
        ('{"update": "a", "loss": 1}', "line 1 has no number as its update"),
        ('{"update": 1, "loss": "high"}', "loss of update 1 is 'high', not a number"),
        ('{"update": 1, "foo": 2}', "none of the figures"),
        ("7", "line 1 is not a JSON object"),
        ('{"event": "resume", "from_update": 0}', "holds no run"),
    ],
)
def test_curves_of_an_odd_folder_are_one_sentence(tmp_path: Path, body: str, says: str) -> None:
    for name, text in (("a", body), ("b", '{"update": 1, "loss": 1.5}')):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "metrics.jsonl").write_text(f"{text}\n")
    with pytest.raises(RehearError, match=says):
        show(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "a" / "metrics.jsonl").write_text("")
    assert show(tmp_path)[0].startswith("a: no update yet\nb: 1 updates")
    (tmp_path / "runs" / "b" / "curves.png").unlink()
    (tmp_path / "runs" / "b" / "curves.png").mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        show(tmp_path)


# -- why a run learns nothing: faults planted in the run itself ---------------------------------------------------------


def test_flat_because_all_is_right(tmp_path: Path) -> None:
    result, _ = toy.run(tmp_path / "r", reward=lambda hyp, ref, lang=None: 0.0, sample=saying_the_reference)
    assert result.reason == "no_contrast"
    assert "nothing to learn from: 100% of the answers are right" in result.detail
    assert final_view(tmp_path / "r" / "metrics.jsonl")[0]["right_share"] == 1.0


def saying_the_reference(policy: Any, encoded: Any, prompts: Any, ids: Any, n: int, *rest: Any) -> list[list[Answer]]:
    """Real answers but for their words."""
    texts = {c.id: c.text or "" for c in toy.pool()}
    groups = sample(policy, encoded, prompts, ids, n, *rest)
    return [[dataclasses.replace(a, text=texts[a.clip_id]) for a in group] for group in groups]


def test_flat_because_all_is_wrong(tmp_path: Path) -> None:
    result, _ = toy.run(tmp_path / "r", reward=lambda hyp, ref, lang=None: -2.0)
    assert "100% of the groups are flat" in result.detail
    assert "of the answers are wrong; check references and prompt" in result.detail


def test_copies_because_temperature_or_seeds_do_not_reach_the_sampler(tmp_path: Path) -> None:
    def cold(*args: Any) -> list[list[Answer]]:
        seeds = [[row[0]] * len(row) for row in args[7]]
        return sample(*args[:7], seeds)

    result, _ = toy.run(tmp_path / "r", sample=cold)
    assert result.reason == "no_contrast"
    assert "copies of one another: check that temperature 0.8 and the answers' seeds reach the sampler" in result.detail


def test_everything_cut_at_the_limit(tmp_path: Path) -> None:
    result, _ = toy.run(tmp_path / "r", toy.config(answer_limit=1, truncated="drop"))
    assert result.reason == "no_contrast"
    assert "of the answers were cut at 1 tokens: raise answer_limit" in result.detail


def test_a_loss_that_what_trains_does_not_reach(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    own = policy.logprobs

    def cut(*args: Any, **more: Any) -> Any:
        values, mask = own(*args, **more)
        return values.detach() + 0 * values, mask

    policy.logprobs = cut  # type: ignore[method-assign]
    result, _ = toy.run(tmp_path / "r", toy.config(updates=3), policy=policy)
    assert any("gradient is exactly 0" in d and "check surface and freeze" in d for d in result.diagnosis)


def test_a_learning_rate_that_does_nothing(tmp_path: Path) -> None:
    result, _ = toy.run(tmp_path / "r", toy.config(updates=18, groups=12, answers=12, lr=1e-12, random_seed=2))
    assert any("does not rise: try a higher lr" in d for d in result.diagnosis)


def test_a_reward_that_breaks_the_order_starts_no_run(tmp_path: Path) -> None:
    gamed = dataclasses.replace(make_reward("cer", profile("basic")), function=lambda h, r, lang: float(len(h)))
    with pytest.raises(CheckError, match="breaks the order it must give, so the run does not start"):
        toy.run(tmp_path / "r", reward=gamed)
    assert not (tmp_path / "r").exists()
    toy.run(tmp_path / "good", toy.config(updates=1), reward=make_reward("cer", profile("basic")))
