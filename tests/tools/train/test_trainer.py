import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.train import toy
from tools.errors import CheckError, UsageError
from tools.rows import Answer, Clip
from tools.train.checkpoint import find_checkpoints, load_trained
from tools.train.config import make_config
from tools.train.learner import Learner, StepStats
from tools.train.metrics import final_view, read_metrics
from tools.train.order import ClipOrder, Position
from tools.train.prepare import TrainGroup
from tools.train.rollout import RolloutSource
from tools.train.trainer import Interrupted
from tools.train.watch import diagnose

pytestmark = pytest.mark.usefixtures("one_thread")


def test_training_raises_the_reward(tmp_path: Path) -> None:
    result, policy = toy.run(tmp_path / "r", toy.config(updates=60, lr=2e-2, checkpoint_every=20))
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    assert result.reason in ("finished", "no_contrast")
    assert rows[-1]["offered_reward"] > rows[0]["offered_reward"] + 0.4
    assert result.gspo_claimed
    assert result.ratio_moved
    assert result.last_good == result.updates
    assert [c["update"] for c in result.checkpoints][:2] == [20, 40]
    assert result.checkpoints[-1]["digest"] == policy.digest


def test_every_figure_is_there_and_finite(tmp_path: Path) -> None:
    toy.run(tmp_path / "r")
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    assert [r["update"] for r in rows] == list(range(1, 13))
    first, fourth = rows[0], rows[3]
    assert first["advantage_error_correlation"] < -0.5
    assert first["logprob_gap"] < 1e-4
    assert first["steps"] == 2
    assert first["lr"] == pytest.approx(5e-2 / 5)
    assert fourth["kl_mean"] is None
    assert rows[2]["kl_mean"] > 0
    assert fourth["ratio_moved"] > 0
    assert 0 <= fourth["clip_share"] <= 1
    for key in ("offered_reward", "reward", "contrast_share", "refills", "distinct_clips", "repeats", "loss", "cpu_s"):
        assert first[key] is not None, key
    for key in ("ratio_mean", "ratio_p99", "entropy", "length_ratio", "empty_share", "truncated_share", "stop_share"):
        assert math.isfinite(first[key]), key
    assert list((tmp_path / "r" / "tensorboard").glob("events.*"))


def test_one_step_an_update_is_not_called_gspo(tmp_path: Path) -> None:
    result, _ = toy.run(tmp_path / "r", toy.config(updates=4, optimiser_steps=1))
    assert not result.ratio_moved
    assert not result.gspo_claimed
    assert all(r["ratio_mean"] == 1.0 for r in final_view(tmp_path / "r" / "metrics.jsonl"))


@pytest.mark.parametrize(
    "more",
    [
        {"method": "grpo"},
        {"estimator": "nemo_rl"},
        {"old_logprobs": "recomputed"},
        {"passes": 2},
        {"kl_weight": 0.1},
        {"truncated": "keep"},
    ],
)
def test_variants_run(tmp_path: Path, more: dict) -> None:
    result, _ = toy.run(tmp_path / "r", toy.config(updates=4, **more))
    assert result.reason == "finished"
    assert result.ratio_moved


def test_chunks_change_nothing_but_rounding(tmp_path: Path) -> None:
    weights = []
    for chunk in (1, 4):
        _, policy = toy.run(tmp_path / f"r{chunk}", toy.config(updates=3, chunk_clips=chunk, lr=1e-3))
        weights.append(torch.cat([p.detach().flatten() for p in policy.model.parameters()]))
    assert torch.allclose(weights[0], weights[1], atol=2e-5)


def test_equal_answers_are_one_row_with_the_same_gradient() -> None:
    """One row weighted by its count gives the loss and gradient of the copies, for both methods."""
    policy, clip = toy.ToyPolicy(), toy.pool()[0]
    a, b = (Answer(clip.id, "x", t, logprobs=(-1.0,) * len(t)) for t in ((1, 2, 12), (3, 12)))
    merged = TrainGroup(clip, (a, b), (0.5, -1.5), (0.0, -1.0), (3, 1))
    copies = TrainGroup(clip, (a, a, a, b), (0.5, 0.5, 0.5, -1.5), (0.0, 0.0, 0.0, -1.0), (1, 1, 1, 1))
    for method in ("gspo", "grpo"):
        learner = Learner(
            policy, toy.config(method=method), lambda cs: policy.encode([toy.wave(c) for c in cs]), prompt
        )
        out = []
        for group in (merged, copies):
            stats = StepStats()
            learner._minibatch([group], [0], {}, {}, stats, fresh=False)
            grads = [p.grad.clone() for p in learner.named.values()]
            learner.optimiser.zero_grad()
            out.append((stats, grads))
        (s1, g1), (s2, g2) = out
        assert s1.loss == pytest.approx(s2.loss, abs=1e-6)
        assert torch.equal(torch.cat(s1.ratios), torch.cat(s2.ratios))
        assert (s1.clipped, s1.counted) == (s2.clipped, s2.counted)
        for x, y in zip(g1, g2):
            assert torch.allclose(x, y, atol=1e-6)


