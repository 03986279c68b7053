"""Slices, code switching, numbers, effects of rules, confusions, keywords, worst rows."""

from __future__ import annotations

import pytest

from tests.tools.score.systems import two_systems
from tools.errors import UsageError
from tools.rows import ScoredRow
from tools.score import score_by, score_rows
from tools.score.confusions import confusions, entity_score, keyword_score, worst_rows
from tools.score.effects import compare_under, rule_effects, score_under, style_gain
from tools.score.slices import (
    by_domain,
    duration_slice,
    empty_and_loud,
    has_number,
    score_numbers,
    switch_errors,
    switch_slice,
)
from tools.text import profile

BASIC = profile("basic")


def row(key: str, ref: str, hyp: str, **more: object) -> ScoredRow:
    return ScoredRow(id=key, ref=ref, hyp=hyp, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "name"), [(0.0, ""), (0.5, "00-02 s"), (2.0, "02-05 s"), (29.9, "20-30 s"), (61.0, "30+ s")]
)
def test_duration_slices(seconds: float, name: str) -> None:
    assert duration_slice(row("a", "x", "x", duration_s=seconds)) == name


def test_slices_by_domain() -> None:
    rows = [row("a", "x", "x"), row("b", "x", "y")]
    assert {k: s.value for k, s in score_by(rows, by_domain({"a": "calls"}), BASIC).items()} == {"": 1.0, "calls": 0.0}


MIXED = [
    row("1", "我们 去 coffee shop 吧", "我们 区 coffee shop 吧", lang="zh-en"),
    row("2", "我们去", "我们去", lang="zh-en"),
    row("3", "see you", "see me", lang="zh-en"),
    row("4", "我 要 sandwich", "我 要 三明治", lang="zh-en"),
]


def test_code_switch_slices() -> None:
    by = score_by(MIXED, switch_slice(BASIC), BASIC)
    assert {k: s.rows for k, s in by.items()} == {"mixed": 2, "mono Han": 1, "mono Latin": 1}


def test_errors_at_switches_and_on_the_embedded_language() -> None:
    got = switch_errors(MIXED, BASIC)
    assert (got.rows, got.embedded_units, got.embedded_errors) == (2, 3, 1)
    assert (got.switch_units, got.switch_errors) == (6, 2)
    assert got.embedded_rate == pytest.approx(1 / 3)


def test_numbers_are_shown_with_and_without() -> None:
    """F22: where a language has no number rules."""
    rows = [
        row("1", "Es kostet 30 Euro", "es kostet dreißig euro"),
        row("2", "guten Tag", "guten Tag"),
        row("3", "二十三", "23"),
    ]
    assert [has_number(r) for r in rows] == [True, False, True]
    assert {k: s.rows for k, s in score_numbers(rows, BASIC).items()} == {"with numbers": 2, "without numbers": 1}
    assert not has_number(row("x", "this one", "wait a second"))


def test_hallucination_on_silence() -> None:
    rows = [row("1", "", "thank you", duration_s=1800.0), row("2", "", "", duration_s=1800.0), row("3", "a", "a")]
    assert empty_and_loud(rows, BASIC) == {"clips": 2, "answered": 1, "units": 2, "units_per_hour": 2.0}


def test_rule_effects_add_up() -> None:
    rows = [
        row("1", "Hello, World!", "hello world"),
        row("2", "thirty six can’t colour", "36 can not color"),
        row("3", "A b", "a c"),
    ]
    effects = rule_effects(rows, profile("english"))
    assert effects[0].rule == "raw" and effects[0].change is None
    assert effects[-1].rate == score_rows(rows, profile("english")).value
    assert sum(e.change for e in effects[1:]) == pytest.approx(effects[-1].rate - effects[0].rate)
    moved = {e.rule for e in effects[1:] if e.change}
    assert {"case", "punctuation", "contractions", "spelling", "numbers"} <= moved
    assert "accents" not in moved


def test_compounds_are_an_effect_too() -> None:
    effects = rule_effects([row("1", "every day we meet", "everyday we meet")], profile("basic+compounds"))
    assert (effects[-1].rule, effects[-1].rate, effects[-1].change) == ("compounds", 0.0, -0.5)


def test_two_profiles_and_a_gain_of_style() -> None:
    a, b = two_systems(12, error_a=0.2, error_b=0.2)
    louder = [row(r.id, r.ref.title(), r.hyp.title(), speaker=r.speaker) for r in b]
    plain = [row(r.id, r.ref.title(), r.hyp, speaker=r.speaker) for r in a]
    assert set(score_under(plain, [BASIC, profile("exact")])) == {"basic", "exact"}
    both = compare_under(plain, louder, [BASIC, profile("exact")])
    assert both["exact"].verdict == "better" and both["basic"].verdict == "not_shown"
    assert isinstance(style_gain(both), bool)
    assert not style_gain(compare_under(a, a, [BASIC, profile("exact")]))


def test_confusions() -> None:
    rows = [row(str(i), "the cat sat", "the car sat down") for i in range(3)] + [row("x", "the cat", "cat")]
    found = confusions(rows, BASIC, top=2)
    assert found["substitutions"] == [("cat", "car", 3)]
    assert found["insertions"] == [(None, "down", 3)]
    assert found["deletions"] == [("the", None, 1)]


def test_keywords() -> None:
    rows = [row("1", "take Ibuprofen 400 mg twice", "take ibuprofen twice"), row("2", "hello", "ibuprofen hello")]
    score = keyword_score(rows, BASIC, ["ibuprofen", "400 mg"])
    assert (score.said, score.missed, score.invented) == (2, 1, 1)
    assert (score.rate, score.recall) == (1.0, 0.5)
    assert score.by_keyword["400 mg"] == (1, 1, 0)
    assert keyword_score(rows, BASIC, ["absent"]).rate is None
    with pytest.raises(UsageError, match="empty under"):
        keyword_score(rows, BASIC, ["..."])
    assert entity_score(iter(rows), BASIC, {"drug": ["ibuprofen"], "dose": ["400 mg"]})["dose"].missed == 1


def test_worst_rows() -> None:
    rows = [row("b", "a b c", ""), row("a", "a b c", "x y z"), row("c", "a", "a"), row("d", "a", "b")]
    worst = worst_rows(rows, BASIC, top=3, audio={"a": "/data/a.wav"})
    assert [(w.id, w.errors, w.audio) for w in worst] == [("a", 3, "/data/a.wav"), ("b", 3, None), ("d", 1, None)]
