"""One uniform number a draw: the right token for every number, and the right distribution over many."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.decode.draw import draw
from tools.decode.local import answer_seed, uniforms


def plain_draw(logits: np.ndarray, uniform: float, temperature: float) -> tuple[int, float]:
    """The textbook's inverse: first token whose cumulative probability exceeds the number, in double precision."""
    z = logits.astype(np.float64) / temperature
    p = np.exp(z - z.max())
    p /= p.sum()
    token = int(np.searchsorted(np.cumsum(p), uniform, side="right"))
    return token, float(np.log(p[token]))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 700),
    st.integers(0, 2**32),
    st.floats(0.0, 1.0, exclude_max=True),
    st.sampled_from([0.2, 0.8, 1.0, 2.0]),
)
def test_it_inverts_the_cumulative_distribution(width: int, seed: int, uniform: float, temperature: float) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((1, width)).astype(np.float32) * 5
    logits[0, rng.random(width) < 0.3] = -np.inf
    logits[0, rng.integers(width)] = 1.0
    tokens, values = draw(
        torch.from_numpy(logits.copy()), torch.tensor([0]), torch.tensor([uniform]).double(), temperature
    )
    token, value = plain_draw(logits[0], uniform, temperature)
    assert np.isfinite(logits[0, int(tokens)])
    if int(tokens) != token:  # the number lies on the border between two tokens, within float32's rounding
        z = logits[0].astype(np.float64) / temperature
        cumulative = np.cumsum(np.exp(z - z.max()) / np.exp(z - z.max()).sum())
        low, high = sorted((int(tokens), token))
        assert abs(cumulative[low] - uniform) < 1e-5 and cumulative[high - 1] - cumulative[low] < 1e-5
    else:
        subnormal = value < -87  # float32 has few digits left there
        assert float(values) == pytest.approx(value, abs=0.5 if subnormal else 1e-5)


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0 - 2**-53])
def test_the_ends_of_the_range_give_tokens_that_may_be_drawn(uniform: float) -> None:
    logits = torch.full((1, 300), -torch.inf)
    logits[0, [17, 130, 210]] = torch.tensor([0.0, 0.0, -80.0])
    tokens, values = draw(logits, torch.tensor([0]), torch.tensor([uniform]).double(), 1.0)
    assert int(tokens) in (17, 130, 210) and torch.isfinite(values).all()


def test_frequencies_follow_the_softmax() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 1000) * 2
    want = torch.softmax(logits[0] / 0.8, -1)
    count = 200_000
    points = torch.from_numpy(uniforms(5, count))
    tokens, _ = draw(logits, torch.zeros(count, dtype=torch.long), points, 0.8)
    seen = torch.bincount(tokens, minlength=1000).double()
    expected = want.double() * count
    common = expected > 10
    chi = ((seen - expected) ** 2 / expected)[common].sum()
    free = int(common.sum())
    assert abs(float(chi) - free) < 5 * (2 * free) ** 0.5


def test_rows_that_share_logits_draw_on_their_own() -> None:
    torch.manual_seed(0)
    logits, points = torch.randn(2, 500), torch.rand(6).double()
    source = torch.tensor([0, 0, 0, 1, 1, 0])
    together, shared = draw(logits.clone(), source, points, 0.7)
    apart = [draw(logits[s : s + 1].clone(), torch.tensor([0]), points[i : i + 1], 0.7) for i, s in enumerate(source)]
    assert together.tolist() == [int(tokens) for tokens, _ in apart]
    torch.testing.assert_close(shared, torch.cat([values for _, values in apart]))


def test_an_answers_stream_is_its_own() -> None:
    assert (uniforms(3, 10) == uniforms(3, 20)[:10]).all()
    names = {answer_seed(base, clip, index) for base in (0, 1) for clip in ("a", "b", "a\n1") for index in range(8)}
    assert len(names) == 48 and all(0 <= seed < 2**63 for seed in names)
    assert answer_seed(0, "a", 0) == answer_seed(0, "a", 0) == 6152854164166434909
