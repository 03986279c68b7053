"""Headroom figures, repairs, doubts and classes: each against a count made by hand, and laws that always hold."""

from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.mine import mining_stats, verdict
from tools.mine.classes import label_report, read_classes
from tools.mine.doubt import doubts, medoid
from tools.mine.headroom import expected_best, headroom
from tools.mine.repairs import error_places, repairs
from tools.rows import Answer, Clip, Group, ScoredRow
from tools.score.labels import label_set
from tools.score.transcripts import score_pairs
from tools.text import profile

BASIC = profile("basic")


def errors_of(clips):
    def errors(clip_id, text):
        score = score_pairs([clips[clip_id].text], [text], BASIC)
        return score.errors, score.reference_units

    return errors


def group(clip_id, greedy, *texts, ref=""):
    answers = tuple(Answer(clip_id, t, index=i, seed=i, temperature=0.8) for i, t in enumerate(texts))
    rewards = tuple(-float(t != ref) for t in texts)
    return Group(clip_id, answers, rewards, Answer(clip_id, greedy), -float(greedy != ref))


def clips_of(**refs):
    return {k: Clip(k, Path(f"{k}.wav"), ref, speaker=f"s{k[-1]}") for k, ref in refs.items()}


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.data())
def test_expected_best_is_the_mean_over_all_choices(counts, data):
    k = data.draw(st.integers(1, len(counts)))
    assert expected_best(counts, k) == pytest.approx(fmean(min(c) for c in combinations(counts, k)))


def test_headroom_is_greedy_less_oracle_and_its_interval_goes_by_speaker():
    refs = {f"c{i}": "move six crates now" for i in range(12)}
    clips = {k: Clip(k, Path(f"{k}.wav"), ref, speaker=f"s{i}") for i, (k, ref) in enumerate(refs.items())}
    groups = [group(k, "move sick crates", "move six crates now", "move sick crates", ref=refs[k]) for k in refs]
    stats = mining_stats(groups, {}, errors_of(clips))
    h = headroom(clips, groups, stats, BASIC, errors_of(clips))
    assert (h["greedy"], h["oracle"], h["headroom"], h["relative"]) == (0.5, 0.0, 0.5, 1.0)
    assert h["mean_sample"] == 0.25 and h["blocks"] == 12 and h["block_by"] == "speaker"
    assert h["interval"] == pytest.approx([0.5, 0.5])
    assert [(b["k"], b["rate"]) for b in h["best_of"]] == [(1, 0.25), (2, 0.0)]
    few = {k: clips[k] for k in list(clips)[:5]}
    h = headroom(few, groups[:5], mining_stats(groups[:5], {}, errors_of(few)), BASIC, errors_of(few))
    assert h["interval"] is None and h["blocks"] == 5, "under ten speakers no interval is claimed"


def test_the_best_of_more_answers_says_on_how_many_clips_it_stands():
    from tools.report.headroom import _figures as lines

    clips = clips_of(c1="one two three", c2="four five six")
    groups = [group("c1", "one", "one", "one two three", ref="one two three"), group("c2", "", *["x"] * 4, ref="y")]
    found = headroom(clips, groups, mining_stats(groups, {}, errors_of(clips)), BASIC, errors_of(clips))
    text = "\n".join(lines({**found, "metric": "wer"}, {"given": "sampled"}))
    assert "2: 0.5000  4: 1.0000 (on 1 clips)" in text and "greedy       0.8333 wer" in text


def test_repairs_are_told_by_kind():
    def rows(ref, greedy, best):
        return ScoredRow("x", ref, greedy), ScoredRow("x", ref, best)

    held = [
        rows("move the crates to dock nine", "move the crates too dock", "move the crates to dock nine"),
        rows("the blue gate", "the elephant gate gate", "the elephant gate"),
        rows("pick up 16 boxes", "pick up 60 boxes", "pick up 16 boxes"),
        rows("every day we meet", "everyday we meet", "every day we meet"),
        rows("call me", "", "call me"),
        rows("thank you", "thank you " * 20, "thank you"),
    ]
    found = {r.kind: (r.errors, r.repaired, r.anew) for r in repairs(held, BASIC)}
    assert found["sounds_alike"][:2] == (1, 1) and found["missing"][:2] == (1, 1)
    assert found["other_word"] == (1, 0, 0) and found["extra"] == (1, 1, 0)
    assert found["number"] == (1, 1, 0) and found["empty"] == (2, 2, 0)
    assert found["split_or_joined"][1] == found["split_or_joined"][0] > 0 and found["loop"] == (38, 38, 0)