def prompt(clip: Clip) -> tuple[int, ...]:
    return (toy.START,)


def test_frozen_tensors_stay_byte_equal_and_only_the_surface_moves(tmp_path: Path) -> None:
    before = {k: v.clone() for k, v in toy.ToyPolicy().model.state_dict().items()}
    settings = toy.config(updates=3, surface="decoder", freeze=["places"])
    _, policy = toy.run(tmp_path / "r", settings)
    after = policy.model.state_dict()
    still = {k for k in before if torch.equal(before[k], after[k])}
    assert still == {"encoder.weight", "decoder.places.weight"}


def test_surface_counts_are_asserted_before_step_one(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="6 tensors where the settings assert 7"):
        toy.run(tmp_path / "r", toy.config(surface_tensors=7))


def test_clips_come_once_an_epoch() -> None:
    ids = [f"c{i}" for i in range(10)]
    order = ClipOrder(ids, seed=3, apart=4)
    stream = order.following(Position())
    epochs = [[next(stream) for _ in ids] for _ in range(4)]
    assert all(sorted(e) == sorted(ids) for e in epochs)
    assert len({tuple(e) for e in epochs}) == 4
    for a, b in pairwise(epochs):
        assert not set(a[-4:]) & set(b[:4])
    there = order.advance(Position(), 13)
    assert (there.epoch, there.at, there.offered) == (1, 3, 13)
    assert next(order.following(there)) == epochs[1][3]
    assert order.epoch(1) == ClipOrder(list(reversed(ids)), seed=3, apart=4).epoch(1)


def test_refills_are_counted_and_the_first_n_are_those_of_full_sampling(tmp_path: Path) -> None:
    flat = {f"c{i:02d}" for i in range(0, 12, 3)}
    clips = toy.pool()
    texts = {c.text: c.id for c in clips}

    def reward(hyp: str, ref: str, lang: str | None = None) -> float:
        return -1.0 if texts[ref] in flat else -len(hyp.replace("w", "")) - sum(map(ord, hyp)) / 1e4

    toy.run(tmp_path / "r", toy.config(updates=3, truncated="keep", answers=8), reward=reward)
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    order = ClipOrder([c.id for c in clips], 0, 8)
    at = 0
    stream = [i for e in range(3) for i in order.epoch(e)]
    for row in rows:
        offered = stream[at : at + 8]
        assert row["clips"] == [i for i in offered if i not in flat][:4]
        assert row["refills"] == row["offered"] - 4 > -1
        at += row["offered"]


def test_stop_keeps_everything_and_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    plain, _ = toy.run(tmp_path / "plain")
    seen: list[dict] = []
    with pytest.raises(Interrupted, match="stopped after update 6"):
        toy.run(tmp_path / "r", on_event=seen.append, should_stop=lambda: any(e.get("update") == 7 for e in seen))
    stopped = find_checkpoints(tmp_path / "r" / "checkpoints").complete[-1]
    assert not stopped.candidate
    events: list[dict] = []
    again, _ = toy.run(tmp_path / "r", on_event=events.append)
    assert again.trained_sha256 == plain.trained_sha256
    resume = next(e for e in events if e["event"] == "resume")
    assert resume["from_update"] == stopped.update
    assert resume["lost"] == []
    assert [c["update"] for c in again.checkpoints] == [4, 8, 12]
    assert same_figures(tmp_path / "plain", tmp_path / "r")


TIMES = {"sample_s", "learn_s", "seconds", "cpu_s", "tokens_per_s", "attempt", "run"}


