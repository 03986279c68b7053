import json
import random

import pytest

from tools.rows import ScoredRow
from tools.score.comparator import fit_comparator
from tools.score.labelled import code_rows, compare_labels, error_rates
from tools.score.labels import INVALID, label_set, score_labels
from tools.score.transcripts import score_rows
from tools.text import profile
from tools.verify.labels import recompute_label_interval, recompute_labels

LABELS = ("left", "right", "stop now")


def answers(skill, seed=1, speakers=12, rows=9):
    """Rows with unequal classes; some answers are invalid."""
    rng = random.Random(seed)
    out = []
    for s in range(speakers):
        for r in range(rows):
            ref = LABELS[min(r % 5, 2)]
            hyp = ref.title() + "." if rng.random() < skill else rng.choice([*LABELS, "left or right", "", "what"])
            out.append(ScoredRow(f"{s}-{r}", ref, hyp, speaker=f"s{s:02d}"))
    return out


@pytest.fixture
def labels():
    return label_set(profile("basic"), LABELS)


def test_coded_rows_have_the_share_of_wrong_answers_as_their_word_error_rate(labels):
    rows = answers(0.6)
    reading = score_labels(rows, labels).strict
    coded = score_rows(code_rows(rows, labels, labels.strict), profile("exact"))
    assert coded.value == pytest.approx(error_rates(reading)["label_error"], abs=1e-12)
    assert coded.deletions == reading.invalid and coded.insertions == 0


@pytest.mark.parametrize("metric", ["label_error", "macro_error"])
@pytest.mark.parametrize("reader", ["strict", "parse", "comparator"])
def test_comparison_and_figures_are_found_again_by_other_code(labels, tmp_path, metric, reader):
    a, b = answers(0.5, 1), answers(0.8, 2)
    read = fit_comparator(a, labels).read if reader == "comparator" else getattr(labels, reader)
    for name, rows in (("a", a), ("b", b)):
        (tmp_path / name).write_text("".join(json.dumps(r.to_json()) + "\n" for r in rows))
    ours = compare_labels(a, b, labels, read, metric)
    theirs = recompute_label_interval(tmp_path / "a", tmp_path / "b", labels.profile.normalise, read, metric)
    for key in ("a", "b", "delta", "error_reduction"):
        assert ours[key] == pytest.approx(theirs[key], abs=1e-12), key
    for key in ("interval", "delta_interval"):
        assert ours[key] == pytest.approx(theirs[key], abs=1e-6), key
    assert (ours["verdict"], ours["blocks"], ours["block_by"]) == (theirs["verdict"], 12, "speaker")
    again = recompute_labels(tmp_path / "a", labels.profile.normalise, read, INVALID)
    assert again[metric] == pytest.approx(ours["a"], abs=1e-12)


def test_macro_error_weighs_classes_alike_and_label_error_rows(labels):
    rows = [ScoredRow(str(i), "left", "left", speaker="s") for i in range(9)] + [
        ScoredRow("9", "right", "", speaker="s")
    ]
    assert error_rates(score_labels(rows, labels).strict) == pytest.approx({"label_error": 0.1, "macro_error": 0.5})
    assert compare_labels(rows, rows, labels, labels.strict, "macro_error")["a"] == pytest.approx(0.5)
