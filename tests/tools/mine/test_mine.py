import math
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import CheckError, UsageError
from tools.mine import (
    Thresholds,
    check_answers,
    doubtful_references,
    merge_groups,
    mining_stats,
    pick_subset,
    select_contrast,
    strata_to_deepen,
    strata_to_extend,
    training_pool,
    verdict,
)
from tools.mine.contrast import loose, quirk_only
from tools.mine.strata import wilson
from tools.mine.subset import allot, by_keys, duration_bucket, useful_keys
from tools.mine.verdict import REASONS, copies_share
from tools.rows import Answer, Clip, Group

REF = "one two three four"


def clip(i: int, **more: object) -> Clip:
    return Clip(f"c{i:03d}", Path("a.wav"), REF, **{"duration_s": 3.0, "lang": "en", **more})


def errors(clip_id: str, text: str) -> tuple[float, float]:
    ref, hyp = REF.split(), text.lower().replace(",", "").split()
    return sum(x != y for x, y in zip(ref, hyp)) + abs(len(ref) - len(hyp)), len(ref)


def group(name: str, texts: list[str], greedy: str = "one two three", **more: object) -> Group:
    logprobs = more.get("logprobs")
    answers = tuple(
        Answer(name, t, index=i, seed=i, temperature=0.8, logprobs=logprobs, finish=more.get("finish", "stop"))
        for i, t in enumerate(texts)
    )
    rewards = more.get("rewards") or tuple(-errors(name, t)[0] / 4 for t in texts)
    return Group(name, answers, tuple(rewards), Answer(name, greedy), -errors(name, greedy)[0] / 4)


WRONG = "five six seven eight"
MIXED = ["one two", REF, "one two three", WRONG]


def test_subset_is_deterministic_stratified_and_independent_of_input_order() -> None:
    clips = [clip(i, speaker=f"s{i % 3}", duration_s=1.0 + i % 7) for i in range(90)]
    shuffled = random.Random(1).sample(clips, len(clips))
    a, b = pick_subset(clips, 30, 5, ("speaker",)), pick_subset(shuffled, 30, 5, ("speaker",))
    assert [c.id for c in a.clips] == [c.id for c in b.clips]
    assert [c.id for c in a.clips] != [c.id for c in pick_subset(clips, 30, 6, ("speaker",)).clips]
    assert [(s.name, s.pool, s.picked) for s in a.counts] == [(f"speaker=s{i}", 30, 10) for i in range(3)]
    assert a.strata["c004"] == "speaker=s1"
    assert [c.id for c in a.clips] != sorted(c.id for c in a.clips)  # shuffled
    assert a.to_json()["strata"][0] == {"name": "speaker=s0", "pool": 30, "picked": 10}


def test_rare_strata_are_not_lost() -> None:
    clips = [clip(i, extras={"domain": "yard" if i < 97 else f"rare{i}"}) for i in range(100)]
    got = pick_subset(clips, 12, 0, ("domain",))
    assert all(s.picked >= 1 for s in got.counts)
    assert sum(s.picked for s in got.counts) == len(got.clips) == 12


def test_keys_are_chosen_from_what_the_clips_have() -> None:
    clips = [clip(i, speaker=f"s{i}", lang="en" if i % 2 else "de", duration_s=3.0 + 4 * (i % 2)) for i in range(40)]
    assert useful_keys(clips, 16) == ("lang", "duration")  # forty speakers are too many strata for sixteen picks
    assert useful_keys([clip(1), clip(2)], 16) == ()
    assert pick_subset([clip(1), clip(2)], 5).strata == {"c001": "all", "c002": "all"}
    assert by_keys(("lang", "duration"))(clip(0)) == "lang=en duration=2-5 s"
    assert [duration_bucket(x) for x in (None, 0.5, 2.0, 25.0)] == ["unknown", "0-2 s", "2-5 s", "20 s and more"]


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 40), min_size=1, max_size=9), st.data())
def test_allotment_laws(pools: dict[str, int], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 60))
    got = allot(pools, size)
    assert sum(got.values()) == min(size, sum(pools.values()))
    assert all(0 <= got[k] <= pools[k] for k in pools)
    assert size < len(pools) or all(got[k] >= 1 for k in pools)


