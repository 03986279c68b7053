"""Rewards: values, order, what is refused at the start (F27, F43)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.errors import UsageError
from tools.reward import NAMES, make_reward, on_grid, reward_from
from tools.reward.transcripts import repeats
from tools.text import profile

BASIC = profile("basic")
CER = make_reward("cer", BASIC)


def test_the_default_is_minus_cer_capped_at_two() -> None:
    assert CER("Hello, world!", "hello world") == 0.0
    assert CER("hello worlt", "hello world") == pytest.approx(-1 / 11)
    assert CER("", "hello world") == -1.0
    assert CER("thank you " * 20, "thank you") == -2.0
    assert make_reward("wer", BASIC)("a x c", "a b c") == pytest.approx(-1 / 3)


def test_zero_is_plain_zero() -> None:
    assert math.copysign(1.0, CER("a", "a") or 0.0) == 1.0


def test_silence_and_unscorable_references() -> None:
    """Nothing said: silence is right, an invention is worst. Only punctuation said: no fair reward, so none."""
    assert CER("", "") == 0.0
    assert CER("thank you for watching", "") == -2.0
    assert CER("anything", "...") is None
    assert CER("...", "") == 0.0


def test_f27_one_loop_does_not_drown_the_group() -> None:
    wer = make_reward("wer", BASIC)
    rewards = [wer(hyp, "thank you", None) for hyp in ("thank you", "thank", "", "thank you " * 20)]
    assert rewards == [0.0, -0.5, -1.0, -2.0]


def test_f43_labels() -> None:
    label = make_reward("label_exact", BASIC)
    assert [label(hyp, "yes") for hyp in ("", "yes", " Yes. ", "no", "yes and no", "not yes")] == [0, 1, 1, 0, 0, 0]
    assert label("yes", "") is None


def test_the_row_language_reaches_the_profile() -> None:
    assert make_reward("cer", profile("english"))("36", "thirty six", "en") == 0.0
    assert make_reward("cer", profile("english"))("36", "thirty six", "de") < 0.0
    assert make_reward("wer", BASIC)("我们区", "我们去", "zh") == pytest.approx(-1 / 3)


def test_blend() -> None:
    blend = make_reward("blend", BASIC, weights={"cer": 3, "wer": 1})
    assert blend.options["weights"] == {"cer": 0.75, "wer": 0.25}
    c, w = CER("a x c", "a b c"), make_reward("wer", BASIC)("a x c", "a b c")
    assert blend("a x c", "a b c") == pytest.approx(0.75 * c + 0.25 * w)


def test_blend_of_all_parts() -> None:
    """By hand: CER 7/5, WER 2/2, two units too many of two, two that only repeat."""
    blend = make_reward("blend", BASIC, weights={"cer": 1, "wer": 1, "length": 1, "repetition": 1})
    assert blend("a b a b", "a b") == pytest.approx(-(4 / 3 + 1.0 + 1.0 + 1.0) / 4)
    assert blend("no no", "no no") == 0.0, "a reference that repeats itself is no fault of the answer"
    assert blend("", "a b") == pytest.approx(-(1 + 1) / 4)
    assert blend("a b " * 40, "a b") == -2.0
    assert blend("anything", "...") is None


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from("ab cat dog harbour zebra".split()), min_size=1, max_size=8),
    st.lists(st.sampled_from("ab cat dog harbour zebra".split()), min_size=1, max_size=14),
    st.sampled_from(
        [
            {"name": "blend", "weights": {"cer": 0.5, "length": 0.5}},
            {"name": "blend", "weights": {"wer": 0.05, "length": 0.5, "repetition": 0.45}},
            {"name": "keyword", "keywords": {"harbour": 3, "cat": 1}, "weight": 4},
        ]
    ),
)
def test_silence_is_never_paid_above_an_answer_with_fewer_errors(ref: list[str], hyp: list[str], spec: dict) -> None:
    reward, said, heard = reward_from(spec, BASIC), " ".join(ref), " ".join(hyp)
    if max(-(CER(heard, said) or 0.0), -(make_reward("wer", BASIC)(heard, said) or 0.0)) < 1:
        assert reward(heard, said) > reward("", said)


@pytest.mark.parametrize(
    ("units", "count"),
    [("a b c", 0), ("a a", 1), ("a a a", 2), ("a b a b", 2), ("a b c a b c d", 3), ("a b b a", 1), ("", 0)],
)
def test_repeats(units: str, count: int) -> None:
    assert repeats(units.split()) == count


def test_keyword_weights() -> None:
    """An entity that counts three times what another does costs three times as much when it is missed."""
    reward = make_reward("keyword", BASIC, keywords={"paracetamol": 3.0, "tea": 1.0}, keyword_weight=1.0)
    ref = "paracetamol with tea"
    by_cer = [CER(h, ref) for h in ("paracetamox with tea", "paracetamol with tex")]
    lost = [reward(h, ref) - c for h, c in zip(("paracetamox with tea", "paracetamol with tex"), by_cer)]
    assert lost == pytest.approx([-0.75, -0.25])


@pytest.mark.parametrize("weight", [0.5, 5.0, 100.0])
def test_silence_is_never_the_way_round_a_keyword(weight: float) -> None:
    """An invented keyword costs, but not so much that saying nothing at all is paid better."""
    reward = make_reward("keyword", BASIC, keywords=["crates"], keyword_weight=weight)
    for ref in ("thank you", "thank you for six crates"):
        worse, better = reward(f"{ref} crates", ref), reward(ref, ref)
        assert reward("", ref) < worse < better
    assert reward("thank yoo crates", "thank you") < reward("thank you crates", "thank you")


def test_keyword() -> None:
    reward = make_reward("keyword", BASIC, keywords=["ibuprofen", "400 mg"], keyword_weight=1.0)
    ref = "take ibuprofen 400 mg"
    assert reward(ref, ref) == 0.0
    assert reward("take iboprofen 400 mg", ref) < reward("rake ibuprofen 400 mg", ref) < 0.0
    assert reward("hello ibuprofen", "hello") < reward("hello friendships", "hello")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cre", {}, "no reward 'cre': choose one of cer"),
        ("cer", {"weights": {"cer": 1}}, "takes neither"),
        ("wer", {"keywords": ["a"]}, "takes neither"),
        ("blend", {"weights": {"cer": 0, "wer": 0}}, "sum to zero"),
        ("blend", {"weights": {}}, None),
        ("blend", {"weights": {"cer": -1, "wer": 2}}, "finite number from 0"),
        ("blend", {"weights": {"cer": float("nan")}}, "finite number from 0"),
        ("blend", {"weights": {"bleu": 1}}, "no part 'bleu'"),
        ("blend", {"weights": {"length": 1.0}}, "neither cer nor wer"),
        ("keyword", {"keywords": {"a": float("inf")}}, "weight of the keyword 'a'"),
        ("keyword", {"keywords": {"a": 0}}, "is 0: remove it"),
        ("keyword", {}, "needs a list of keywords"),
        ("keyword", {"keywords": "ibuprofen"}, "needs a list of keywords"),
        ("keyword", {"keywords": ["..."]}, "is empty under"),
        ("keyword", {"keywords": ["a"], "keyword_weight": -1}, "keyword weight"),
    ],
)
def test_mistakes_are_refused_at_the_start(name: str, options: dict, message: str | None) -> None:
    if message is None:
        assert make_reward(name, BASIC, **options).options["weights"] == {"cer": 0.5, "wer": 0.5}
        return
    with pytest.raises(UsageError, match=message):
        make_reward(name, BASIC, **options)


@pytest.mark.parametrize(
    "spec",
    [
        "wer",
        {"name": "cer"},
        {"name": "blend", "weights": {"cer": 3, "wer": 1, "length": 0.7}},
        {"name": "blend", "weights": {"cer": 0.1, "wer": 0.2, "repetition": 0.3}},
        {"name": "keyword", "keywords": ["two crates", "harbour"], "weight": 0.3},
        {"name": "keyword", "keywords": {"harbour": 2, "crates": 1}},
    ],
)
def test_a_reward_as_a_brief_names_it_is_made_again_from_what_the_contract_keeps(spec) -> None:
    reward = reward_from(spec, BASIC)
    again = reward_from({"name": reward.name, **reward.options}, BASIC)
    assert again.digest == reward.digest and again.options == reward.options
    assert again("too crate", "two crates") == reward("too crate", "two crates")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wrr", "no reward 'wrr'"),
        ({}, "no reward None"),
        ({"name": ["wer"]}, "no reward"),
        ({"name": "wer", "weights": {"cer": 1}}, "'wer' does not know 'weights': it takes nothing beside its name"),
        ({"name": "blend", "weight": 1}, "'blend' does not know 'weight': it takes weights"),
        ({"name": "blend", "weights": [1, 2]}, "needs its weights as a mapping"),
        ({"name": "keyword", "keywords": "harbour"}, "needs its keywords as a list"),
        ({"name": "keyword", "keywords": [3]}, "keyword 3 is no text"),
        ({"name": "keyword", "keywords": {"harbour": "much"}}, "weight of the keyword 'harbour' is 'much'"),
        ({"name": "keyword"}, "needs a list of keywords"),
    ],
)
def test_a_reward_that_cannot_be_is_refused_in_one_sentence(spec, message) -> None:
    with pytest.raises(UsageError, match=message):
        reward_from(spec, BASIC)


def test_digests_tell_rewards_apart() -> None:
    made = [make_reward(name, BASIC, **({"keywords": ["a"]} if name == "keyword" else {})) for name in NAMES]
    made += [make_reward("cer", profile("english")), make_reward("blend", BASIC, weights={"cer": 1.0})]
    assert len({reward.digest for reward in made}) == len(made)
    assert make_reward("cer", BASIC).digest == CER.digest


def test_grid() -> None:
    assert on_grid(-1 / 3) * 512 == round(-512 / 3)
    assert on_grid(0.0) == 0.0


word = st.sampled_from(["six", "crates", "office", "the", "न", "我", "x"])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    ref=st.lists(word, min_size=1, max_size=8),
    hyp=st.lists(word, max_size=30),
    name=st.sampled_from(["cer", "wer", "blend"]),
)
def test_bounds(ref: list[str], hyp: list[str], name: str) -> None:
    reward = make_reward(name, BASIC)
    value = reward(" ".join(hyp), " ".join(ref))
    assert value is not None and -2.0 <= value <= 0.0
    assert (value == 0.0) == (hyp == ref)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(ref=st.lists(word, min_size=2, max_size=8), at=st.integers(0, 7), more=st.integers(1, 4))
def test_more_of_the_same_errors_never_pays(ref: list[str], at: int, more: int) -> None:
    """exact > one error > many errors, the many holding the one."""
    at %= len(ref)
    one = [*ref[:at], "zzz", *ref[at + 1 :]]
    many = [*one, *["quagga"] * more]
    for name in ("cer", "wer", "blend"):
        reward = make_reward(name, BASIC)
        exact, first, second = (reward(" ".join(h), " ".join(ref)) for h in (ref, one, many))
        assert exact > first >= second and (first > second or first == -2.0)
