import json
import shutil
import subprocess
import sys

import pytest

from tests.tools.report.results import hostile, make
from tools.errors import CheckError, UsageError
from tools.report import RENDERER, check_rendering, render_all


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    folder = put(tmp_path_factory.mktemp("rendered"), make("candidate_wins"))
    render_all(folder)
    return folder


@pytest.fixture
def workdir(rendered, tmp_path):
    """A finished report, to be spoiled."""
    return shutil.copytree(rendered, tmp_path / "w")


def put(folder, doc):
    (folder / "report").mkdir(exist_ok=True)
    (folder / "report" / "result.json").write_text(json.dumps(doc), encoding="utf-8")
    return folder


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_everything_lies_beside_the_result(rendered):
    assert {"report.html", "model_card.md", "summary.txt"} <= {p.name for p in (rendered / "report").iterdir()}
    assert len(list((rendered / "report" / "figures").iterdir())) == 5
    assert check_rendering(rendered).ok


def test_another_process_renders_the_same_bytes(workdir):
    first = contents(workdir)
    script = "import sys; from tools.report import render_all; render_all(sys.argv[1])"
    subprocess.run([sys.executable, "-c", script, str(workdir)], check=True, env={"PYTHONHASHSEED": "7", "LC_ALL": "C"})
    assert contents(workdir) == first


def test_a_byte_changed_by_hand_is_found(workdir):
    names = ["report.html", "model_card.md", "summary.txt", "figures/speakers.png"]
    for name in names:
        path = workdir / "report" / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    check = check_rendering(workdir)
    assert sorted(check.differing) == sorted(names) and not check.ok


def test_a_figure_edited_in_the_result_alone_is_found(workdir):
    doc = make("candidate_wins")
    doc["mining"]["oracle"] = 0.1
    put(workdir, doc)
    assert set(check_rendering(workdir).differing) == {"report.html", "summary.txt", "figures/mining.png"}


def test_a_missing_file_is_named(workdir):
    (workdir / "report" / "model_card.md").unlink()
    assert check_rendering(workdir).missing == ["model_card.md"]


def test_figures_of_an_earlier_ending_are_removed(workdir):
    put(workdir, make("no_contrast"))
    assert "figures/curve.png" in check_rendering(workdir).differing
    render_all(workdir)
    assert [p.name for p in (workdir / "report" / "figures").iterdir()] == ["mining.png"]
    assert check_rendering(workdir).ok


def test_another_renderer_is_not_checked(workdir):
    put(workdir, make("candidate_wins") | {"renderer": RENDERER + "0"})
    check = check_rendering(workdir)
    assert check.ok and check.not_checked


def test_another_matplotlib_is_not_checked_but_the_words_are(workdir):
    page = workdir / "report" / "report.html"
    page.write_bytes(page.read_bytes().replace(b"rehear report 1, matplotlib 3.", b"rehear report 1, matplotlib 2."))
    check = check_rendering(workdir)
    assert check.ok
    assert {name for name, _ in check.not_checked} >= {"figures/curve.png", "report.html (pictures)"}
    page.write_bytes(page.read_bytes().replace(b"clear of zero", b"clear of doubt"))
    assert check_rendering(workdir).differing == ["report.html"]


def test_hostile_text_renders(tmp_path):
    render_all(put(tmp_path, hostile()))
    assert check_rendering(tmp_path).ok


def test_no_result_and_a_false_one(tmp_path):
    with pytest.raises(UsageError):
        render_all(tmp_path)
    doc = make("candidate_wins")
    doc["comparison"]["error_reduction"] = 0.99
    with pytest.raises(CheckError, match="contradicts itself"):
        render_all(put(tmp_path, doc))
    assert list(contents(tmp_path)) == ["report/result.json"]


def test_importing_the_package_costs_nothing():
    code = "import sys, tools.report; print([m for m in ('pydantic', 'jinja2', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