def test_bad_subsets_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="c001 comes twice"):
        pick_subset([clip(1), clip(1)], 2)
    with pytest.raises(UsageError, match="cannot pick 0 of 1"):
        pick_subset([clip(1)], 0)
    with pytest.raises(UsageError, match="cannot pick 3 of 0"):
        pick_subset([], 3)


def mined() -> tuple[list[Group], dict[str, str]]:
    """Three strata: one rich, one half flat but wrong, one all right."""
    rich = [group(f"r{i}", MIXED) for i in range(10)]
    poor = [group(f"p{i}", MIXED if i % 2 else [WRONG] * 4, greedy=WRONG) for i in range(10)]
    easy = [group(f"e{i}", [REF] * 4, greedy=REF) for i in range(5)]
    return rich + poor + easy, {g.clip_id: g.clip_id[0] for g in rich + poor + easy}


def test_statistics_by_stratum_and_what_to_extend() -> None:
    groups, strata = mined()
    stats = mining_stats(groups, strata, errors)
    assert {s.name: s.stats.contrast_share for s in stats.strata} == {"e": 0.0, "p": 0.5, "r": 1.0}
    assert stats.overall.contrast_share == 15 / 25
    assert {s.name: s.stats.greedy for s in stats.strata} == {"e": 0.0, "p": 1.0, "r": 0.25}
    out = stats.to_json()
    assert out["clips"] == 25
    assert out["strata"][1]["name"] == "p"
    extend = strata_to_extend(stats, 16)
    assert [e.stratum for e in extend] == ["p"]  # rich is certain, easy has nothing to gain
    assert extend[0].clips == ("p0", "p2", "p4", "p6", "p8")
    assert extend[0].extra == 12
    assert "5 of 10" in extend[0].why


def test_wilson_by_hand() -> None:
    low, high = wilson(5, 10)
    assert (round(low, 3), round(high, 3)) == (0.237, 0.763)  # the textbook interval of 5 in 10
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 8)[1] == pytest.approx(0.324, abs=1e-3)  # eight equal answers are weak evidence


def test_merge_adds_answers_once() -> None:
    first, again = group("a", [REF, WRONG]), group("a", [REF, WRONG])
    more = Group("a", (Answer("a", "x", index=2), Answer("a", "y", index=3)), (0.0, 0.1))
    both = merge_groups(first, more)
    assert [a.index for a in both.answers] == [0, 1, 2, 3]
    assert both.rewards[2:] == (0.0, 0.1)
    assert both.greedy == first.greedy
    with pytest.raises(UsageError, match="would count twice"):
        merge_groups(first, again)
    with pytest.raises(UsageError, match="clip a with one of clip b"):
        merge_groups(first, group("b", [REF]))
    with pytest.raises(UsageError, match="two groups"):
        mining_stats([first, again], {}, errors)


def test_selection_drops_quirks_and_doubtful_references_and_keeps_small_gaps() -> None:
    quirk = group("q", ["One, two three four!", "one two three four"], rewards=[-0.25, 0.0])
    assert quirk_only(quirk)
    assert not quirk_only(group("m", MIXED))
    groups, strata = mined()
    chosen = select_contrast([*groups, quirk], {**strata, "q": "r"}, doubtful=["r0"])
    assert chosen.rejected["q"] == "normalisation_only"
    assert chosen.rejected["r0"] == "reference_doubtful"
    assert chosen.rejected["e0"] == chosen.rejected["p0"] == "no_contrast"
    assert len(chosen.selected) == 14
    gaps = [group(f"g{i:02d}", ["x", "y"], rewards=[0.0, (i + 1) / 100]) for i in range(40)]
    picked = select_contrast(gaps, {}, size=8).selected
    assert len(picked) == 8
    ranks = sorted(int(p[1:]) for p in picked)
    assert ranks[0] < 5 < 34 < ranks[-1]
    assert max(b - a for a, b in pairwise(ranks)) <= 6  # spread over the whole range of gaps


