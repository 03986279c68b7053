"""Paired comparison: verdicts, blocks, determinism, refusals."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from tests.tools.score.systems import two_systems
from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score import compare_rows, score_rows
from tools.text import profile

BASIC = profile("basic")


def test_a_clear_gain() -> None:
    a, b = two_systems(20)
    c = compare_rows(a, b, BASIC)
    assert c.verdict == "better" and c.blocks == 20 and c.block_by == "speaker" and c.metric == "wer"
    assert c.a == score_rows(a, BASIC).value and c.b == score_rows(b, BASIC).value
    assert c.delta == pytest.approx(c.b - c.a)
    assert c.error_reduction == pytest.approx((c.a - c.b) / c.a)
    assert c.interval[0] < c.error_reduction < c.interval[1] and c.interval[0] > 0
    assert c.delta_interval[0] < c.delta < c.delta_interval[1] < 0
    assert c.permutation_p < 0.001


def test_it_is_the_same_every_time_and_in_any_order() -> None:
    a, b = two_systems(15)
    first = compare_rows(a, b, BASIC)
    assert compare_rows(a[::-1], b[3:] + b[:3], BASIC) == first
    assert compare_rows(a, b, BASIC, seed=1).interval != first.interval


def test_the_other_way_round_is_worse() -> None:
    a, b = two_systems(20)
    c, d = compare_rows(a, b, BASIC), compare_rows(b, a, BASIC)
    assert d.verdict == "worse"
    assert d.delta_interval == pytest.approx(tuple(-x for x in reversed(c.delta_interval)))
    assert d.permutation_p == c.permutation_p


def test_no_gain_is_not_shown() -> None:
    a, b = two_systems(20, error_b=0.3, seed=3)
    assert compare_rows(a, b, BASIC).verdict == "not_shown"
    same = compare_rows(a, a, BASIC)
    assert (same.delta, same.verdict, same.permutation_p) == (0.0, "not_shown", 1.0)


def test_under_ten_blocks_no_claim() -> None:
    """Nine speakers: the difference is shown, the interval and the verdict are not."""
    a, b = two_systems(9)
    c = compare_rows(a, b, BASIC)
    assert c.verdict == "too_few_blocks" and c.interval is None and c.delta_interval is None
    assert c.delta is not None and c.delta < 0 and c.blocks == 9
    assert compare_rows(*two_systems(10), BASIC).verdict == "better"


def test_a_missing_speaker_is_not_one_speaker() -> None:
    a, b = two_systems(12)
    a[0] = dataclasses.replace(a[0], speaker=None)
    c = compare_rows(a, b, BASIC)
    assert (c.block_by, c.blocks) == ("recording", 12)
    without = [[dataclasses.replace(r, speaker="", recording=None) for r in rows] for rows in two_systems(12)]
    assert compare_rows(*without, BASIC).block_by == "id"


def test_the_noise_floor_hides_smaller_gains() -> None:
    a, b = two_systems(20)
    gain = abs(compare_rows(a, b, BASIC).delta)
    assert compare_rows(a, b, BASIC, noise_floor=gain + 1e-9).verdict == "not_shown"
    assert compare_rows(a, b, BASIC, noise_floor=gain / 2).verdict == "better"


def test_cer_can_be_compared() -> None:
    a, b = two_systems(12)
    c = compare_rows(a, b, BASIC, metric="cer")
    assert c.metric == "cer" and c.a == score_rows(a, BASIC).cer


def test_a_perfect_seed_has_no_percentage() -> None:
    a, b = two_systems(12, error_a=0.0, error_b=0.1)
    c = compare_rows(a, b, BASIC)
    assert (c.error_reduction, c.interval, c.verdict) == (None, None, "worse")
    assert c.errors_a == 0 and c.errors_b > 0 and c.delta_interval[0] > 0


def test_a_nearly_perfect_seed_keeps_its_counts() -> None:
    """One error in all: some resamples hold none, so the reduction has no finite interval; delta has."""
    a, b = two_systems(12, error_a=0.0, error_b=0.0)
    a[0] = dataclasses.replace(a[0], hyp=a[0].hyp + " zebra")
    b[50] = dataclasses.replace(b[50], hyp=b[50].hyp + " zebra")
    c = compare_rows(a, b, BASIC)
    assert c.interval is None and c.delta_interval is not None
    assert (c.errors_a, c.errors_b, c.verdict) == (1, 1, "not_shown")


def test_only_empty_references() -> None:
    rows = [ScoredRow(id=f"{i:02}", ref="", hyp="x", speaker=f"s{i}") for i in range(12)]
    c = compare_rows(rows, rows, BASIC)
    assert c.delta is None and c.a is None and c.verdict == "not_shown"


def test_other_ids_or_references_are_refused() -> None:
    a, b = two_systems(10)
    with pytest.raises(CheckError, match="'s00-000' is in the first system and not in the second"):
        compare_rows(a, b[1:], BASIC)
    with pytest.raises(CheckError, match="two different references"):
        compare_rows(a, [dataclasses.replace(b[0], ref="edited"), *b[1:]], BASIC)
    with pytest.raises(CheckError, match="comes twice"):
        compare_rows(a, [*b, b[0]], BASIC)
    with pytest.raises(CheckError, match="no rows"):
        compare_rows([], [], BASIC)
    with pytest.raises(UsageError, match="cannot be made by 'room'"):
        compare_rows(a, b, BASIC, by="room")
    with pytest.raises(UsageError, match="metric 'bleu'"):
        compare_rows(a, b, BASIC, metric="bleu")


def test_json_form() -> None:
    out = json.loads(json.dumps(compare_rows(*two_systems(12), BASIC).to_json()))
    assert out["interval_of"] == "error_reduction" and len(out["interval"]) == 2
    assert set(out["other_intervals"]) == {"percentile", "bca"}


def test_the_sign_of_both_intervals_agrees() -> None:
    for seed in range(12):
        a, b = two_systems(14, clips=4, error_b=0.26, seed=seed)
        c = compare_rows(a, b, BASIC, resamples=2_000)
        assert (c.interval[0] > 0) == (c.delta_interval[1] < 0)
        assert np.isfinite(c.interval).all()
