"""Odd files through the command line: one clear sentence and the right exit code, or the right number; never a traceback,
and with `--json` exactly one document that any reader takes."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.faces.cli import main
from tests.tools.score.test_files import STM, put

REFS = [{"id": "a", "text": "hello world"}, {"id": "b", "text": "good morning"}]
HYPS = [{"id": "a", "text": "hello word"}, {"id": "b", "text": "good morning"}]


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, dict[str, Any], str]:
    """(exit code, the one document, stderr) of `rehear ARGV --json`."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, argv), "--json"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err and "internal error" not in err
    document = json.loads(out, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert out.count("\n") == 1
    return ended.value.code or 0, document, err  # type: ignore[return-value]


@pytest.fixture
def ref(tmp_path: Path) -> Path:
    return put(tmp_path / "ref.jsonl", *REFS)


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        # a row without an answer is never scored by the reference beside it
        ('{"id":"a","pred_text":null,"text":"hello world"}\n{"id":"b","pred_text":"","text":"good morning"}', 5,
         "line 1 has no text in `pred_text`"),
        ('{"id":"a","pred_text":"x","text":"hello world"}\n{"id":"b","text":"good morning"}', 5, "line 2 holds its text in"),
        ('{"id":"a","text":"hello world"}\n{"id":"b","pred_text":"x","text":"good morning"}', 5, "line 2 holds its text in"),
        ('{"id":["a"],"text":"x"}', 5, "`id` that is neither text nor number"),
        ('{"id":"a","text":"x","lang":{"x":1}}', 5, "`lang` that is neither"),
        ('{"id":"a","text":"x","speaker":true}', 5, "`speaker` that is neither"),
        ('{"id":NaN,"text":"x"}', 5, "neither an id nor an audio path"),
        ('{"id":"a","text":"x","duration":Infinity}', 5, "no number from 0"),
        ('{"id":"a","text":"x","duration":-1}', 5, "no number from 0"),
        ('{"id":"a","text":"x","duration":1' + "0" * 400 + "}", 5, "no number from 0"),
        ('{"id":"a","text":"x","z":' + "[" * 100_000 + "]" * 100_000 + "}", 5, "line 1 is no JSON"),
        ('{"id":"a","text":["x"]}', 5, "no text in `text`"),
    ],
)  # fmt: skip
def test_rows_that_are_refused(
    capsys: pytest.CaptureFixture[str], ref: Path, tmp_path: Path, lines: str, code: int, message: str
) -> None:
    hyp = tmp_path / "h.jsonl"
    hyp.write_text(lines + "\n")
    got, document, err = run(capsys, "score", hyp, ref)
    assert (got, document["exit_code"]) == (code, code)
    assert message in document["error"]["message"] and document["error"]["message"] in err


def test_rows_that_are_read(capsys: pytest.CaptureFixture[str], ref: Path, tmp_path: Path) -> None:
    """NaN of a table's export is "unknown"; counts that are no counts are none; lone surrogates are escaped."""
    hyp = tmp_path / "h.jsonl"
    hyp.write_text(
        '{"id":"a","text":"\\ud800 x","duration":NaN,"tokens":Infinity,"speaker":NaN}\n{"id":"b","text":"y","tokens":NaN}\n'
    )
    code, document, _ = run(capsys, "score", hyp, ref, "--worst", 2, "--by", "speaker", "--by", "duration")
    assert code == 0 and document["worst"][0]["hyp"] == "\ud800 x"
    assert set(document["slices"]["speaker"]) == set(document["slices"]["duration"]) == {""}


def test_gzip_by_content(capsys: pytest.CaptureFixture[str], ref: Path, tmp_path: Path) -> None:
    plain = put(tmp_path / "h.jsonl", *HYPS).read_bytes()
    for name in ("h.jsonl.gz", "packed"):
        (tmp_path / name).write_bytes(gzip.compress(plain))
        assert run(capsys, "score", tmp_path / name, ref)[1]["value"] == 0.25
    (tmp_path / "torn.gz").write_bytes(gzip.compress(plain)[:-9])
    code, document, _ = run(capsys, "score", tmp_path / "torn.gz", ref)
    assert code == 5 and "no whole gzip file" in document["error"]["message"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("h.ctm", "rec1 1 nan .1 x\n", "is no CTM line"),
        ("h.ctm", "rec1 1 1.0 -2 x\n", "is no CTM line"),
        ("h.ctm", "rec1 1 * * <ALT_BEGIN>\n", "holds alternatives"),
        ("h.ctm", "rec1 1 2.5 .2 x\n", "in two segments of the reference"),
        ("h.stm", "rec1 1 anna nan 2 x\n", "is no STM line"),
        ("h.stm", "rec1 1 anna 5 2 x\n", "is no STM line"),
    ],
)
def test_times_of_sclite_forms(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / "r.stm").write_text(STM + "rec1 1 carl 2.0 3.0 overlapping\n")
    (tmp_path / name).write_text(text)
    code, document, _ = run(capsys, "score", tmp_path / name, tmp_path / "r.stm")
    assert code == 5 and message in document["error"]["message"]


