import pytest
import yaml

from tests.tools.report.results import ENDINGS, HOSTILE, hostile, make
from tools.report.model_card import code, md, render_model_card
from tools.report.schema import parse_result


def card(doc):
    text = render_model_card(parse_result(doc))
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def test_front_matter_of_a_win():
    front, body = card(make("candidate_wins"))
    assert front["base_model"] == "openai/whisper-tiny.en" and front["license"] == "mit"
    assert front["language"] == ["en"] and "reinforcement-learning" in front["tags"]
    results = front["model-index"][0]["results"]
    assert results[0]["dataset"]["split"] == "test"
    assert results[0]["metrics"][0] == {"type": "wer", "value": round(203 / 1024, 6), "name": "WER (seed model: 0.482)"}
    assert "| test | seed | 0.482 |" in body and "| test | candidate | 0.198 |" in body
    assert "95 % interval by 16 speakers: 57 % to 70 %" in body


def test_hugging_face_reads_it():
    cards = pytest.importorskip("huggingface_hub")
    read = cards.ModelCard(render_model_card(parse_result(make("candidate_wins"))))
    values = {(r.dataset_split, r.metric_type): r.metric_value for r in read.data.eval_results}
    assert values["test", "wer"] == pytest.approx(203 / 1024, abs=1e-6)


@pytest.mark.parametrize("ending", ["seed_wins", "no_contrast", "budget", "label"])
def test_without_a_new_model_none_is_indexed(ending):
    front, body = card(make(ending))
    assert "model-index" not in front and "reinforcement-learning" not in front["tags"]
    assert "No new model came out of this run" in body


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_has_a_card_without_gaps(ending):
    _, body = card(make(ending))
    assert "None" not in body and "\n\n\n" not in body


def test_unknown_base_is_not_invented():
    doc = make("candidate_wins")
    doc["provenance"]["seed_model"] = {"name": "our-whisper-folder"}
    front, _ = card(doc)
    assert front["license"] == "unknown" and "base_model" not in front


@pytest.mark.parametrize(("moved", "says"), [(None, "no timestamp accuracy"), (True, "moved the speech encoder"),
                                             (False, "stayed frozen; timestamps were not measured")])  # fmt: skip
def test_timestamps_are_never_claimed(moved, says):
    doc = make("candidate_wins")
    doc["provenance"]["encoder_moved"] = moved
    assert says in card(doc)[1]


def test_hostile_text_stays_text():
    front, body = card(hostile())
    assert front["model-index"][0]["name"].startswith("<script>")
    assert front["license"] == "other" and "base_model" not in front
    outside = [line for line in body.splitlines() if "`" not in line.replace("\\`", "")]
    assert not any(
        "<script" in line.replace("\\<", "") or "**bold" in line or "](" in line.replace("\\](", "") for line in outside
    )


def test_escapes():
    assert md("# a | b\n[x](http://y) a@b.c") == r"\# a \| b \[x\](http\://y) a\@b.c"
    assert md("1. x") == r"1\. x" and md("0.256") == "0.256"
    assert code("a``b|c", cell=True) == "``` a``b\\|c ```"
    assert code("") == "not on record"
    assert "\n" not in md(HOSTILE + "\n\n# x")
