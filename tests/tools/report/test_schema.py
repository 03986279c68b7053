import json

import pytest

from tests.tools.report.results import ENDINGS, hostile, make
from tools.errors import CheckError, UsageError
from tools.report.schema import load_result, parse_result


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_is_read_and_agrees_with_itself(ending):
    result = parse_result(make(ending))
    assert result.name
    assert result.row("nowhere", "seed") is None


def test_the_barest_result_is_enough():
    result = parse_result({"name": "x", "termination_reason": "stop_failed", "comparison": None, "curve": None})
    assert result.table == [] and result.comparison is None and not result.trained()


def test_a_file_round_trips_and_a_newer_key_is_kept(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(make("candidate_wins") | {"of_tomorrow": 1}), encoding="utf-8")
    result = load_result(path)
    assert result.model_extra == {"of_tomorrow": 1}
    assert parse_result(result.model_dump()) == result


def test_contract_may_be_flat():
    doc = make("candidate_wins")
    flat = doc | {"contract": {"digest": doc["contract"]["digest"], "record": 19, **doc["contract"]["contract"]}}
    assert parse_result(flat).contract == parse_result(doc).contract


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "not valid JSON"), ("[]", "found list"), ('{"name":"x","termination_reason":"y","table":[NaN]}', "NaN")],
)
def test_unreadable_files_are_named(tmp_path, text, says):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(CheckError, match=says) as error:
        load_result(path)
    assert str(path) in str(error.value)


def test_a_missing_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no result"):
        load_result(tmp_path / "result.json")


def test_types_are_not_guessed():
    doc = make("candidate_wins")
    doc["table"][0]["wer"] = "0.3"
    with pytest.raises(CheckError, match=r"table\.0\.wer"):
        parse_result(doc)


def _edit(path, value):
    def apply(doc):
        *way, last = path
        for key in way:
            doc = doc[key]
        doc[last] = value(doc[last]) if callable(value) else value

    return apply


CONTRADICTIONS = [
    (_edit(["table", 2, "insertions"], lambda n: n + 1), "its counts give"),
    (_edit(["table", 3, "reference_units"], 560), "its counts give"),
    (_edit(["table", 5, "rows"], 127), "the candidate on 127"),
    (lambda doc: doc["table"].append(doc["table"][0]), "two rows for dev seed"),
    (_edit(["comparison", "candidate"], 0.1), "is not the table's"),
    (_edit(["comparison", "delta"], 0.1), "not candidate - seed"),
    (_edit(["comparison", "error_reduction"], 0.9), "not .seed - candidate. / seed"),
    (_edit(["comparison", "delta_interval"], [-0.1, 0.01]), "not clear of zero"),
    (_edit(["comparison"], lambda c: {**c, "delta_interval": None, "interval": [-0.1, 0.9]}), "not clear of zero"),
    (_edit(["comparison", "interval"], [0.9, 0.1]), "backwards"),
    (_edit(["comparison", "blocks"], 9), "under 10"),
    (_edit(["comparison", "verdict"], "too_few_blocks"), "too_few_blocks with 16 blocks"),
    (_edit(["comparison", "verdict"], "not_shown"), "clear of zero and the change above the noise floor"),
    (lambda doc: doc["comparison"].update(verdict="not_shown", noise_floor=0.5), "of the comparison is not_shown"),
    (_edit(["retention", "candidate"], 0.2), "the table has"),
    (_edit(["retention", "delta"], 0.0), "retention delta"),
    (_edit(["retention", "within"], False), "yet within is False"),
    (_edit(["curve", 5, "dev"], 0.11), "the selected checkpoint's dev is 0.11"),
    (_edit(["selection", "selected"], 55), "no such checkpoint"),
    (_edit(["selection", "selected"], 60), "not eligible"),
    (_edit(["selection", "selected"], "seed"), "the seed was selected"),
    (_edit(["by_speaker"], lambda s: s[1:]), "rows by speaker add up to 120"),
    (_edit(["changes", 0, "clips"], 99), "the changes by clip"),
]


@pytest.mark.parametrize(("edit", "says"), CONTRADICTIONS)
def test_a_result_that_contradicts_itself_is_refused(edit, says):
    doc = make("candidate_wins")
    edit(doc)
    with pytest.raises(CheckError, match=says):
        parse_result(doc)


def test_rounding_to_six_digits_is_no_contradiction():
    rounded = json.loads(json.dumps(make("candidate_wins")), parse_float=lambda text: round(float(text), 6))
    assert parse_result(rounded).termination_reason == "candidate_wins"


def test_a_change_exactly_at_the_retention_limit_may_be_called_either():
    doc = make("candidate_wins")
    doc["table"] = [r for r in doc["table"] if r["split"] != "retention"]
    for within in (True, False):
        doc["retention"] = {"seed": 0.25, "candidate": 0.26, "delta": 0.01, "limit": 0.01, "within": within}
        doc["termination_reason"] = "other"
        doc["curve"] = []
        assert parse_result(doc).retention.within is within


def test_mixed_units_stand_where_the_scorer_puts_them():
    doc = make("no_contrast") | {"metric": "mer"}
    assert parse_result(doc).row("dev", "seed").rate("mer") == pytest.approx(331 / 640)


def test_hostile_text_is_data():
    assert parse_result(hostile()).name.startswith("<script>")