@given(
    st.lists(st.sampled_from("ab abc b c d".split()), max_size=8),
    st.lists(st.sampled_from("ab abc b c d".split()), max_size=8),
)
def test_every_error_has_one_place(ref, hyp):
    from tools.score.align import count

    assert len(error_places(ref, hyp)) == count(ref, hyp).total


def test_references_that_are_another_clips_or_nobodys_are_doubted():
    refs = {
        "c1": "the north warehouse is closed today", "c2": "seven people waited near the old bridge",
        "c3": "send the invoice to our london office", "c4": "an apple a day keeps doctors away",
    }  # fmt: skip
    said = {k: [v, v[:-1], v + " sir", v[1:]] for k, v in refs.items()}
    groups = [group(k, v[0], *v) for k, v in said.items()]
    assert doubts(groups, refs).clips == () and doubts(groups, refs).agreeing == 4
    swapped = {**refs, "c1": refs["c2"], "c2": refs["c1"], "c4": "quite other words stand here instead"}
    found = doubts(groups, swapped)
    assert found.clips == ("c1", "c2", "c4") and found.fits == {"c1": "c2", "c2": "c1"}
    loose = [group("c1", "x", "green tea", "winter olympics", "seventeen", "mum")]
    assert doubts(loose, refs).agreeing == 0, "answers that do not agree say nothing about a reference"
    assert medoid(["abc", "abd", "xyz"])[0] in (0, 1)


def test_short_references_of_a_script_that_writes_syllables_are_doubted_too():
    refs = {"c1": "请把箱子搬走", "c2": "今天天气很好", "c3": "오늘은 날씨가", "c4": "车站"}
    said = {"c1": "老桥旁边有人", "c2": "今天天气真好", "c3": "내일 만나요 우리", "c4": "河流"}
    groups = [group(k, v, v, v, v[:-1], v, ref=refs[k]) for k, v in said.items()]
    found = doubts(groups, refs)
    assert found.clips == ("c1", "c3") and found.agreeing == 3, "two characters are too few to speak"


def test_wrong_references_end_in_that_verdict_even_when_rewards_differ():
    refs = {f"c{i}": f"sentence number {i} about crates and gates of hall {i}" for i in range(12)}
    groups, wrong = [], {}
    for i, (k, v) in enumerate(refs.items()):
        wrong[k] = "a wholly different statement concerning weather in spring"
        g = group(k, v, v, v + " x", v[:-2], v[1:])
        groups.append(Group(k, g.answers, (0.0, -0.1 * i, -0.2, -0.3), g.greedy, -0.4))
    clips = {k: Clip(k, Path("a"), t) for k, t in wrong.items()}
    found = doubts(groups, wrong)
    stats = mining_stats(groups, {}, errors_of(clips))
    assert verdict(stats, groups, doubtful=found.clips, agreeing=found.agreeing).reason == "references_doubtful"
    assert verdict(stats, groups).reason == "all_wrong", "contrast of samples that share nothing with the reference"


def test_label_mining_tells_strict_from_parsed_and_names_classes_without_contrast():
    labels = label_set(BASIC, ["yes", "no", "stop", "go"])
    clips = clips_of(a1="yes", a2="no", a3="no", a4="stop")
    groups = [
        group("a1", "no", "yes", "no", "the answer is yes", ref="yes"),
        group("a2", "no", "no", "no", "no", ref="no"),
        group("a3", "yes", "yes", "yes", "yes", ref="no"),
        group("a4", "go", "go", "maybe", "yes or no", ref="stop"),
    ]
    report = label_report(groups, clips, labels)
    assert report["uncovered"] == ["go"] and set(report["without_contrast"]) == {"no", "stop"}
    assert report["never_right"] == ["stop"] and report["format"] == pytest.approx(1 / 12)
    strict = {r.label: r for r in read_classes(groups, clips, labels)}
    parsed = {r.label: r for r in read_classes(groups, clips, labels, "parsed")}
    assert (strict["yes"].right, parsed["yes"].right) == (1, 2)
    assert strict["no"].greedy_right == 1 and strict["no"].contrast == 0 and strict["stop"].invalid == 2
    assert report["strict"]["greedy"] == 0.25 and report["strict"]["oracle"] == 0.5