def test_a_control_token_at_the_head_of_an_stm_text_is_no_label(tmp_path: Path) -> None:
    from tools.score.files import score_files

    for i, head in enumerate(("<unk> ", "<|en|> ")):
        ref, hyp = tmp_path / f"r{i}.stm", tmp_path / f"h{i}.stm"
        ref.write_text("rec1 1 anna 0 2 <o,f0,female> hello\n")
        hyp.write_text(f"rec1 1 anna 0 2 {head}hello\n")
        assert score_files(hyp, ref, "exact")["insertions"] == 1


SPECS = [
    ("--profile", 'command: tr "a', 2, "correct its quotes"),
    ("--profile", "command: true", 2, "gave 0 lines for"),
    ("--profile", "command: {python} -c \"import sys\nfor n, _ in enumerate(sys.stdin): print(n)\"", 2, "another order"),
    ("--profile", "{folder}/n.py:quits", 2, "SystemExit"),
    ("--profile", "{folder}/gone.py:f", 2, "cannot be imported"),
    ("--profile", "{folder}/n.py:talks", 0, ""),
    ("--script", "echo [1]", 2, "must print a JSON object"),
    ("--script", "echo 0.5", 2, "must print a JSON object"),
    ("--script", "echo '{{\"value\": 1e999}}'", 2, "must print a JSON object"),
    ("--script", "echo '{{\"value\": 1, \"more\": [NaN, 1e999]}}'", 0, ""),
    ("--script", "'", 2, "correct its quotes"),
    ("--trn", "{folder}/ref.jsonl", 2, "cannot be a folder"),
    ("--worst", "-1", 2, "--worst"),
    ("--confusions", "-1", 2, "--confusions"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "value", "code", "message"), SPECS)
def test_programs_and_options(
    capsys: pytest.CaptureFixture[str], ref: Path, tmp_path: Path, option: str, value: str, code: int, message: str
) -> None:
    (tmp_path / "n.py").write_text("def quits(t): raise SystemExit(0)\ndef talks(t):\n    print(t)\n    return t\n")
    (tmp_path / "gone.py").write_text("raise SystemExit(0)")
    value = value.format(python=sys.executable, folder=tmp_path)
    got, document, _ = run(capsys, "score", put(tmp_path / "h.jsonl", *HYPS), ref, option, value)
    assert got == code and message in (document.get("error") or {}).get("message", "")


def test_options_that_do_not_go_together(capsys: pytest.CaptureFixture[str], ref: Path) -> None:
    for extra in (("--task", "label", "--worst", "3", "--by", "lang"), ("--label", "yes")):
        code, document, _ = run(capsys, "score", ref, ref, *extra)
        assert code == 2 and "leave it out" in document["error"]["message"]


def test_the_labels_of_a_manifest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A label task's manifest may hold a transcript and a label: the label is the reference."""
    ref = put(tmp_path / "r.jsonl", {"id": 1, "text": "i would like that", "label": "yes"})
    _, document, _ = run(capsys, "score", put(tmp_path / "h.jsonl", {"id": 1, "text": "yes"}), ref, "--task", "label")
    assert document["strict"]["correct"] == 1


def test_a_prompt_that_is_repeated_is_counted(capsys: pytest.CaptureFixture[str], ref: Path, tmp_path: Path) -> None:
    hyp = put(tmp_path / "h.jsonl", {"id": "a", "text": "transcribe the audio into english"}, HYPS[1])
    ask = ("--prompt", "Please transcribe the audio into English.")
    assert run(capsys, "score", hyp, ref, *ask)[1]["diagnostics"]["prompt_leaks"] == 1
    assert run(capsys, "score", hyp, ref)[1]["diagnostics"]["prompt_leaks"] == 0


def test_every_document_names_scorer_and_profile(capsys: pytest.CaptureFixture[str], ref: Path) -> None:
    """F28."""
    for argv in (("score", ref, ref), ("score", ref, ref, "--task", "label"), ("compare", ref, ref, ref)):
        document = run(capsys, *argv)[1]
        assert set(document["scorer"]) == {"name", "version", "aligner"} and document["profile"]["digest"]


def test_an_empty_reference_is_not_applicable_in_the_table(tmp_path: Path) -> None:
    """F17: no ratio, but the insertions."""
    from tools.score.changes import score_table
    from tools.score.files import Wanted, score_files

    ref = put(tmp_path / "r.jsonl", {"id": "a", "text": ""}, {"id": "b", "text": "a b c"})
    hyp = put(tmp_path / "h.jsonl", {"id": "a", "text": "x"}, {"id": "b", "text": "a b c"})
    table = score_table(score_files(hyp, ref, wanted=Wanted(worst=3)))
    assert "a: n/a, 1 insertions" in table and "invented there    1" in table and "0.3333" in table
