import io

import matplotlib
import pytest
from PIL import Image

from tests.tools.report.results import hostile, make
from tools.report.canvas import DARK, name_label
from tools.report.figures import MOST_SPEAKERS, change_counts, figures, retention_limit
from tools.report.schema import parse_result

ALL = {"curve.png", "training.png", "speakers.png", "mining.png", "changes.png"}


def test_the_same_result_gives_the_same_bytes_whatever_the_machines_settings():
    result = parse_result(make("candidate_wins"))
    first = figures(result)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 20}):
        assert figures(result) == first
    assert set(first) == ALL
    assert figures(result, DARK)["curve.png"] != first["curve.png"]


def test_pictures_are_sharp_at_700_pixels_and_carry_no_metadata():
    for name, png in figures(parse_result(make("candidate_wins"))).items():
        image = Image.open(io.BytesIO(png))
        assert image.width == 1260, name
        assert set(image.info) <= {"dpi"}, name


@pytest.mark.parametrize(
    ("ending", "names"),
    [
        ("no_contrast", {"mining.png"}),
        ("budget", {"curve.png", "training.png", "mining.png"}),
        ("seed_wins", {"curve.png", "training.png", "mining.png"}),
        ("too_few_blocks", ALL),
        ("near_perfect", ALL),
    ],
)
def test_only_figures_with_data_are_drawn(ending, names):
    assert set(figures(parse_result(make(ending)))) == names


@pytest.mark.filterwarnings("error")
def test_names_that_cannot_be_drawn_or_hold_markup_do_no_harm():
    assert set(figures(parse_result(hostile()))) == ALL
    assert name_label("張偉", 7) == "no. 7"
    assert name_label("$\\frac{", 1) == "$\\frac{"
    assert len(name_label("x" * 99, 1)) == 20


@pytest.mark.filterwarnings("error")
def test_many_speakers_many_strata_far_changes_and_gaps_are_drawn():
    doc = make("candidate_wins")
    slices = [{"speaker": f"s{n}", "rows": 2, "seed": 0.5, "candidate": n / 64} for n in range(MOST_SPEAKERS + 34)]
    doc["by_speaker"] = slices
    doc["mining"]["strata"] = [{"name": f"stratum {n}", "greedy": 0.5} for n in range(20)]
    doc["changes"] = [{"errors": -291 - 40, "clips": 1}, {"errors": 40, "clips": 1}, {"errors": 0, "clips": 126}]
    doc["training"][3] |= {"reward": None, "contrast_share": None}
    doc["curve"][2]["retention"] = None
    result = parse_result(doc)
    assert set(figures(result)) == ALL
    assert change_counts(result) == (1, 126, 1)


def test_the_retention_limit_is_absolute():
    result = parse_result(make("candidate_wins"))
    assert retention_limit(result) == pytest.approx(123 / 480 + 0.01)
    assert retention_limit(parse_result(make("budget"))) == pytest.approx(123 / 480 + 0.01)
    assert retention_limit(parse_result({"name": "x", "termination_reason": "y"})) is None