def same_figures(a: Path, b: Path) -> bool:
    views = [
        [{k: v for k, v in row.items() if k not in TIMES} for row in final_view(f / "metrics.jsonl")] for f in (a, b)
    ]
    assert views[0] == views[1]
    return True


def test_evaluation_follows_each_checkpoint_and_is_asked_again_on_resume(tmp_path: Path) -> None:
    seen: list[int] = []

    def crash(update: int) -> None:
        seen.append(update)
        if update == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        toy.run(tmp_path / "r", evaluate=crash)
    assert seen == [4, 8]
    again: list[int] = []
    toy.run(tmp_path / "r", evaluate=again.append)
    assert again == [8, 12]


def test_a_finished_run_gives_its_result_again_without_sampling(tmp_path: Path) -> None:
    first, one = toy.run(tmp_path / "r")

    def never(*a: Any, **k: Any) -> Any:
        raise AssertionError("sampled again")

    second, two = toy.run(tmp_path / "r", sample=never)
    assert first == second
    assert one.digest == two.digest
    assert sum("event" not in row for row in read_metrics(tmp_path / "r" / "metrics.jsonl")) == 12


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"settings": toy.config(lr=1e-3)}, "another settings"),
        ({"clips": toy.pool(11)}, "another training pool"),
        ({"policy": toy.ToyPolicy(5)}, "another seed model"),
        ({"reward": lambda hyp, ref, lang=None: 0.0}, "another reward"),
    ],
)
def test_another_run_s_folder_is_refused(tmp_path: Path, change: dict, says: str) -> None:
    toy.run(tmp_path / "r", toy.config(updates=4))
    with pytest.raises(UsageError, match=says):
        toy.run(tmp_path / "r", **{"settings": toy.config(updates=4), **change})


def test_bad_pools_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="3 clips and an update needs 4"):
        toy.run(tmp_path / "r", clips=toy.pool(3))
    with pytest.raises(UsageError, match="twice"):
        toy.run(tmp_path / "r", clips=toy.pool(6) + toy.pool(1))


def test_trust_region_returns_to_the_last_good_checkpoint(tmp_path: Path) -> None:
    plain, _ = toy.run(tmp_path / "plain", toy.config(updates=4))
    result, policy = toy.run(tmp_path / "r", toy.config(kl_every=1, kl_max=0.5))
    assert result.reason == "trust_region"
    assert "kl_mean" in result.detail
    assert result.updates > result.last_good
    assert result.last_good in (0, 4, 8)
    expected = {0: toy.ToyPolicy().digest, 4: plain.checkpoints[-1]["digest"]}
    assert policy.digest == expected[result.last_good]
    again, _ = toy.run(tmp_path / "r", toy.config(kl_every=1, kl_max=0.5))
    assert again == result


def test_seed_s_own_habits_do_not_break_the_limits(tmp_path: Path) -> None:
    """Random answers are far too long for these references; only getting worse than at the start counts."""
    settings = toy.config(updates=2, length_ratio_max=0.6)
    assert toy.run(tmp_path / "r", settings)[0].reason == "finished"


def test_nothing_to_learn_stops_early_and_says_why(tmp_path: Path) -> None:
    result, policy = toy.run(tmp_path / "r", reward=lambda hyp, ref, lang=None: 0.0)
    assert result.reason == "no_contrast"
    assert result.updates == 3
    assert "flat" in result.detail
    assert policy.digest == toy.ToyPolicy().digest


def test_unscorable_answers_never_reach_the_learner(tmp_path: Path) -> None:
    def reward(hyp: str, ref: str, lang: str | None = None) -> float | None:
        return None if hyp.startswith("w1") else float("nan") if hyp.startswith("w2") else toy.reward(hyp, ref)

    result, policy = toy.run(tmp_path / "r", toy.config(updates=3), reward=reward)
    assert result.reason == "finished"
    assert final_view(tmp_path / "r" / "metrics.jsonl")[0]["unscored"] > 0
    assert all(p.isfinite().all() for p in policy.model.parameters())