def test_a_wrong_vowel_sign_is_not_a_quirk() -> None:
    assert loose("कि") != loose("की")
    assert loose("One, two!") == loose("ONE TWO") == "onetwo"


def test_every_stratum_keeps_its_share() -> None:
    groups = [group(f"{s}{i}", MIXED) for s, n in (("a", 30), ("b", 6), ("c", 4)) for i in range(n)]
    chosen = select_contrast(groups, {g.clip_id: g.clip_id[0] for g in groups}, size=20)
    assert chosen.by_stratum == {"a": 15, "b": 3, "c": 2}


def test_training_pool_takes_unmined_clips_of_strata_with_contrast() -> None:
    clips = [clip(i, speaker="good" if i < 20 else "flat" if i < 40 else "unseen") for i in range(60)]
    strata = {c.id: str(c.speaker) for c in clips}
    groups = [group(f"c{i:03d}", MIXED if i < 8 else [WRONG] * 4) for i in (*range(10), *range(20, 25))]
    stats = mining_stats(groups, strata, errors)
    pool = training_pool(clips, select_contrast(groups, strata), stats, strata)
    assert [c.id for c in pool.clips] == [f"c{i:03d}" for i in (*range(8), *range(10, 20))]
    assert pool.excluded["c008"] == "no_contrast"
    assert pool.excluded["c030"] == "stratum_without_contrast"
    assert pool.excluded["c050"] == "stratum_not_mined"


def test_doubtful_references() -> None:
    agree = group("d", [WRONG, WRONG.title(), WRONG, WRONG])
    nearly = group("n", ["one two three five"] * 4)
    silent = group("s", [""] * 4)
    few = group("f", [WRONG] * 3)
    assert doubtful_references([agree, nearly, silent, few, group("m", MIXED)], errors) == ["d"]


def judge(groups: list[Group], **more: object):
    stats = mining_stats(groups, {}, errors)
    return verdict(stats, groups, doubtful=doubtful_references(groups, errors), **more)


def varied_but_wrong(i: int) -> Group:
    return group(f"w{i}", ["five", "six", "seven", "eight"], rewards=[-1.0] * 4, greedy="nine")


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([group(f"m{i}", MIXED) for i in range(10)], "enough_contrast"),
        ([group(f"m{i}", [REF] * 4, greedy=REF) for i in range(10)], "all_right"),
        ([varied_but_wrong(i) for i in range(10)], "all_wrong"),
        ([group(f"m{i}", ["one two three"] * 4) for i in range(10)], "sampler_not_sampling"),
        (
            [group(f"m{i}", MIXED) for i in range(6)] + [group(f"d{i}", [WRONG] * 4) for i in range(4)],
            "references_doubtful",
        ),
        ([group(f"m{i}", MIXED) for i in range(3)] + [varied_but_wrong(i) for i in range(4)], "too_little_contrast"),
        # some clips gain a word and others lose two: in all, the best samples are no better than greedy
        (
            [group(f"m{i}", MIXED, greedy="one two three") for i in range(4)]
            + [group(f"n{i}", ["one two", "one"] * 2, greedy=REF) for i in range(6)],
            "no_headroom",
        ),
        # contrast, but greedy is right everywhere: nothing can pull the model up
        ([group(f"m{i}", ["one two", "one", WRONG, "two"], greedy=REF) for i in range(10)], "all_right"),
    ],
)
def test_verdicts(groups: list[Group], reason: str) -> None:
    got = judge(groups)
    assert got.reason == reason
    assert got.learn is (reason == "enough_contrast")
    assert got.advice
    assert "clips have contrast" in got.text()
    assert got.to_json()["evidence"]["clips"] == len(groups)


def test_every_reason_is_reachable_and_unlearnable_ones_name_the_way_out() -> None:
    assert len(REASONS) == 8
    assert judge([varied_but_wrong(0)], sampled=False).reason == "not_sampled"
    assert "SFT" in judge([varied_but_wrong(i) for i in range(10)]).advice


