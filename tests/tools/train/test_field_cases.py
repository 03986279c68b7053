"""Field cases of the training engine with the very inputs they were reported with; each asserts its right outcome.

docs/training.md has the table of all cases and tests; parts of a case that other files hold already are named there.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.train import toy
from tools.errors import CheckError, UsageError
from tools.groups import first_n_with_contrast
from tools.reward import make_reward
from tools.rows import Answer, Clip, Group
from tools.text import profile
from tools.train import checkpoint as disk
from tools.train.estimator import advantages
from tools.train.loss import k3
from tools.train.metrics import final_view, read_metrics
from tools.train.prepare import TrainGroup, make_groups
from tools.train.rollout import RolloutSource
from tools.train.watch import assert_direction, correlation

NAN = float("nan")


pytestmark = pytest.mark.usefixtures("one_thread")


def answer(clip: str, i: int, text: str = "", finish: str = "stop") -> Answer:
    return Answer(clip, text or f"t{i}", (i, 12), finish, index=i, logprobs=(-1.0, -1.0))


def grouped(rewards: dict[str, list[float | None]]) -> list[TrainGroup]:
    """Groups of clips with these rewards, as the trainer makes them from what was sampled."""
    clips = {name: Clip(name, Path("none.wav"), "w1") for name in rewards}
    groups = [Group(n, tuple(answer(n, i) for i in range(len(r))), tuple(r)) for n, r in rewards.items()]
    kept = first_n_with_contrast(groups, len(groups), len(groups))
    return make_groups(kept, clips, toy.config(groups=len(groups), optimiser_steps=1))


# -- F32: the output limit cuts the transcript ---------------------------------------------------------------------------


def test_f32_a_cut_answer_is_marked_and_its_group_handled_by_rule() -> None:
    """40 words due, 15 said when the limit came: WER 0.625 says more about the limit than about the model."""
    words = [f"w{i}" for i in range(40)]
    clip = Clip("c", Path("none.wav"), " ".join(words))
    cut, done = answer("c", 0, " ".join(words[:15]), "length"), answer("c", 1, " ".join(words))
    outcomes = {}
    for rule in ("fair", "drop", "keep"):
        source = RolloutSource(
            None, [clip], encode=None, reward=toy.reward, config=toy.config(truncated=rule, answers=2),  # type: ignore[arg-type]
            prompts=lambda c: (toy.START,), sample=None, answer_seed=None, check=lambda: None, progress=lambda a, b: None,  # type: ignore[arg-type]
        )  # fmt: skip
        group, raw = source._score(clip, [cut, done])
        outcomes[rule] = group.rewards
        assert raw == (-0.625, 0.0)
    assert outcomes == {"fair": (None, 0.0), "drop": (None, 0.0), "keep": (-0.625, 0.0)}


def test_f32_prompt_and_limit_are_held_against_the_model_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has 1 tokens and answer_limit is 10: the model has room for 10 together"):
        toy.run(tmp_path / "r", toy.config(answer_limit=10))
    assert not (tmp_path / "r").exists()


def test_f32_shares_of_cut_answers_are_counted_and_a_rise_stops_the_run(tmp_path: Path) -> None:
    """A reward that pays for running on: ever more answers meet the limit."""
    limits = {"truncated_share_max": 0.6}
    result, _ = toy.run(tmp_path / "r", toy.config(updates=40, truncated="keep", **limits), reward=pays_length)
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    assert result.reason == "trust_region"
    assert "truncated_share" in result.detail
    assert rows[-1]["stop_share"] < rows[0]["stop_share"]  # F37's alarm


def pays_length(hyp: str, ref: str, lang: str | None = None) -> float:
    return float(len(hyp.split()))


# -- F39: groups are clips, not prompts ---------------------------------------------------------------------------------


def test_f39_an_all_wrong_and_an_all_right_clip_with_one_prompt_give_nothing() -> None:
    assert grouped({"A": [0, 0, 0, 0], "B": [1, 1, 1, 1]}) == []


def test_f39_as_many_groups_as_clips_though_all_prompts_are_equal(tmp_path: Path) -> None:
    toy.run(tmp_path / "r", toy.config(updates=3))
    for row in final_view(tmp_path / "r" / "metrics.jsonl"):
        assert len(set(row["clips"])) == len(row["clips"]) == row["retained"]
        assert row["answers"] == row["offered"] * 6


# -- F40: all-equal groups ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rewards", [[1, 1, 1, 1], [1 - 2 / 3, 1 / 3, 1 - 2 / 3, 1 / 3], [0.3] * 12, [0.7] * 8])
@pytest.mark.parametrize("estimator", ["skill", "nemo_rl", "group_mean"])
def test_f40_equal_rewards_are_no_signal(rewards: list[float], estimator: str) -> None:
    got = advantages(rewards, estimator)  # type: ignore[arg-type]
    assert set(got.values) == {0.0} and got.reason == "no_contrast"
    assert grouped({"c": list(rewards)}) == []


def test_f40_a_data_set_that_is_all_right_stops_and_says_so(tmp_path: Path) -> None:
    from tests.tools.train.test_watching import saying_the_reference

    result, policy = toy.run(tmp_path / "r", sample=saying_the_reference)
    assert (result.reason, result.updates, result.presentations) == ("no_contrast", 3, 0)
    assert "nothing to learn from: 100% of the answers are right" in result.detail
    assert policy.digest == toy.ToyPolicy().digest
    row = final_view(tmp_path / "r" / "metrics.jsonl")[0]
    assert row["group_spread"] == row["batch_spread"] == 0.0


# -- F41: NaN rewards, batch-wide normalising, a flipped sign --------------------------------------------------------------


def test_f41_unscorable_answers_leave_their_group_by_id() -> None:
    (group,) = grouped({"c": [1, 0, NAN, 0]})
    assert [a.index for a in group.answers] == [0, 1, 3]
    assert all(math.isfinite(a) for a in group.advantages)
    assert grouped({"c": [1, NAN, NAN, NAN]}) == []


def test_f41_advantages_are_made_inside_a_group() -> None:
    """Batch-wide the two clips would pull each other to +/-0.935; inside a group both outliers are 1.5 away."""
    one, two = grouped({"a": [1, 1, 1, 0], "b": [0, 0, 0, 1]})
    assert one.advantages[3] == pytest.approx(-two.advantages[3])
    assert one.advantages[0] == pytest.approx((1 - 2 / 3) / 0.5, abs=1e-4)
    assert one.advantages[3] == pytest.approx(-1 / 0.5, abs=1e-4)


def test_f41_a_flipped_sign_is_found_at_the_first_update() -> None:
    """WER 0, 0.5, 1, 19 used as reward: the loop would be paid best. Advantage and error must fall together."""
    (group,) = grouped({"c": [-0.0, -0.5, -1.0, -2.0]})
    assert assert_direction([group], 1) < -0.9
    flipped = TrainGroup(group.clip, group.answers, tuple(-a for a in group.advantages), group.rewards, group.counts)
    with pytest.raises(CheckError, match="a sign is flipped"):
        assert_direction([flipped], 1)
    errors = {a.text: e for a, e in zip(group.answers, (0.0, 0.5, 1.0, 19.0))}
    value = correlation([group], lambda hyp, ref, lang: errors[hyp])
    assert value is not None and value < 0


# -- F43: reward hacking -------------------------------------------------------------------------------------------------


def test_f43_label_and_silence() -> None:
    basic = profile("basic")
    label, cer = make_reward("label_exact", basic), make_reward("cer", basic)
    assert [label(hyp, "yes") for hyp in ("", "yes", "no", "yes and no")] == [0, 1, 0, 0]
    ref = "one two three four five six"
    rewards = [cer(hyp, ref) for hyp in (ref, "one two three", "")]
    assert min(r for r in rewards if r is not None) == rewards[2] == -1.0
    (group,) = grouped({"c": rewards})
    assert len(group.answers) == 3, "silence stays in its group"


def test_f43_answers_that_grow_short_while_reward_rises_stop_the_run(tmp_path: Path) -> None:
    limits = {"length_ratio_min": 0.5, "truncated": "keep"}
    result, _ = toy.run(
        tmp_path / "r", toy.config(updates=60, **limits), reward=lambda h, r, lang=None: -len(h.split())
    )
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    assert rows[-1]["offered_reward"] > rows[0]["offered_reward"]
    assert result.reason == "trust_region"
    assert "length_ratio" in result.detail and "below the limit of 0.5" in result.detail
    assert result.last_good < result.updates


def test_f43_empty_answers_stop_the_run(tmp_path: Path) -> None:
    limits = {"empty_share_max": 0.3, "truncated": "keep"}
    result, _ = toy.run(
        tmp_path / "r", toy.config(updates=60, **limits), reward=lambda h, r, lang=None: -len(h.split())
    )
    assert result.reason == "trust_region" and "empty_share" in result.detail


# -- F44: KL blow-up -----------------------------------------------------------------------------------------------------


def test_f44_k3_of_the_reported_log_ratios() -> None:
    new = torch.zeros(5, requires_grad=True)
    got = k3(new, torch.tensor([0.0, math.log(2), -math.log(2), 20.0, 89.0]))
    assert got[:3].tolist() == pytest.approx([0.0, 0.30685, 0.19315], abs=1e-5)
    got.sum().backward()
    assert got.isfinite().all() and new.grad is not None and new.grad.isfinite().all()


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_f44_what_is_not_finite_stops_before_step_and_checkpoint(tmp_path: Path, what: str) -> None:
    policy = toy.ToyPolicy()
    own, calls = policy.logprobs, iter(range(10**6))

    def poisoned(*a: Any, **k: Any) -> Any:
        values, mask = own(*a, **k)
        if not torch.is_grad_enabled() or next(calls) < 18:
            return values, mask
        if what == "loss":
            return values * NAN, mask
        values.register_hook(lambda grad: grad * float("inf"))  # a finite loss with a gradient that is not
        return values, mask

    policy.logprobs = poisoned  # type: ignore[method-assign]
    result, _ = toy.run(tmp_path / "r", policy=policy)
    assert result.reason == "non_finite"
    assert (result.last_good, result.updates) == (8, 9)
    assert [c["update"] for c in result.checkpoints] == [4, 8]
    assert all(p.isfinite().all() for p in policy.model.parameters())


# -- F46: resume repeats or skips ---------------------------------------------------------------------------------------


def test_f46_ten_clips_two_a_step_killed_after_step_three(tmp_path: Path) -> None:
    """Supervised, so that every offered clip is trained: each exactly once in the epoch, steps 1 to 5 once each."""

    class Crash(Exception):
        pass

    def crash(event: dict[str, Any]) -> None:
        if event["event"] == "update" and event["update"] == 3:
            raise Crash

    settings = toy.config(method="sft", groups=2, updates=5, optimiser_steps=1, checkpoint_every=2)
    clips = toy.pool(10)

    def target(clip: Clip) -> tuple[int, ...]:
        return (*(int(w[1:]) for w in (clip.text or "").split()), toy.STOP)

    plain, _ = toy.run(tmp_path / "plain", settings, clips=clips, targets=target)
    with pytest.raises(Crash):
        toy.run(tmp_path / "r", settings, clips=clips, targets=target, on_event=crash)
    result, _ = toy.run(tmp_path / "r", settings, clips=clips, targets=target)
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    assert [row["update"] for row in rows] == [1, 2, 3, 4, 5]
    assert sorted(i for row in rows for i in row["clips"]) == sorted(c.id for c in clips)
    lines = read_metrics(tmp_path / "r" / "metrics.jsonl")
    assert [line["lost"] for line in lines if line.get("event") == "resume"] == [[3]]
    assert result.trained_sha256 == plain.trained_sha256
    with pytest.raises(UsageError, match="another training pool"):
        toy.run(tmp_path / "r", settings, clips=toy.pool(9), targets=target)


# -- F51: half-written checkpoints, a full disk ----------------------------------------------------------------------------


def test_f51_a_cut_shard_and_a_temporary_folder_are_passed_over_by_name(tmp_path: Path) -> None:
    toy.run(tmp_path / "r", toy.config(updates=8, keep_resumable=5))
    root = tmp_path / "r" / "checkpoints"
    shard = root / "u0008" / disk.WEIGHTS
    shard.write_bytes(shard.read_bytes()[: shard.stat().st_size // 2])
    (root / ".tmp-u0012").mkdir()
    found = disk.find_checkpoints(root)
    assert found.resumable is not None and found.resumable.update == 4
    assert set(found.skipped) == {"u0008", ".tmp-u0012"}
    assert "bytes where" in found.skipped["u0008"] and "being written" in found.skipped[".tmp-u0012"]


def test_f51_a_real_disk_that_is_full(tmp_path: Path) -> None:
    """One MiB of tmpfs: the run is refused before its launch where it cannot fit, and stops whole where it fills up."""
    small = tmp_path / "disk"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1280k", "tmpfs", str(small)], capture_output=True)
    if os.name != "posix" or mounted.returncode:
        pytest.skip("a tmpfs cannot be mounted here: run as root to see a real full disk")
    try:
        with pytest.raises(CheckError, match=r"run r needs [\d,]+ bytes .* [\d,]+ are free: make room"):
            toy.run(small / "r", toy.config(updates=400, checkpoint_every=1))
        settings = toy.config(updates=8)

        def fill(event: dict[str, Any]) -> None:
            if event["event"] == "update" and event["update"] == 6:
                with pytest.raises(OSError), (small / "filler").open("wb") as handle:
                    while True:
                        handle.write(b"\0" * 4096)
                        handle.flush()

        with pytest.raises(
            CheckError, match=r"[\d,]+ bytes .* [\d,]+ are free: make room and run again, nothing is lost"
        ):
            toy.run(small / "s", settings, on_event=fill)
        (small / "filler").unlink()
        found = disk.find_checkpoints(small / "s" / "checkpoints")
        assert [c.update for c in found.complete] == [4]
        result, _ = toy.run(small / "s", settings)
        plain, _ = toy.run(tmp_path / "plain", settings)
        assert result.trained_sha256 == plain.trained_sha256
        assert json.loads((small / "s" / "config.json").read_text())["v"] == 1
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
