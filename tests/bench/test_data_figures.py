"""The data room's figures as bounds; by hand (`make figures`), minutes each."""

import shutil

import pytest

from tests.bench import bench_data

pytestmark = pytest.mark.figures


@pytest.mark.voices
def test_identity_on_320_clips(tmp_path, voices, shared_speech):
    found = bench_data.identity(320, 3, tmp_path)
    assert found["clips"] >= 300 and found["false_again"] == 0
    for kind, result in found["kinds"].items():
        assert result["recall"] >= 0.99, kind
        assert result.get("false", 0) == 0, kind
    assert found["ours"]["times_real_time_asking"] >= 300 and found["other_speech"]["false"] == 0
    if shutil.which("fpcalc"):
        theirs = [r["chromaprint_recall"] for r in found["kinds"].values() if "chromaprint_recall" in r]
        ours = [r["recall"] for r in found["kinds"].values() if "chromaprint_recall" in r]
        assert sum(ours) > sum(theirs) and all(a >= b for a, b in zip(ours, theirs))
        speed = found["chromaprint"]["times_real_time_fingerprints_only"]
        assert found["ours"]["times_real_time_words"] >= 2 * speed


def test_a_million_rows(tmp_path):
    found = bench_data.scale(1_000_000, tmp_path)
    assert found["peak_mb"] <= 500
    assert found["rows_in"] == 1_000_000 and found["quarantined"] == [999_999] and found["last"] == "row-0999999"