@pytest.mark.parametrize(
    ("rule", "finish", "said", "counts"),
    [
        ("fair", "stop", "w1", True),
        ("fair", "length", "w1 w5", False),  # cut on its way: the limit may be to blame (F32)
        ("fair", "length", "w1 w5 w1", False),  # all there but the stop
        ("fair", "length", "w1 w5 w1 w1 w1 w1 w1", True),  # a loop: it cannot be right any more
        ("drop", "length", "w1 w5 w1 w1 w1 w1 w1", False),
        ("keep", "length", "w1", True),
    ],
)
def test_rule_for_answers_cut_at_the_limit(rule: str, finish: str, said: str, counts: bool) -> None:
    clip = toy.pool()[1]
    source = RolloutSource(
        None,
        [clip],
        encode=None,  # type: ignore[arg-type]
        reward=toy.reward,
        config=toy.config(truncated=rule, answers=2),
        prompts=prompt,
        sample=None,  # type: ignore[arg-type]
        answer_seed=None,  # type: ignore[arg-type]
        check=lambda: None,
        progress=lambda a, b: None,
    )
    answers = [Answer(clip.id, said, (1,), finish), Answer(clip.id, "w1", (1,), index=1)]
    group, raw = source._score(clip, answers)
    assert (group.rewards[0] is not None) is counts
    assert raw[0] is not None


def test_cut_answers_are_left_out_by_rule(tmp_path: Path) -> None:
    toy.run(tmp_path / "drop", toy.config(updates=2, answer_limit=2, truncated="drop"))
    row = final_view(tmp_path / "drop" / "metrics.jsonl")[0]
    assert row["truncated_share"] > 0
    assert row["truncated_share"] + row["stop_share"] == pytest.approx(1)
    assert row["reward"] != row["offered_reward"]


