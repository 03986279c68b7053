"""The recomputation agrees with the scoring room, shares none of its sums, and finds what was edited."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

import tools.verify.intervals
import tools.verify.scores
from tests.tools.score.randomtexts import random_pairs
from tests.tools.score.systems import two_systems
from tools.errors import CheckError
from tools.rows import ScoredRow
from tools.score import compare_rows, score_rows
from tools.text import profile
from tools.verify import file_sha256, recompute_interval, recompute_scores

NAMES = ["exact", "basic", "english", "multilingual", "basic+compounds"]


def store(path: Path, rows: list[ScoredRow]) -> Path:
    path.write_text("".join(json.dumps(row.to_json()) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_same_by_other_means(tmp_path: Path, name: str) -> None:
    rows = [ScoredRow(f"{i:05}", r, h, lang=lang) for i, (r, h, lang) in enumerate(random_pairs(2_500, seed=2))]
    theirs = recompute_scores(store(tmp_path / "rows.jsonl", rows), profile(name))
    ours = score_rows(rows, profile(name)).to_json()
    assert theirs == {key: ours[key] for key in theirs}
    assert theirs["metric"] == "mer" and theirs["hallucinated_units"] > 0


@pytest.mark.parametrize(("speakers", "metric"), [(4, "unit"), (10, "unit"), (25, "cer"), (40, "unit")])
def test_intervals_are_the_same_by_other_means(tmp_path: Path, speakers: int, metric: str) -> None:
    a, b = two_systems(speakers, clips=5)
    paths = store(tmp_path / "a.jsonl", a), store(tmp_path / "b.jsonl", b)
    theirs = recompute_interval(*paths, profile("basic"), resamples=3_000, seed=7, metric=metric)
    ours = compare_rows(a, b, profile("basic"), resamples=3_000, seed=7, metric=metric).to_json()
    for key, value in theirs.items():
        same = value if value is None or isinstance(value, str) else pytest.approx(value, abs=1e-12)
        assert ours[key] == same, key


def test_without_speakers_the_blocks_fall_back_alike(tmp_path: Path) -> None:
    a, b = ([dataclasses.replace(row, speaker=None) for row in rows] for rows in two_systems(12, clips=3))
    paths = store(tmp_path / "a.jsonl", a), store(tmp_path / "b.jsonl", b)
    theirs = recompute_interval(*paths, profile("basic"), resamples=500)
    ours = compare_rows(a, b, profile("basic"), resamples=500)
    assert (theirs["block_by"], theirs["blocks"], theirs["verdict"]) == (ours.block_by, ours.blocks, ours.verdict)


@pytest.mark.parametrize(
    ("error_a", "error_b"), [(0.0, 0.0), (0.0, 0.1), (0.002, 0.001)], ids=["perfect", "worse than perfect", "near"]
)
def test_near_perfect_systems_agree_too(tmp_path: Path, error_a: float, error_b: float) -> None:
    a, b = two_systems(12, clips=6, error_a=error_a, error_b=error_b, seed=4)
    paths = store(tmp_path / "a.jsonl", a), store(tmp_path / "b.jsonl", b)
    theirs = recompute_interval(*paths, profile("basic"), resamples=800)
    ours = compare_rows(a, b, profile("basic"), resamples=800).to_json()
    assert theirs["interval"] == (None if ours["interval"] is None else pytest.approx(ours["interval"]))
    assert theirs["verdict"] == ours["verdict"]


def test_one_byte_of_a_hypothesis_changes_the_totals(tmp_path: Path) -> None:
    a, _ = two_systems(3)
    path = store(tmp_path / "rows.jsonl", a)
    before, digest = recompute_scores(path, profile("basic")), file_sha256(path)
    path.write_bytes(
        path.read_bytes().replace(b'"hyp": "zebra', b'"hyp": "zebrb', 1).replace(b" nobody", b" nobodx", 1)
    )
    assert file_sha256(path) != digest
    assert recompute_scores(path, profile("basic")) != before


def test_file_digest(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc" * 1_000_000)
    assert file_sha256(path) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id":"a","ref":"x","hyp":"x"}\n{"id":"a","ref":"x","hyp":"x"}\n', "line 2 repeats the id 'a'"),
        ('{"id":"a","ref":"x"}\n', "line 1 is not a scored row"),
        ('{"id":"a","ref":"x","hyp":"x"}\n{"id":', "line 2 is not a scored row"),
        ('{"id":"a","ref":null,"hyp":"x"}\n', "line 1 is not a scored row"),
    ],
)
def test_broken_rows_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(CheckError, match=message):
        recompute_scores(path, profile("basic"))


def test_other_rows_cannot_be_compared(tmp_path: Path) -> None:
    a, b = two_systems(3)
    left = store(tmp_path / "a.jsonl", a)
    with pytest.raises(CheckError, match="same row ids"):
        recompute_interval(left, store(tmp_path / "b.jsonl", b[1:]), profile("basic"))
    edited = [dataclasses.replace(b[0], ref="another"), *b[1:]]
    with pytest.raises(CheckError, match="one reference in"):
        recompute_interval(left, store(tmp_path / "c.jsonl", edited), profile("basic"))


def test_another_jiwer_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F28: jiwer 3 raises on empty references, 4 counts them."""
    monkeypatch.setattr(tools.verify.scores, "version", lambda _: "3.0.3")
    with pytest.raises(CheckError, match=r"jiwer 3.0.3 is installed.*4\.x"):
        recompute_scores(tmp_path / "never read", profile("basic"))


@pytest.mark.parametrize("module", [tools.verify.scores, tools.verify.intervals])
def test_nothing_of_the_scoring_room_is_imported(module: object) -> None:
    tree = ast.parse(Path(module.__file__).read_text())  # type: ignore[attr-defined]
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in imported if name.startswith("tools.score")]


def test_a_customers_program_is_run_in_batches(tmp_path: Path) -> None:
    script = tmp_path / "norm.sh"
    script.write_text("tr a-z A-Z\n")
    own = profile(f"command: sh {script}")
    a, _ = two_systems(3)
    path = store(tmp_path / "rows.jsonl", a)
    assert recompute_scores(path, own)["value"] == score_rows(a, own).value
