import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.report.results import ENDINGS, HOSTILE, make
from tools.report import words
from tools.report.caveats import caveats
from tools.report.schema import parse_result


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.41, "41 %"), (0.0417, "4.2 %"), (0.0004, "0.04 %"), (0, "0 %"), (-0.062, "-6.2 %"), (-19.0, "-1900 %"),
     (0.0996, "10 %"), (None, "n/a")],
)  # fmt: skip
def test_percent(value, text):
    assert words.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.3776, "0.378"), (0.0088, "0.0088"), (19.0, "19.000"), (0.0, "0.000"), (None, "n/a")]
)
def test_rates_are_ratios_and_never_clipped(value, text):
    assert words.rate(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0042, "+0.004"), (-0.027, "-0.027"), (0.0, "0.000"), (-1e-9, "0.000")])
def test_signed(value, text):
    assert words.signed(value).rstrip("0") == text.rstrip("0")


@given(st.text())
def test_plain_text_holds_nothing_that_moves_a_cursor_or_a_line(text):
    assert all(ch.isprintable() or ch in "\u200c\u200d" for ch in words.plain(text))


@given(st.floats(min_value=-50, max_value=1, allow_nan=False))
def test_a_change_is_never_rounded_to_nothing(value):
    assert words.percent(value).rstrip(" %").lstrip("-").strip("0.") or abs(value) < 0.000005


def test_headline_of_a_win_says_counts_rates_reduction_and_interval():
    text = words.headline(parse_result(make("candidate_wins")))
    assert "word errors went from 494 to 203 of 1,024 (WER 0.482 to 0.198)" in text
    assert "59 % fewer word errors; 95 % interval by 16 speakers: 57 % to 70 %" in text


def test_nearly_perfect_baselines_get_counts_and_no_percentage():
    result = parse_result(make("near_perfect"))
    assert words.near_perfect(result.row("test", "seed"), "wer")
    said = " ".join([words.headline(result), words.reduction(result), words.interval(result)])
    assert "9 to 4" in said and "change in WER" in said
    assert "% fewer" not in said and "56 %" not in said


def test_too_few_blocks_claims_no_gain():
    text = words.headline(parse_result(make("too_few_blocks")))
    assert "no interval: 1 speaker only, at least 10 are needed. No gain is claimed." in text


def test_a_reused_benchmark_is_not_called_sealed():
    doc = make("candidate_wins")
    doc["test_open"]["reused"] = True
    result = parse_result(doc)
    assert "reused benchmark" in words.headline(result) and "sealed" not in words.headline(result)
    assert "reused benchmark" in caveats(result)[0]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_has_a_headline(ending):
    text = words.headline(parse_result(make(ending)))
    assert text.endswith(".") and "None" not in text and "nan" not in text


def test_caveats_name_what_a_good_headline_hides():
    doc = make("candidate_wins")
    doc["by_speaker"][4]["candidate"] = doc["by_speaker"][4]["seed"] + 0.1
    doc["table"][5] |= {"loops": 3, "truncated": 1}
    doc["profiles"] = [{"profile": "exact", "split": "test", "seed": 0.4, "candidate": 0.41}]
    doc["data"] |= {"quarantined": [{"row": 3}]}
    doc["data"]["findings"] = [{"check": "text_overlap", "severity": "warn", "text": "99.7 % of test texts in train"}]
    doc["provenance"]["source"]["dirty"] = True
    doc["budget"]["spent"] = 21.0
    doc["training"] = [p | {"ratio_p99": 1.0} for p in doc["training"]]
    doc["registrations"] *= 2
    said = "\n".join(caveats(parse_result(doc)))
    for part in ("1 of 16 speakers got worse, most of all voice-04", "loops on 3 test rows",
                 "cut at the limit on 1 test row",
                 "Under the exact normaliser", "took no part: 1", "99.7 % of test texts", "uncommitted",
                 "overrun: 21 of 20 CPU-minutes", "ratio never moved", "2 runs were registered"):  # fmt: skip
        assert part in said


def test_insertions_that_rise_under_a_falling_wer_are_said():
    doc = make("candidate_wins")
    row = doc["table"][5]
    row["substitutions"] -= 60
    row["insertions"] += 60
    assert any("Test insertions rose" in c for c in caveats(parse_result(doc)))


def test_items_of_either_form_become_one_line():
    assert words.item({"id": "lr", "value": {"a": [1, 2]}, "why": "default"}) == "lr: a 1, 2 (default)"
    assert "\n" not in words.item(HOSTILE + "\n")
