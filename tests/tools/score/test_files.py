"""Scores from files: every form of hypotheses, ids that do not match, the documents of `rehear score` and `compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tools.score.systems import two_systems
from tools.errors import CheckError, UsageError
from tools.rows import ScoredRow
from tools.score import compare_rows, score_rows
from tools.score.filepairs import compare_files
from tools.score.files import read_rows, score_files, stream_rows
from tools.score.formats import HYP_KEYS, each_text
from tools.score.sclite import write_trn
from tools.text import profile


def put(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


REFS = ({"id": "a", "text": "", "speaker": "s1"}, {"id": "b", "text": "a b c", "speaker": "s2", "lang": "en"})


def test_the_score_document(tmp_path: Path) -> None:
    """F17 through files, keyed by id whatever the order."""
    ref = put(tmp_path / "ref.jsonl", *REFS)
    hyp = put(tmp_path / "hyp.jsonl", {"id": "b", "text": "a b c"}, {"id": "a", "text": "x"})
    out = score_files(hyp, ref)
    assert list(out)[:9] == ["metric", "value", "insertions", "deletions", "substitutions", "reference_units", "rows",
                             "empty_references", "profile"]  # fmt: skip
    assert out["metric"] == "wer" and out["value"] == 1 / 3 and out["insertions"] == 1
    assert out["profile"]["name"] == "basic" and set(out["profile"]) == {"name", "version", "digest"}
    assert [p["profile"] for p in out["profiles"]] == ["basic", "exact"]
    json.dumps(out)


def test_nemo_output_holds_both_texts(tmp_path: Path) -> None:
    rows = [{"audio_filepath": "x.wav", "offset": 1.5, "text": "the cat", "pred_text": "the car"}]
    nemo = put(tmp_path / "out.json", *rows)
    assert score_files(nemo, nemo)["substitutions"] == 1
    assert next(iter(each_text(nemo, HYP_KEYS))).id == "x.wav#1.5"


def test_an_empty_hypothesis_is_not_a_missing_one(tmp_path: Path) -> None:
    ref = put(tmp_path / "r.jsonl", {"id": 1, "text": "a b"})
    hyp = put(tmp_path / "h.jsonl", {"id": 1, "text": "a b", "pred_text": ""})
    assert score_files(hyp, ref)["deletions"] == 2


def test_own_rows_can_be_read_back(tmp_path: Path) -> None:
    a, _ = two_systems(3)
    path = put(tmp_path / "rows.jsonl", *[row.to_json() for row in a])
    assert list(stream_rows(path)) == a
    assert score_files(path, path, "basic")["value"] == score_rows(a, profile("basic")).value
    assert read_rows(path, path)[0].speaker == "s00"


def test_bytes_of_the_field(tmp_path: Path) -> None:
    """F14: BOM, CRLF, U+2028 inside a text, a JSON array, ids in two Unicode forms."""
    ref, hyp = tmp_path / "r.jsonl", tmp_path / "h.jsonl"
    ref.write_bytes('\ufeff{"id":"é","text":"a\u2028b"}\r\n\r\n'.encode())
    hyp.write_text('[{"id": "e\u0301",\n "text": "a b"}]', encoding="utf-8")
    assert score_files(hyp, ref)["value"] == 0.0


@pytest.mark.parametrize(
    ("hyps", "message"),
    [
        ([{"id": "a", "text": "x"}], "has no text for the id 'b' .*ref.jsonl, line 2"),
        ([{"id": "a", "text": ""}, {"id": "b", "text": ""}, {"id": "c", "text": ""}], "line 3 has the id 'c'"),
        ([{"id": "a", "text": ""}, {"id": "a", "text": ""}], "line 2 repeats the id 'a'"),
        ([{"id": "a", "words": ""}], "line 1 has no text"),
        ([{"text": "x"}], "line 1 has neither an id nor an audio path"),
        ([["a", "x"]], "line 1 is no JSON array|is no JSON object|no JSON"),
        ([{"id": "a", "text": "x", "duration": "long"}], "duration that is no number"),
    ],
)
def test_rows_that_do_not_match(tmp_path: Path, hyps: list[object], message: str) -> None:
    ref = put(tmp_path / "ref.jsonl", *REFS)
    with pytest.raises(CheckError, match=message):
        score_files(put(tmp_path / "hyp.jsonl", *hyps), ref)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    ref = put(tmp_path / "ref.jsonl", *REFS)
    with pytest.raises(UsageError, match=r"cannot be read .No such file"):
        score_files(tmp_path / "none.jsonl", ref)
    (tmp_path / "hyp.csv").write_text("id,text\n")
    with pytest.raises(UsageError, match="neither JSON lines nor"):
        score_files(tmp_path / "hyp.csv", ref)
    (tmp_path / "bad.jsonl").write_bytes(b'{"id":"a","text":"\x92"}\n')
    with pytest.raises(CheckError, match=r"line 1 is not UTF-8 .byte 18"):
        score_files(tmp_path / "bad.jsonl", ref)
    (tmp_path / "torn.jsonl").write_text('{"id":"a","text":""}\n{"id":"b"')
    with pytest.raises(CheckError, match="line 2 is no JSON"):
        score_files(tmp_path / "torn.jsonl", ref)
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(CheckError, match="no reference"):
        score_files(tmp_path / "empty.jsonl", tmp_path / "empty.jsonl")


def test_trn_there_and_back(tmp_path: Path) -> None:
    refs = [("spk1-001", "hello world"), ("spk1-002", ""), ("spk2-001", "नमस्ते  दुनिया")]
    write_trn(tmp_path / "ref.trn", refs)
    write_trn(tmp_path / "hyp.trn", [(key, text.replace("hello", "yellow")) for key, text in refs])
    assert (tmp_path / "ref.trn").read_text(encoding="utf-8").splitlines()[0] == "hello world (spk1-001)"
    out = score_files(tmp_path / "hyp.trn", tmp_path / "ref.trn")
    assert (out["substitutions"], out["reference_units"], out["rows"], out["empty_references"]) == (1, 4, 3, 1)
    assert read_rows(tmp_path / "hyp.trn", tmp_path / "ref.trn")[2].speaker == "spk2"
    with pytest.raises(UsageError, match="cannot stand in a TRN"):
        write_trn(tmp_path / "x.trn", [("a b", "text")])


STM = """;; a comment
rec1 1 anna 0.00 2.00 <o,f0,female> hello world
rec1 1 bob 2.00 4.00 good morning
rec1 1 anna 4.00 6.00 IGNORE_TIME_SEGMENT_IN_SCORING
"""
CTM = """rec1 1 0.10 0.40 hello 0.98
rec1 1 2.50 0.40 morning
rec1 1 2.10 0.30 good
rec1 1 0.90 0.50 word
rec1 1 4.50 0.50 noise
"""


def test_ctm_against_stm(tmp_path: Path) -> None:
    """Words go to segments by their middle; ignored segments count on neither side."""
    (tmp_path / "ref.stm").write_text(STM)
    (tmp_path / "hyp.ctm").write_text(CTM)
    out = score_files(tmp_path / "hyp.ctm", tmp_path / "ref.stm")
    assert (out["substitutions"], out["insertions"], out["reference_units"], out["rows"]) == (1, 0, 4, 2)
    rows = read_rows(tmp_path / "hyp.ctm", tmp_path / "ref.stm")
    assert {row.speaker for row in rows} == {"anna", "bob"} and rows[0].duration_s == 2.0


def test_ctm_by_recording(tmp_path: Path) -> None:
    (tmp_path / "hyp.ctm").write_text("r1 1 0.9 0.1 b\nr1 1 0.1 0.1 a\nr2 1 0.0 0.1 c\nr2 2 0.0 0.1 d\n")
    texts = {one.id: one.text for one in each_text(tmp_path / "hyp.ctm", HYP_KEYS)}
    assert texts == {"r1": "a b", "r2-1": "c", "r2-2": "d"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.ctm", "rec1 1 zero 0.1 a\n", "line 1 is no CTM line"),
        ("x.ctm", "rec1 1 0.0 0.0 <ALT_BEGIN>\n", "holds alternatives"),
        ("x.ctm", "rec1 1 99.0 0.1 late\n", "in no segment of the reference"),
        ("x.stm", "rec1 1 anna\n", "line 1 is no STM line"),
        ("x.trn", "hello world\n", "line 1 is no TRN line"),
        ("x.trn", "{ a / b } (id-1)\n", "holds alternatives"),
    ],
)
def test_broken_sclite_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / "ref.stm").write_text(STM)
    (tmp_path / name).write_text(text)
    with pytest.raises(CheckError, match=message):
        score_files(tmp_path / name, tmp_path / "ref.stm")


def _three(tmp_path: Path, speakers: int) -> tuple[Path, Path, Path]:
    a, b = two_systems(speakers)
    refs = [{"id": r.id, "text": r.ref, "speaker": r.speaker} for r in a]
    hyps = [[{"id": r.id, "text": r.hyp} for r in rows] for rows in (a, b)]
    return (
        put(tmp_path / "a.jsonl", *hyps[0]),
        put(tmp_path / "b.jsonl", *hyps[1]),
        put(tmp_path / "ref.jsonl", *refs),
    )


def test_the_compare_document(tmp_path: Path) -> None:
    out = compare_files(*_three(tmp_path, 20))
    assert list(out)[:6] == ["a", "b", "delta", "interval", "blocks", "verdict"]
    a, b = two_systems(20)
    c = compare_rows(a, b, profile("basic"))
    assert (out["verdict"], out["blocks"], out["delta"]) == ("better", 20, c.delta)
    assert out["interval"] == list(c.delta_interval) and out["interval_of"] == "delta"
    assert out["error_reduction_interval"] == list(c.interval)
    assert out["interval"][0] < out["delta"] < out["interval"][1]
    assert [p["profile"] for p in out["profiles"]] == ["basic", "exact"]
    json.dumps(out)


def test_compare_under_ten_blocks(tmp_path: Path) -> None:
    out = compare_files(*_three(tmp_path, 4))
    assert (out["verdict"], out["interval"], out["blocks"]) == ("too_few_blocks", None, 4)


def test_language_fills_in_where_rows_have_none(tmp_path: Path) -> None:
    ref = put(tmp_path / "r.jsonl", {"id": "1", "text": "我们 去"}, {"id": "2", "text": "thirty six", "lang": "en"})
    hyp = put(tmp_path / "h.jsonl", {"id": "1", "text": "我们去"}, {"id": "2", "text": "36"})
    assert score_files(hyp, ref, "exact", "zh")["insertions"] == 0
    assert score_files(hyp, ref, "english", "zh")["value"] == 0.0
    assert [r.lang for r in read_rows(hyp, ref, "zh")] == ["zh", "en"]


def test_broken_stored_rows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ScoredRow("a", "b", "c").to_json()) + "\n[1]\n")
    with pytest.raises(CheckError, match="line 2 is not a scored row"):
        list(stream_rows(path))
