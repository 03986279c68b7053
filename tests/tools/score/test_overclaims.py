"""A comparison never claims more than it has: clips as blocks, missing speakers, noise, slices, nothing to count."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tests.tools.score.systems import two_systems
from tests.tools.score.test_files import put
from tests.tools.score.test_options import written
from tools.errors import UsageError
from tools.score.changes import compare_table
from tools.score.filepairs import Terms, compare_files


def edited(paths: list[Path], change: Any) -> list[Path]:
    """The same files with every reference row changed by `change(number, row)`."""
    rows = [json.loads(line) for line in paths[-1].read_text().splitlines()]
    put(paths[-1], *(change(i, row) for i, row in enumerate(rows)))
    return paths


def test_a_speaker_that_a_table_wrote_as_nan_is_missing_not_a_speaker(tmp_path: Path) -> None:
    paths = edited(
        written(tmp_path, *two_systems(20)),
        lambda i, row: {**row, "speaker": float("nan") if i % 2 else row["speaker"]},
    )
    out = compare_files(*paths)
    assert out["block_by"] == "id" and out["blocks"] == out["rows"]
    assert out["notes"] == [
        f"{out['rows'] // 2} rows have no speaker. Blocks are clips, taken for independent: the interval is too short "
        "where speakers come more than once."
    ]
    assert out["notes"][0] in compare_table(out)


def test_whole_speakers_need_no_note_and_clips_always_do(tmp_path: Path) -> None:
    paths = written(tmp_path, *two_systems(20))
    assert "notes" not in compare_files(*paths)
    assert compare_files(*paths, terms=Terms(by="id"))["notes"][0].startswith("Blocks are clips")


def test_without_a_reference_word_there_is_no_interval(tmp_path: Path) -> None:
    paths = edited(written(tmp_path, *two_systems(12)), lambda i, row: {**row, "text": ""})
    out = compare_files(*paths, terms=Terms(margin=0.0, slices=("domain",)))
    assert (out["a"], out["delta"], out["interval"], out["verdict"]) == (None, None, None, "not_shown")
    assert out["non_inferiority"]["upper"] is None
    assert all(s["delta_interval"] is None for s in out["slices"]["domain"].values())
    assert "n/a, not shown" in compare_table(out)


@pytest.mark.parametrize("margin", [-1.0, float("nan"), float("inf")])
def test_a_margin_is_a_number(tmp_path: Path, margin: float) -> None:
    with pytest.raises(UsageError, match="The margin is"):
        compare_files(*written(tmp_path, *two_systems(3)), terms=Terms(margin=margin))


def test_a_slice_under_the_noise_shows_nothing(tmp_path: Path) -> None:
    """The second decode of a is b itself: every change is noise, in the whole and in each slice."""
    a, b = two_systems(40)
    hyp_a, hyp_b, ref = written(tmp_path, a, b)
    for again, verdict in ((None, "better"), (hyp_b, "not_shown")):
        out = compare_files(hyp_a, hyp_b, ref, terms=Terms(again=again, slices=("lang",)))
        assert {out["verdict"], out["slices"]["lang"]["en"]["verdict"]} == {verdict}
        assert {one["verdict"] for one in out["profiles"]} == {verdict}


def test_the_noise_of_a_slice_is_its_own(tmp_path: Path) -> None:
    """Changes of a second decode that cancel in the whole do not cancel in the slices."""
    a, b = two_systems(40)
    lost = [dataclasses.replace(row, hyp="zebra " * 6 + row.hyp) for row in a]
    again = [z if x.id < "s05" else y for x, y, z in zip(a, b, lost)]
    paths = written(tmp_path, a, b, again)
    out = compare_files(paths[0], paths[1], paths[3], terms=Terms(again=paths[2], slices=("domain",)))
    assert out["noise_floor"] < 0.02 and out["verdict"] == "better"
    assert out["slices"]["domain"]["news"]["verdict"] == "not_shown"


def test_slices_of_all_kinds_are_one_family(tmp_path: Path) -> None:
    paths = written(tmp_path, *two_systems(24, error_a=0.25, error_b=0.24))
    alone = compare_files(*paths, terms=Terms(slices=("lang",)))["slices"]["lang"]["en"]
    among = compare_files(*paths, terms=Terms(slices=("lang", "domain", "lang")))["slices"]["lang"]["en"]
    assert alone["holm_p"] == alone["permutation_p"] and among["holm_p"] > alone["holm_p"]


def test_no_difference_seen_is_not_certainty(tmp_path: Path) -> None:
    """Equal answers: the limit is three events in as many words, not zero."""
    a, _ = two_systems(20)
    hyp_a, hyp_b, ref = written(tmp_path, a, a)
    got = {m: compare_files(hyp_a, hyp_b, ref, terms=Terms(margin=m))["non_inferiority"] for m in (0.0, 0.01)}
    assert got[0.0]["upper"] == pytest.approx(3.0 / (20 * 12 * 8), rel=0.01)
    assert [(one["within"], one["shown"]) for one in got.values()] == [(True, False), (True, True)]


def test_a_verdict_that_case_alone_carries_is_noted(tmp_path: Path) -> None:
    a, _ = two_systems(20, error_a=0.1)
    shouted = [dataclasses.replace(row, hyp=row.hyp.upper()) for row in a]
    hyp_a, hyp_b, ref = written(tmp_path, shouted, a)
    out = compare_files(hyp_a, hyp_b, ref, "exact")
    assert out["verdict"] == "better" and out["profiles"][1]["verdict"] == "not_shown"
    assert out["notes"] == [
        "Under basic the verdict is not shown: case, punctuation or spelling make the change, at least in part."
    ]