def test_headroom_is_measured() -> None:
    evidence = judge([group(f"m{i}", MIXED) for i in range(10)]).evidence
    assert evidence["greedy"] == 0.25
    assert evidence["oracle"] == 0.0
    assert evidence["headroom"] == 0.25


def test_thresholds_are_recorded_and_obeyed() -> None:
    groups = [group(f"m{i}", MIXED) for i in range(10)]
    got = judge(groups, thresholds=Thresholds(min_groups=11))
    assert got.reason == "too_little_contrast"
    assert got.evidence["thresholds"]["min_groups"] == 11
    assert judge(groups, selected=2).reason == "too_little_contrast"


def test_copies_are_judged_by_their_own_probability() -> None:
    """F31: eight equal answers the model was sure of are no fault; eight equal answers of chance 0.1 are."""
    sure = group("a", ["one two three"] * 8, logprobs=(-0.01, -0.01))
    unsure = group("b", ["one two three"] * 8, logprobs=(math.log(0.1), 0.0))
    assert copies_share([sure]) == 0.0
    assert copies_share([unsure]) == copies_share([unsure], right={"b"}) == 1.0
    assert copies_share([group("c", [REF] * 8)], right={"c"}) == 0.0
    easy = [group(f"e{i}", [REF] * 8) for i in range(9)]
    stuck = [group(f"s{i}", ["one two three"] * 8) for i in range(5)]
    told = {g.clip_id for g in easy}
    assert copies_share([*easy, *stuck], right=told) == 1.0, "easy clips do not hide that it does not sample"
    assert copies_share([*easy, *stuck[:2]], right=told) == pytest.approx(2 / 11), "too few others to say so"
    assert copies_share([*easy, *stuck[:4], group("m", MIXED)], right=told) == 0.8


def test_missing_answers_and_repeated_seeds_name_the_clip() -> None:
    check_answers([group("a", MIXED)], 4)
    with pytest.raises(CheckError, match="clip a has 4 of 8"):
        check_answers([group("a", MIXED)], 8)
    same = Group("b", (Answer("b", "x", seed=1), Answer("b", "y", seed=1)), (0.0, 0.1))
    with pytest.raises(CheckError, match="clip b: its 2 answers do not have distinct"):
        check_answers([same], 2)


def _turning(turned, still, second=16):
    """Groups of one stratum: `turned` of them find a better answer between eight and sixteen, `still` do not."""
    before, after = [], []
    for i in range(turned + still):
        flat = [_answered(f"c{i}", k, "bad", -1.0) for k in range(8)]
        lucky = "good" if i < turned else "bad"
        more = [_answered(f"c{i}", k, lucky, 0.0 if i < turned else -1.0) for k in range(8, second)]
        greedy = Answer(f"c{i}", "bad")
        before.append(Group(f"c{i}", tuple(a for a, _ in flat), tuple(r for _, r in flat), greedy, -1.0))
        both = flat + more
        after.append(Group(f"c{i}", tuple(a for a, _ in both), tuple(r for _, r in both), greedy, -1.0))
    return mining_stats(before, {}), mining_stats(after, {})


def _answered(clip, index, text, reward):
    return Answer(clip, text, index=index, seed=index), reward


@pytest.mark.parametrize(
    ("turned", "still", "have", "clips"),
    [
        (4, 4, 0, 4),  # half were turned: two more are expected of the four left
        (4, 4, 20, 0),  # the run has its groups
        (0, 8, 0, 0),  # the second eight did not help
        (1, 8, 0, 0),  # less than one more is expected
    ],
)
def test_thirty_two_samples_only_where_the_expected_yield_justifies_them(turned, still, have, clips):
    before, after = _turning(turned, still)
    found = strata_to_deepen(before, after, have=have, need=20, deepen_to=32)
    assert sum(len(e.clips) for e in found) == clips and all(e.extra == 16 for e in found)