def test_non_finite_loss_stops_before_the_step(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    own = policy.logprobs
    calls = iter(range(10**6))

    def poisoned(*a: Any, **k: Any) -> Any:
        values, mask = own(*a, **k)
        return (values * float("nan") if next(calls) > 20 and torch.is_grad_enabled() else values), mask

    policy.logprobs = poisoned  # type: ignore[method-assign]
    result, _ = toy.run(tmp_path / "r", policy=policy)
    assert result.reason == "non_finite"
    assert "not taken" in result.detail
    assert all(p.isfinite().all() for p in policy.model.parameters())


def test_audio_that_does_not_reach_the_loss_is_found(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="audio does not reach the loss"):
        toy.run(tmp_path / "r", policy=toy.ToyPolicy(deaf=True), settings=toy.config(logprob_gap_max=99))


def test_log_probs_of_another_temperature_are_found(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    own = policy.logprobs
    policy.logprobs = lambda e, p, a, t=1.0: own(e, p, a, 1.0)  # type: ignore[method-assign]
    with pytest.raises(CheckError, match="temperature, suppressed tokens"):
        toy.run(tmp_path / "r", policy=policy)


def test_a_mask_that_forgets_the_stop_token_is_found(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    own = policy.logprobs

    def short(*a: Any, **k: Any) -> Any:
        values, mask = own(*a, **k)
        mask = mask.clone()
        mask[:, -1] = False
        return values, mask

    policy.logprobs = short  # type: ignore[method-assign]
    with pytest.raises(CheckError, match="loss mask"):
        toy.run(tmp_path / "r", policy=policy)


def test_answers_of_another_clip_are_found(tmp_path: Path) -> None:
    from tools.decode.local import sample

    def shifted(*a: Any, **k: Any) -> list[list[Answer]]:
        rows = sample(*a, **k)
        return rows[1:] + rows[:1]

    with pytest.raises(CheckError, match=r"clip c\d+: 6 answers were asked for"):
        toy.run(tmp_path / "r", sample=shifted)


def test_a_frozen_tensor_that_moves_is_found(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()

    def evaluate(update: int) -> None:
        with torch.no_grad():
            policy.model.encoder.weight[0, 0] += 1e-3

    with pytest.raises(CheckError, match="outside the training surface"):
        toy.run(tmp_path / "r", toy.config(surface="decoder"), policy=policy, evaluate=evaluate)


def test_checkpoints_load_into_a_fresh_policy(tmp_path: Path) -> None:
    result, policy = toy.run(tmp_path / "r", toy.config(updates=4))
    fresh = toy.ToyPolicy()
    load_trained(fresh, tmp_path / "r" / result.checkpoints[-1]["folder"])
    assert fresh.digest == policy.digest
    with pytest.raises(CheckError, match="another digest"):
        load_trained(_other_encoder(), tmp_path / "d" / "checkpoints" / "u0004") if toy.run(
            tmp_path / "d", toy.config(updates=4, surface="decoder")
        ) else None


def _other_encoder() -> toy.ToyPolicy:
    other = toy.ToyPolicy()
    with torch.no_grad():
        other.model.encoder.weight += 1
    return other


def test_old_optimiser_states_are_dropped_and_new_ones_kept(tmp_path: Path) -> None:
    toy.run(tmp_path / "r", toy.config(checkpoint_every=2, keep_resumable=2))
    found = find_checkpoints(tmp_path / "r" / "checkpoints").complete
    assert [c.update for c in found] == [2, 4, 6, 8, 10, 12]
    assert [c.resumable for c in found] == [False] * 4 + [True] * 2


def test_diagnosis_names_causes() -> None:
    base = {
        "distinct_answers": 5.0,
        "truncated_share": 0.0,
        "contrast_share": 0.8,
        "offered_reward": -0.5,
        "reward": -0.5,
        "steps": 2,
        "grad_norm_max": 0.3,
    }
    settings = make_config({})
    assert diagnose([base], settings) == []
    assert "copies" in diagnose([{**base, "distinct_answers": 1.0}], settings)[0]
    assert "cut at 64 tokens" in diagnose([{**base, "truncated_share": 0.9}], settings)[0]
    assert "flat" in diagnose([{**base, "contrast_share": 0.0, "offered_reward": 0.0}], settings)[0]
    assert "gradient is exactly 0" in diagnose([{**base, "grad_norm_max": 0.0}], settings)[0]
    flat = [{**base, "offered_reward": -0.5 + 0.01 * (i % 2), "reward": -0.5 + 0.02 * i} for i in range(20)]
    assert "does not rise" in diagnose(flat, settings)[0]
    # clips that were learnt drop out of the retained groups, whose reward then falls while that of all answers rises
    assert diagnose([{**base, "offered_reward": -0.5 + 0.02 * i, "reward": -0.5} for i in range(20)], settings) == []
    falls = diagnose([{**base, "offered_reward": -0.5 - 0.02 * i} for i in range(20)], settings)
    assert len(falls) == 1 and "the reward falls: try a lower lr" in falls[0]
    right = diagnose([{**base, "distinct_answers": 1.0, "contrast_share": 0.0, "right_share": 1.0}], settings)
    assert len(right) == 1 and "100% of the answers are right" in right[0]  # copies are as it should be
    assert diagnose([], settings) == ["no update was taken"]


def test_config_is_written_once_and_names_the_run(tmp_path: Path) -> None:
    toy.run(tmp_path / "r", toy.config(updates=4))
    body = json.loads((tmp_path / "r" / "config.json").read_text())
    assert body["config"]["updates"] == 4
    assert body["exposure"]["answers"] == 4 * 4 * 6
    assert set(body["identity"]) == {"settings", "training pool", "seed model", "reward", "prompts"}


def target(clip: Clip) -> tuple[int, ...]:
    return (*(int(w[1:]) for w in (clip.text or "").split()), toy.STOP)


def test_supervised_arm_takes_the_same_steps_on_the_same_number_of_clips(tmp_path: Path) -> None:
    plain, _ = toy.run(tmp_path / "rl")
    result, _ = toy.run(tmp_path / "sft", toy.config(method="sft"), targets=target)
    rl, sft = (final_view(tmp_path / name / "metrics.jsonl") for name in ("rl", "sft"))
    assert sum(r["steps"] for r in sft) == 24
    assert all(r["steps"] == 2 for r in rl if r["retained"] > 1)
    assert sft[-1]["loss"] < sft[0]["loss"] / 2
    assert result.reason == "finished"
    assert not result.gspo_claimed
    assert result.offered == 12 * 4
    assert sft[0]["reward"] is sft[0]["ratio_mean"] is sft[0]["entropy"] is None
    assert result.frozen_sha256 == plain.frozen_sha256
    with pytest.raises(UsageError, match="targets="):
        toy.run(tmp_path / "no", toy.config(method="sft"))


def test_supervised_arm_resumes_to_the_bit(tmp_path: Path) -> None:
    settings = toy.config(method="sft")
    plain, _ = toy.run(tmp_path / "plain", settings, targets=target)
    calls = iter(range(10**6))
    with pytest.raises(Interrupted):
        toy.run(tmp_path / "r", settings, targets=target, should_stop=lambda: next(calls) > 9)
    assert toy.run(tmp_path / "r", settings, targets=target)[0].trained_sha256 == plain.trained_sha256
