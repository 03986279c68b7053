"""The reward audit: good rewards pass, the ones that policies learn to game do not."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest

from tools.errors import UsageError
from tools.reward import make_reward
from tools.reward.audit import audit_reward
from tools.reward.make import Reward
from tools.text import names, profile

BASIC = profile("basic")


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("reward", ["cer", "wer", "blend", "keyword", "label_exact"])
def test_every_reward_keeps_the_law_under_every_profile(name: str, reward: str) -> None:
    options = {"keywords": ["crates", "noon"]} if reward == "keyword" else {}
    if reward == "blend":
        options = {"weights": {"cer": 0.4, "wer": 0.3, "length": 0.2, "repetition": 0.1}}
    audit = audit_reward(make_reward(reward, profile(name), **options))
    assert audit.ok, audit.violations


@pytest.mark.parametrize("ref", ["a", "no", "seven", "我们去吧", "नमस्ते दुनिया", "thirty six", "x"])
def test_short_and_foreign_references(ref: str) -> None:
    assert audit_reward(make_reward("cer", BASIC), [ref]).ok


def test_the_table_holds_every_kind() -> None:
    audit = audit_reward(make_reward("cer", profile("english")))
    kinds = {case.kind for case in audit.table}
    assert kinds >= {
        "exact",
        "one error",
        "many errors",
        "wrong mark",
        "other number form",
        "truncation",
        "silence",
        "loop",
        "fluent hallucination",
        "empty reference, silence",
        "empty reference, hallucination",
    }
    by = {
        case.kind: case
        for case in audit.table
        if case.ref == "please move six crates to the office before monday morning"
    }
    assert by["other number form"].reward == 0.0
    assert by["fluent hallucination"].reward <= by["silence"].reward < by["one error"].reward
    labels = audit_reward(make_reward("label_exact", BASIC))
    assert {case.reward for case in labels.table if case.kind == "hedged label"} == {0.0}
    json.dumps(audit.to_json())


def _reward(function: Callable[[str, str, str | None], float | None], kind: str = "transcript") -> Reward:
    base = make_reward("label_exact" if kind == "label" else "cer", BASIC)
    return dataclasses.replace(base, function=function)


def test_rewards_that_can_be_gamed_are_caught() -> None:
    pays_silence = _reward(lambda hyp, ref, lang: 0.5 if not hyp else make_reward("cer", BASIC)(hyp, ref))
    assert any("'silence'" in v for v in audit_reward(pays_silence).violations)
    pays_length = _reward(lambda hyp, ref, lang: len(hyp) / 1000)
    assert any("'loop" in v for v in audit_reward(pays_length).violations)
    flat = _reward(lambda hyp, ref, lang: float(hyp == ref))
    assert any("'many errors'" in v for v in audit_reward(flat).violations)
    absent = _reward(lambda hyp, ref, lang: None)
    assert any("has no reward" in v for v in audit_reward(absent).violations)
    invents = _reward(lambda hyp, ref, lang: 0.0 if not ref else make_reward("cer", BASIC)(hyp, ref))
    assert audit_reward(invents).violations == ("On an empty reference a hallucination is paid as much as silence.",)


@pytest.mark.parametrize(("weight", "ok"), [(0.0, True), (0.5, True), (5.0, False), (100.0, False)])
def test_keywords_are_probed_with_a_reward_s_own(weight: float, ok: bool) -> None:
    """A weight that outweighs the words is refused: a bare keyword would be paid above all but perfect transcripts."""
    reward = make_reward("keyword", profile("english"), keywords={"crates": 2.0, "a": 1.0}, keyword_weight=weight)
    audit = audit_reward(reward)
    assert audit.ok is ok, audit.violations
    assert {"keyword invented", "keyword missed", "keyword alone", "keyword twice"} <= {c.kind for c in audit.table}
    assert ok or all("'keyword alone'" in v for v in audit.violations)
    assert audit_reward(
        make_reward("keyword", profile("exact"), keywords=["COVID-19"])
    ).ok  # as many letters as silence lacks
    additive = lambda hyp, ref, lang=None: -len(set(hyp.split()) ^ set(ref.split())) / 9 - 2 * ("crates" in hyp)  # noqa: E731
    assert any("'silence'" in v for v in audit_reward(dataclasses.replace(reward, function=additive)).violations)


def test_label_rewards_that_can_be_gamed_are_caught() -> None:
    contains = _reward(lambda hyp, ref, lang: float(ref in hyp), "label")
    violations = audit_reward(contains).violations
    assert any("yes and no" in v for v in violations) and any("not yes" in v for v in violations)
    starts = _reward(lambda hyp, ref, lang: float(ref.startswith(hyp.strip().lower())), "label")  # F43: "" starts "yes"
    assert any("''" in v for v in audit_reward(starts).violations)


def test_a_reward_of_mostly_form_breaks_the_law_and_says_where() -> None:
    """Where length outweighs words, silence beats an answer with a few words too many."""

    def mostly_form(hyp: str, ref: str, lang: str | None) -> float:
        wrong = make_reward("wer", BASIC)(hyp, ref, lang) or 0.0
        return 0.1 * wrong - 0.9 * max(0, len(hyp.split()) / len(ref.split() or [""]) - 1)

    audit = audit_reward(_reward(mostly_form))
    assert not audit.ok and any("'silence'" in v and "'run-on'" in v for v in audit.violations)
    text = audit.to_text()
    assert len(text.splitlines()) == len(audit.table) + 2 + len(audit.violations)
    assert "fluent hallucination" in text and "broken: 'silence'" in text


@pytest.mark.parametrize(
    "weights",
    [
        {"cer": 1, "wer": 1, "length": 1, "repetition": 1}, {"cer": 0.5, "length": 0.5}, {"wer": 0.02, "length": 0.98},
        {"cer": 1e-6, "repetition": 1}, {"wer": 0.1, "length": 0.1, "repetition": 0.8},
    ],
)  # fmt: skip
def test_a_blend_keeps_the_law_whatever_its_weights(weights: dict[str, float]) -> None:
    good = audit_reward(make_reward("blend", BASIC, weights=weights))
    assert good.to_text().endswith("the order holds")


def test_a_reference_that_vanishes_is_refused() -> None:
    with pytest.raises(UsageError, match="is empty under"):
        audit_reward(make_reward("cer", BASIC), ["..."])
