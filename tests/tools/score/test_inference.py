"""Sign flips, MAPSSWE, non-inferiority, Holm, the noise floor."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest

from tests.tools.score.systems import two_systems
from tools.errors import UsageError
from tools.rows import ScoredRow
from tools.score.inference import (
    errors_at,
    holm,
    mapsswe,
    noise_floor,
    non_inferior,
    segment_differences,
    sign_flip_p,
)
from tools.text import profile

BASIC = profile("basic")


def test_sign_flips_are_exhaustive_for_few_blocks() -> None:
    difference = np.array([3.0, -1.0, 4.0, 2.0, 0.0])
    sums = [abs(sum(s * d for s, d in zip(signs, difference))) for signs in product([1, -1], repeat=5)]
    assert sign_flip_p(difference, 100, 0) == np.mean(np.array(sums) >= 8)


def test_sampled_sign_flips_come_near_the_exact_ones() -> None:
    difference = np.array([3.0, -1, 4, 2, 0, 1, 1, -2, 5, 1, 2, -3, 1, 1])  # fourteen blocks: sampled
    signs = 1 - 2 * ((np.arange(2**14)[:, None] >> np.arange(14)) & 1)
    exact = np.mean(np.abs(signs @ difference) >= difference.sum())
    assert sign_flip_p(difference, 20_000, 5) == pytest.approx(exact, abs=0.01)


def test_sign_flips_hold_their_level() -> None:
    rng = np.random.default_rng(0)
    p = [sign_flip_p(rng.normal(size=12), 500, 0) for _ in range(400)]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.03)


def test_errors_by_position() -> None:
    assert errors_at("a b c".split(), "a x c d".split()) == [0, 1, 0, 1]
    assert errors_at("a b".split(), []) == [1, 1, 0]


def test_segments_end_at_two_words_that_both_have_right() -> None:
    a = [1, 0, 1, 0, 0, 0, 2, 0]
    b = [0, 0, 0, 0, 0, 1, 0, 0]
    assert segment_differences(a, b, buffer=2) == [-2, -1]
    assert segment_differences([0, 0], [0, 0], buffer=2) == []


def test_mapsswe_follows_its_formula() -> None:
    a, b = two_systems(10)
    got = mapsswe(a, b, BASIC)
    assert got.segments > 100 and got.mean_difference < 0 and got.z < -3 and got.p < 0.01
    back = mapsswe(b, a, BASIC)
    assert (back.z, back.p) == pytest.approx((-got.z, got.p))
    assert mapsswe(a, a, BASIC).p is None


def test_non_inferiority() -> None:
    a, b = two_systems(20, error_a=0.2, error_b=0.2)
    wide, narrow = non_inferior(a, b, BASIC, margin=0.1), non_inferior(a, b, BASIC, margin=0.0)
    assert wide.within and wide.shown and wide.delta < wide.upper < 0.1
    assert not narrow.shown
    few = non_inferior(*two_systems(5), BASIC, margin=0.01)
    assert few.within and few.shown is None and few.upper is None
    with pytest.raises(UsageError, match="margin"):
        non_inferior(a, b, BASIC, margin=-0.01)
    with pytest.raises(UsageError, match="margin"):
        non_inferior(a, b, BASIC, margin=float("nan"))


def test_holm() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.5, "b": 0.9}) == pytest.approx({"a": 1.0, "b": 1.0})
    assert holm({}) == {}


def test_noise_floor() -> None:
    a, _ = two_systems(3)
    again = [dataclasses.replace(a[0], hyp="zebra " + a[0].hyp), *a[1:]]
    floor = noise_floor(a, again, BASIC)
    assert floor.differing == 1 and floor.rows == len(a)
    assert floor.delta == pytest.approx(1 / (8 * len(a)))
    cased = [dataclasses.replace(row, hyp=row.hyp.upper()) for row in a]
    assert noise_floor(a, cased, BASIC).differing == 0
    assert isinstance(a[0], ScoredRow)
