import math

import numpy as np
import pytest
import torch

from tests.tools.train.test_estimator import parity
from tools.errors import UsageError
from tools.train.loss import clipped_objective, cross_entropy, grpo, gspo, k3, length_mask, sequence_log_ratio


def vectors() -> list[tuple[dict, dict]]:
    return [(case, result) for case in parity("nemo_rl_vectors.json")["loss"] for result in case["results"]]


def run(case: dict, settings: dict, rows: slice = slice(None), total: float | None = None):
    """The loss of one parity case in float64; returns (PolicyLoss, new log-probs with gradient)."""
    t = lambda key: torch.tensor(case[key], dtype=torch.float64)[rows]  # noqa: E731
    new = t("new_logprobs").requires_grad_()
    loss = gspo if settings["sequence_level_importance_ratios"] else grpo
    out = loss(
        new,
        t("old_logprobs"),
        t("token_mask"),
        t("advantages"),
        t("sample_mask"),
        clip_low=settings.get("ratio_clip_min", 0.2),
        clip_high=settings.get("ratio_clip_max", 0.2),
        kl_weight=settings["reference_policy_kl_penalty"],
        ref=t("ref_logprobs"),
        total=total,
    )
    out.loss.backward()
    return out, new


def test_values_and_gradients_equal_nemo_rl_to_1e_6() -> None:
    """The vectors come from float32 and are printed to eight decimals; ours run in float64 on the same inputs."""
    cases = vectors()
    assert len(cases) >= 40
    for case, result in cases:
        out, new = run(case, result["settings"])
        np.testing.assert_allclose(out.loss.item(), result["loss"], rtol=1e-6, atol=3e-7, err_msg=result["name"])
        np.testing.assert_allclose(new.grad.numpy(), result["grad"], rtol=1e-6, atol=2e-7, err_msg=result["name"])


def test_chunks_add_up_to_the_minibatch() -> None:
    for case, result in vectors():
        whole, new = run(case, result["settings"])
        parts = [run(case, result["settings"], slice(i, i + 1), whole.total) for i in range(4)]
        assert sum(p.loss.item() for p, _ in parts) == pytest.approx(whole.loss.item(), abs=1e-12)
        np.testing.assert_allclose(torch.cat([n.grad for _, n in parts]), new.grad, atol=1e-12)


def test_ratio_is_exactly_one_before_the_first_step() -> None:
    new = torch.randn(3, 5, requires_grad=True)
    mask = length_mask([5, 2, 1])
    out = gspo(new, new.detach(), mask, torch.tensor([1.0, -1.0, 0.5]), torch.ones(3), clip_low=3e-4, clip_high=4e-4)
    assert torch.equal(out.ratios, torch.ones(3))
    assert not out.clipped.any()
    out.loss.backward()
    np.testing.assert_allclose(new.grad[0], torch.full((5,), -1 / 3 / 5), atol=1e-7)


@pytest.mark.parametrize(
    ("advantage", "ratio", "value", "clipped"),
    [
        (1.0, 1.5, -1.28, True),  # a good answer already pushed up: no further
        (1.0, 0.5, -0.5, False),  # a good answer that fell: full gradient
        (-1.0, 1.5, 1.5, False),  # a bad answer that rose: full gradient
        (-1.0, 0.5, 0.8, True),  # a bad answer already pushed down: no further
        (1.0, 1.25, -1.25, False),  # asymmetric: 1.25 is inside 1 + 0.28
        (-1.0, 0.85, 0.85, False),
    ],
)
def test_clip_by_hand(advantage: float, ratio: float, value: float, clipped: bool) -> None:
    got, held = clipped_objective(torch.tensor([ratio]), torch.tensor([advantage]), 0.2, 0.28)
    assert float(got) == pytest.approx(value, abs=1e-6)
    assert bool(held) is clipped


def test_length_normalised_ratio_by_hand() -> None:
    new, old = (
        torch.tensor([[-1.0, -2.0, 9.0], [-1.0, 9.0, 9.0]]),
        torch.tensor([[-1.5, -2.1, -9.0], [-0.5, -9.0, -9.0]]),
    )
    got = sequence_log_ratio(new, old, length_mask([2, 1], 3))
    np.testing.assert_allclose(got, [0.3, -0.5], atol=1e-6)


def test_k3_by_hand_and_without_overflow() -> None:
    """F44: log-ratio 0, ln 2, -ln 2, 20, 89."""
    new = torch.zeros(5, requires_grad=True)
    ref = torch.tensor([0.0, math.log(2), -math.log(2), 20.0, 89.0])
    got = k3(new, ref)
    np.testing.assert_allclose(got[:3].detach(), [0.0, 1 - math.log(2), math.log(2) - 0.5], atol=1e-6)
    assert torch.all(got.isfinite())
    got.sum().backward()
    assert torch.all(new.grad.isfinite())
    half = torch.zeros(1, dtype=torch.float16, requires_grad=True)
    out = k3(half, torch.tensor([12.0], dtype=torch.float16))
    out.sum().backward()
    assert out.isfinite().all()
    assert half.grad.isfinite().all()


def test_masks_come_from_lengths_so_the_stop_token_trains() -> None:
    """F37: tokens [5, 6, 2] and [7, 2] with pad = eos = 2."""
    assert length_mask([3, 2]).tolist() == [[1, 1, 1], [1, 1, 0]]
    logprobs = torch.full((2, 3), -1.0, requires_grad=True)
    cross_entropy(logprobs, length_mask([3, 2])).backward()
    np.testing.assert_allclose(logprobs.grad, [[-0.2, -0.2, -0.2], [-0.2, -0.2, 0.0]], atol=1e-7)


def test_a_dropped_answer_gives_nothing_even_if_it_is_not_finite() -> None:
    new = torch.tensor([[-1.0, -1.0], [float("nan"), -1.0]], requires_grad=True)
    for loss in (gspo, grpo):
        new.grad = None
        out = loss(
            new,
            torch.tensor([[-1.0, -1.0], [-1.0, -1.0]]),
            torch.ones(2, 2),
            torch.tensor([1.0, 0.0]),
            torch.tensor([1.0, 0.0]),
            clip_low=0.2,
            clip_high=0.2,
        )
        assert out.loss.item() == pytest.approx(-1.0)
        out.loss.backward()
        assert torch.all(new.grad[0] == (-0.5))


def test_cross_entropy_chunks_add_up() -> None:
    logprobs, mask = -torch.rand(4, 6, dtype=torch.float64), length_mask([6, 1, 3, 2]).double()
    total = float(mask.sum())
    parts = sum(float(cross_entropy(logprobs[i : i + 1], mask[i : i + 1], total=total)) for i in range(4))
    assert parts == pytest.approx(float(cross_entropy(logprobs, mask)), abs=1e-12)
    assert float(cross_entropy(logprobs, mask)) == pytest.approx(-float((logprobs * mask).sum()) / 12)


def test_penalty_without_an_anchor_is_refused() -> None:
    x = torch.zeros(1, 1)
    with pytest.raises(UsageError, match="anchor"):
        gspo(x, x, torch.ones(1, 1), torch.ones(1), torch.ones(1), clip_low=0.2, clip_high=0.2, kl_weight=0.1)
