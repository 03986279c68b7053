from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import UsageError
from tools.groups import first_n_with_contrast, group_stats, has_contrast, set_stats, spread, why_unused
from tools.rows import Answer, Group


def group(clip: str, rewards: list[float | None], texts: list[str] | None = None, **more: object) -> Group:
    texts = texts or [f"answer {i}" for i in range(len(rewards))]
    finishes = more.pop("finishes", ["stop"] * len(rewards))
    answers = tuple(Answer(clip, t, finish=f, index=i) for i, (t, f) in enumerate(zip(texts, finishes)))
    return Group(clip, answers, tuple(rewards), **more)


@pytest.mark.parametrize(
    ("rewards", "contrast", "why"),
    [
        ([1, 1, 1, 1], False, "no_contrast"),
        ([1 - 2 / 3, 1 / 3, 1 - 2 / 3, 1 / 3], False, "no_contrast"),
        ([0.3] * 12, False, "no_contrast"),
        ([0, 1e-6], False, "no_contrast"),
        ([0, 2e-6], True, ""),
        ([1, None, float("nan")], False, "too_few_scored"),
        ([1, None, 0.0], True, ""),
        ([], False, "too_few_scored"),
    ],
)
def test_contrast(rewards: list, contrast: bool, why: str) -> None:
    assert has_contrast(rewards) is contrast
    assert why_unused(rewards) == why


def counting(groups: list[Group], drawn: list[str]) -> Iterator[Group]:
    for g in groups:
        drawn.append(g.clip_id)
        yield g


def test_first_n_stops_sampling_at_the_nth() -> None:
    groups = [group(f"c{i}", [0.0, float(i % 2)]) for i in range(10)]
    drawn: list[str] = []
    kept = first_n_with_contrast(counting(groups, drawn), 3, 6)
    assert [g.clip_id for g in kept.groups] == ["c1", "c3", "c5"]
    assert drawn == list(kept.offered) == [f"c{i}" for i in range(6)]
    assert kept.refills == 3
    assert kept.short == 0
    assert kept.unused == {"c0": "no_contrast", "c2": "no_contrast", "c4": "no_contrast"}


def test_a_data_set_that_is_all_right_ends_and_is_not_a_loop() -> None:
    endless = (group(f"c{i}", [1.0, 1.0]) for i in range(10**9))
    kept = first_n_with_contrast(endless, 4, 8)
    assert kept.groups == ()
    assert len(kept.offered) == 8
    assert kept.short == 4


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 6), st.integers(1, 3))
def test_the_same_first_n_as_from_sampling_everything(flags: list[bool], n: int, factor: int) -> None:
    groups = [group(f"c{i}", [0.0, 1.0 if f else 0.0]) for i, f in enumerate(flags)]
    kept = first_n_with_contrast(iter(groups), n, n * factor)
    everything = [g for g in groups[: n * factor] if has_contrast(g.rewards)][:n]
    assert list(kept.groups) == everything
    assert len(kept.offered) <= n * factor
    assert all(g.rewards[0] == 0.0 and g.clip_id in kept.offered for g in kept.groups)


def test_rewards_stay_with_their_answers() -> None:
    kept = first_n_with_contrast(iter([group("a", [0.1, 0.2]), group("b", [0.5, 0.5]), group("c", [0.3, 0.4])]), 2, 4)
    assert {g.clip_id: g.rewards for g in kept.groups} == {"a": (0.1, 0.2), "c": (0.3, 0.4)}


def test_misuse_is_named() -> None:
    with pytest.raises(UsageError, match="clip a was offered twice"):
        first_n_with_contrast(iter([group("a", [0, 1]), group("a", [0, 1])]), 2, 4)
    with pytest.raises(UsageError, match="1 answers but 2 rewards"):
        first_n_with_contrast(iter([Group("a", (Answer("a", "x"),), (0.0, 1.0))]), 1, 2)
    with pytest.raises(UsageError, match="max_offer"):
        first_n_with_contrast(iter([]), 3, 2)


WORDS = {"a": "one two three four", "b": "five six"}


def errors(clip: str, text: str) -> tuple[float, float]:
    ref, hyp = WORDS[clip].split(), text.split()
    wrong = sum(x != y for x, y in zip(ref, hyp)) + abs(len(ref) - len(hyp))
    return wrong, len(ref)


def test_statistics_by_hand() -> None:
    a = group(
        "a",
        [-0.5, 0.0, -1.0, None],
        ["one two", "one two three four", "", "one two three four five"],
        finishes=["stop", "stop", "stop", "length"],
        greedy=Answer("a", "one two three"),
        greedy_reward=-0.25,
    )
    b = group("b", [0.0, 0.0], ["five six", "five six"], greedy=Answer("b", "five six"), greedy_reward=0.0)
    ga, gb = group_stats(a, errors), group_stats(b, errors)
    assert (ga.answers, ga.valid, ga.truncated, ga.empty, ga.distinct, ga.better) == (4, 3, 1, 1, 4, 1)
    assert (ga.spread, ga.contrast, ga.units) == (1.0, True, 4)
    assert (ga.greedy_errors, ga.best_errors, ga.mean_errors) == (1, 0, (2 + 0 + 4 + 1) / 4)
    assert (gb.unused, gb.distinct, gb.better) == ("no_contrast", 1, 0)
    both = set_stats([ga, gb])
    assert both.clips == 2
    assert both.answers == 6
    assert both.valid_share == pytest.approx(5 / 6)
    assert both.truncated_share == pytest.approx(1 / 6)
    assert both.contrast_share == both.better_share == both.one_distinct_share == 0.5
    assert both.greedy == pytest.approx(1 / 6)
    assert both.oracle == 0.0
    assert both.mean_sample == pytest.approx(1.75 / 6)
    assert both.reward_mean == pytest.approx((-0.5 + 0.0) / 2)
    assert set(both.to_json()) >= {"clips", "contrast_share", "oracle"}


def test_without_references_and_without_groups() -> None:
    alone = group_stats(group("a", [0.0, 1.0]))
    assert alone.units is alone.best_errors is alone.better is None
    empty = set_stats([])
    assert empty.clips == 0
    assert empty.contrast_share == 0.0
    assert empty.oracle is None
    assert set_stats([alone]).better_share is None
    assert spread([None, 3.0]) == 0.0
