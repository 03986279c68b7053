import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import UsageError
from tools.train.estimator import advantages, frontier_weight, nemo_rl, nemo_rl_moments

PARITY = Path(os.environ.get("REHEAR_SHARED_PARITY", Path(__file__).resolve().parents[4] / "shared" / "parity"))


def parity(name: str) -> dict:
    path = PARITY / name
    if not path.is_file():
        pytest.skip(f"parity vectors are not at {path}: set REHEAR_SHARED_PARITY to run this test")
    return json.loads(path.read_text())


def test_skill_parity_to_1e_9() -> None:
    groups = parity("skill_estimator.json")["groups"]
    assert len(groups) == 21
    for group in groups:
        got = advantages(group["rewards"], "skill").values
        np.testing.assert_allclose(got, group["advantage"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["leave_one_out", "group_mean"])
def test_nemo_rl_parity_to_1e_6(mode: str) -> None:
    """The vectors are printed to seven decimals, so half a unit of the last one is allowed beside 1e-6 relative."""
    for case in parity("nemo_rl_vectors.json")["estimator"]:
        loo = mode == "leave_one_out"
        moments = [nemo_rl_moments(np.array(g), leave_one_out=loo) for g in case["rewards"]]
        values = [nemo_rl(np.array(g), leave_one_out=loo) for g in case["rewards"]]
        for got, key in (
            (np.concatenate([m[0] for m in moments]), "baseline"),
            (np.concatenate([m[1] for m in moments]), "std"),
            (np.concatenate(values), "advantage"),
        ):
            np.testing.assert_allclose(got, case[mode][key], rtol=1e-6, atol=6e-8)


def test_nemo_rl_by_name_equals_the_leave_one_out_vectors_where_there_is_contrast() -> None:
    for case in parity("nemo_rl_vectors.json")["estimator"]:
        got = [a for g in case["rewards"] for a in advantages(g, "nemo_rl").values]
        np.testing.assert_allclose(got, case["leave_one_out"]["advantage"], rtol=1e-6, atol=6e-8)


@pytest.mark.parametrize(
    ("estimator", "rewards", "expected"),
    [
        ("skill", [1, 0.5, 0, 0], [1.741, 0.348, -1.044, -1.044]),  # the table at the head of the field cases
        ("skill", [1, 0, 0, 0], [2.0, -2 / 3, -2 / 3, -2 / 3]),
        ("group_mean", [1, 0, 0, 0], [1.5, -0.5, -0.5, -0.5]),
        ("group_mean", [1, 1, 1, 0], [0.5, 0.5, 0.5, -1.5]),
        ("group_mean", [0.9, 0.2], [math.sqrt(0.5), -math.sqrt(0.5)]),
        ("nemo_rl", [1, 0, 0, 0], [1.0, -0.57735, -0.57735, -0.57735]),
        ("nemo_rl", [0.9, 0.2], [0.7, -0.7]),
    ],
)
def test_hand_computed(estimator: str, rewards: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(advantages(rewards, estimator).values, expected, atol=1e-3)


@pytest.mark.parametrize("estimator", ["skill", "nemo_rl", "group_mean"])
@pytest.mark.parametrize(
    "rewards", [[1, 1, 1, 1], [0.3] * 12, [0.7] * 8, [1 - 2 / 3, 1 / 3, 1 - 2 / 3, 1 / 3], [-0.1, -0.1 + 9e-7]]
)
def test_no_contrast_is_exactly_no_advantage(estimator: str, rewards: list[float]) -> None:
    got = advantages(rewards, estimator)
    assert got.values == (0.0,) * len(rewards)
    assert got.reason == "no_contrast"
    assert not any(got.used)


@pytest.mark.parametrize("estimator", ["skill", "nemo_rl", "group_mean"])
def test_a_nearly_constant_group_does_not_blow_up(estimator: str) -> None:
    got = advantages([0.4, 0.4, 0.4, 0.4001], estimator)
    assert got.trains
    assert max(map(abs, got.values)) <= 0.0101


def test_the_lone_outlier_explosion_of_float32_moments_is_held() -> None:
    """NeMo-RL's own float32 formula gives a lone outlier advantages in the thousands for non-dyadic rewards."""
    worst_raw, worst_held = 0.0, 0.0
    for k in range(1, 100):
        rewards = [k / 100] * 7 + [1.0]
        worst_raw = max(worst_raw, float(np.abs(nemo_rl(np.array(rewards), std_floor=0.0)).max()))
        worst_held = max(worst_held, max(map(abs, advantages(rewards, "nemo_rl").values)))
    assert worst_raw > 100
    assert worst_held <= 3


def test_unscorable_answers_are_dropped_by_position_and_counted() -> None:
    got = advantages([1, 0, float("nan"), 0], "group_mean")
    assert got.dropped == (2,)
    assert got.used == (True, True, False, True)
    np.testing.assert_allclose(got.values, [1.1547, -0.57735, 0.0, -0.57735], atol=1e-4)
    lonely = advantages([1, float("nan"), None, float("inf")], "skill")
    assert lonely.reason == "too_few_scored"
    assert lonely.values == (0.0, 0.0, 0.0, 0.0)
    assert lonely.dropped == (1, 2, 3)


def test_two_clips_with_one_prompt_stay_two_groups() -> None:
    """F39: an all-right and an all-wrong clip give no advantage at all, whatever they share."""
    assert [advantages(r, "skill").values for r in ([0, 0, 0, 0], [1, 1, 1, 1])] == [(0.0,) * 4] * 2


def test_unknown_estimator_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown estimator"):
        advantages([0, 1], "mean")  # type: ignore[arg-type]


# rewards on a grid of a thousandth: error rates are ratios of counts, not arbitrary doubles
rewards_strategy = st.lists(st.integers(-2000, 1000).map(lambda k: k / 1000), min_size=2, max_size=24)


@given(rewards_strategy, st.sampled_from(["skill", "nemo_rl", "group_mean"]))
def test_laws(rewards: list[float], estimator: str) -> None:
    """Finite; bounded; the order of the rewards is kept; a better answer never gets a smaller advantage."""
    got = advantages(rewards, estimator).values
    assert np.all(np.isfinite(got))
    assert max(map(abs, got)) < 3 * math.sqrt(len(rewards)) + 4 or estimator == "nemo_rl"
    if estimator != "nemo_rl":
        order = np.argsort(rewards, kind="stable")
        assert np.all(np.diff(np.array(got)[order]) >= -1e-9)
        assert abs(sum(got)) < 1e-6


@given(rewards_strategy, st.integers(-3000, 3000).map(lambda k: k / 1000))
def test_a_shift_of_all_rewards_changes_nothing(rewards: list[float], shift: float) -> None:
    np.testing.assert_allclose(
        advantages(rewards, "skill").values, advantages([r + shift for r in rewards], "skill").values, atol=1e-4
    )


def test_frontier_groups_count_most() -> None:
    """By hand: weight 1 at half, exp(-4 ln 2) = 1/16 at none and all; missing rewards do not count (seed 004)."""
    assert frontier_weight([-0.1, -0.9], 4.0, -0.5) == 1.0
    assert frontier_weight([-0.9, -0.8, None], 4.0, -0.5) == pytest.approx(1 / 16)
    assert frontier_weight([0.0, -0.5], 4.0, -0.5) == pytest.approx(1 / 16)
    assert frontier_weight([0.0, -0.9, -0.9, -0.9], 1.0, -0.5) == pytest.approx(
        math.exp(-(0.25 * math.log(0.5) + 0.75 * math.log(1.5)))
    )
    assert frontier_weight([0.0, -0.9], 0.0, -0.5) == frontier_weight([], 4.0, -0.5) == 1.0
