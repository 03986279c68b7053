"""Answers that others decoded, in the forms they come in: all land on their clips, and what is missing is named."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tools.decode.given import GivenRecogniser
from tools.decode.given_formats import join_tokens
from tools.errors import CheckError, UsageError
from tools.rows import Answer, Clip

CLIPS = [Clip(f"c{i}", Path(f"/audio/take{i}.wav"), f"reference {i}") for i in range(3)]


def write(path, *rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def texts(heard, clips=CLIPS):
    return [[a.text for a in group] for group in heard.sample(clips, "", 9, n=8, temperature=0.8, seed=0)]


def greedy(heard, clips=CLIPS):
    return [a.text for a in heard.greedy(clips, "", 9)]


WANTED = [[f"a{i}", f"b{i}"] for i in range(3)]
FIRST = [f"g{i}" for i in range(3)]


def listed(i):
    return {"id": f"c{i}", "greedy": f"g{i}", "hypotheses": [f"a{i}", f"b{i}"]}


def scored(i):
    many = [{"text": f"a{i}", "score": -1.0, "seed": 4}, {"text": f"b{i}", "score": -2.0, "seed": 5}]
    return {"audio_filepath": f"elsewhere/take{i}.wav", "text": f"reference {i}", "pred_text": f"g{i}", "nbest": many}


def pairs(i):
    return {"clip_id": f"c{i}", "pred_text": f"g{i}", "beams": [[f"a{i}", -1.0], [-2.0, f"b{i}"]]}


@pytest.mark.parametrize(("row", "kind"), [(listed, "listed"), (scored, "sampled"), (pairs, "beam")])
def test_several_hypotheses_on_one_line(row, kind, tmp_path):
    heard = GivenRecogniser.load(write(tmp_path / "a.jsonl", *(row(i) for i in range(3))), CLIPS)
    assert texts(heard) == WANTED and greedy(heard) == FIRST and heard.kind == kind


def test_one_hypothesis_a_line_with_its_temperature_and_seed(tmp_path):
    rows = [
        {"id": f"c{i}", "pred_text": t, "temperature": heat, "seed": s}
        for i in range(3)
        for t, heat, s in ((f"g{i}", 0, None), (f"a{i}", 0.8, 1), (f"b{i}", 0.8, 2))
    ]
    heard = GivenRecogniser.load(write(tmp_path / "a.jsonl", *rows), CLIPS)
    assert texts(heard) == WANTED and greedy(heard) == FIRST and heard.kind == "sampled"
    assert [a.seed for a in heard.sample(CLIPS[:1], "", 9, n=2, temperature=1, seed=0)[0]] == [1, 2]


def test_our_own_rollouts_come_back_whole(tmp_path):
    answers = [
        Answer("c0", "g", (5, 2)),
        Answer("c0", "a", (6, 2), "stop", 0, 77, 0.8, (-0.5, -0.25)),
        Answer("c0", "b", (7,), "length", 1, 78, 0.8, (-0.5,)),
    ]
    heard = GivenRecogniser.load(write(tmp_path / "mine-1.jsonl", *(a.to_json() for a in answers)), CLIPS)
    assert heard.greedy(CLIPS[:1], "", 9) == answers[:1]
    assert heard.sample(CLIPS[:1], "", 9, n=2, temperature=0.8, seed=0) == [answers[1:]]


def test_nemo_beam_files_go_by_the_order_of_the_manifest(tmp_path):
    path = tmp_path / "preds.tsv"
    path.write_text("".join(f"a{i}\t-1.5\nb{i}\t-2.5\n" for i in range(3)), encoding="utf-8")
    heard = GivenRecogniser.load(path, CLIPS)
    assert texts(heard) == WANTED and heard.kind == "beam"
    assert greedy(heard) == ["a0", "a1", "a2"], "a beam's best stands for greedy"
    path.write_text("a\t-1\n" * 4, encoding="utf-8")
    with pytest.raises(UsageError, match="4 lines for 3 clips"):
        GivenRecogniser.load(path, CLIPS)


def test_ctranslate2_results_are_joined_from_their_tokens(tmp_path):
    assert join_tokens(["ĠMove", "Ġsix", "Ġcr", "ates", "<|endoftext|>"]) == "Move six crates"
    assert join_tokens(["ĠgrÃ¼n"]) == "grün" and join_tokens(["▁move", "▁it"]) == "move it"
    rows = {f"c{i}": {"sequences": [["Ġa", str(i)], ["Ġb", str(i)]], "scores": [-0.1, -0.4]} for i in range(3)}
    path = tmp_path / "ct2.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    heard = GivenRecogniser.load(path, CLIPS)
    assert texts(heard) == WANTED and greedy(heard) == ["a0", "a1", "a2"]


def test_whisper_writes_one_file_a_decode(tmp_path):
    for run, heat in (("cold", 0.0), ("one", 0.8), ("two", 0.8)):
        (tmp_path / run).mkdir()
        for i in range(3):
            text = {"cold": f" g{i}", "one": f" a{i}", "two": f" b{i}"}[run]
            doc = {
                "text": text,
                "segments": [{"text": text, "temperature": heat, "avg_logprob": -0.3}],
                "language": "en",
            }
            (tmp_path / run / f"take{i}.json").write_text(json.dumps(doc), encoding="utf-8")
    heard = GivenRecogniser.load(tmp_path, CLIPS)
    assert texts(heard) == WANTED and greedy(heard) == FIRST and heard.kind == "sampled"


def test_what_is_missing_or_cannot_be_placed_is_named(tmp_path):
    heard = GivenRecogniser.load(
        write(tmp_path / "a.jsonl", listed(0), {**listed(1), "greedy": None}, {"id": "zz", "text": "x"}), CLIPS
    )
    assert heard.describe()["not_placed"] == 1 and heard.has_answers(CLIPS[0]) and not heard.has_answers(CLIPS[2])
    with pytest.raises(CheckError, match=r"2 of 3 clips have no greedy answer among those given \(clip c1\)"):
        greedy(heard)
    with pytest.raises(CheckError, match="clip c2 has fewer than two"):
        texts(heard)
    with pytest.raises(UsageError, match="cannot be extended"):
        heard.sample(CLIPS[:1], "", 9, n=8, first=8, temperature=0.8, seed=0)
    for bad, said in [
        ({"id": "c0"}, r"bad.jsonl:1: no text"),
        ({"text": "x"}, r"bad.jsonl:1: no clip is named"),
        ([1], r"bad.jsonl:1: an object"),
        ({"id": "zz", "text": "x"}, "none of the 1 answers"),
        ({"id": "c0", "nbest": [3]}, r"bad.jsonl:1\[0\]: an answer must be"),
    ]:
        with pytest.raises(UsageError, match=said):
            GivenRecogniser.load(write(tmp_path / "bad.jsonl", bad), CLIPS)
    both = [{"id": "c0", "text": t, "temperature": 0} for t in ("x", "y")]
    with pytest.raises(UsageError, match="2 greedy answers that differ"):
        GivenRecogniser.load(write(tmp_path / "bad.jsonl", *both), CLIPS)


def sampled(i, seeds=(1, 2), **more):
    cold = {"id": f"c{i}", "pred_text": f"g{i}", "temperature": 0}
    return [cold, *({**cold, "pred_text": f"{'ab'[s - 1]}{i}", "temperature": 0.8, "seed": s, **more} for s in seeds)]


ROWS = [row for i in range(3) for row in sampled(i)]


def as_lines(rows):
    return "".join(json.dumps(r) + "\n" for r in rows)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("nemo.json", as_lines(ROWS).encode()),  # NeMo calls JSON lines .json
        ("bom.jsonl", as_lines(ROWS).encode("utf-8-sig")),
        ("windows.jsonl", as_lines(ROWS).replace("\n", "\r\n").encode()),
        ("packed.jsonl.gz", gzip.compress(as_lines(ROWS).encode())),
        ("wide.jsonl", as_lines(ROWS).encode("utf-16")),
        ("list.json", json.dumps(ROWS, indent=1).encode()),
        ("strings.jsonl", as_lines([{**r, "temperature": str(r["temperature"])} for r in ROWS]).encode()),
        ("reference.jsonl", as_lines([{**r, "text": "the reference"} for r in ROWS]).encode()),
        ("numbers.jsonl", as_lines([{**r, "tokens": [float("nan")], "score": float("nan")} for r in ROWS]).encode()),
    ],
)
def test_a_file_is_told_by_its_content(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    heard = GivenRecogniser.load(tmp_path / name, CLIPS)
    assert texts(heard) == WANTED and greedy(heard) == FIRST and heard.kind == "sampled"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "c0", "text": "reference 0", "pred_text": None, "temperature": 0.8}, "pred_text holds no text"),
        ({"id": "c0", "text": "reference 0", "nbest": None}, "nbest is no list"),
        ({"id": "c0", "text": "heard", "sentence": "reference 0"}, "sentence and text differ"),
    ],
)
def test_a_reference_that_stands_beside_is_never_taken_for_an_answer(row, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        GivenRecogniser.load(write(tmp_path / "a.jsonl", *ROWS, row), CLIPS)


def test_a_transcript_beside_a_list_is_not_the_greedy_answer(tmp_path):
    rows = [{"id": f"c{i}", "transcript": f"reference {i}", "nbest": [f"a{i}", f"b{i}"]} for i in range(3)]
    assert GivenRecogniser.load(write(tmp_path / "a.jsonl", *rows), CLIPS).first == {}


def lines_in(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_tables_of_two_columns(tmp_path):
    path = tmp_path / "a.tsv"
    for texts_ in (["one", "two", "three", "four", "five", "six"], list("123456")):
        heard = GivenRecogniser.load(lines_in(path, *(f"c{i // 2}\t{t}" for i, t in enumerate(texts_))), CLIPS)
        assert [t for group in texts(heard) for t in group] == texts_, "id and text, were the text a number"
    empty = GivenRecogniser.load(lines_in(tmp_path / "a.txt", "a", "", "b", "", "c", ""), CLIPS)
    assert texts(empty) == [["a", ""], ["b", ""], ["c", ""]], "an empty answer is one"
    for lines, said in [
        (["c0\tone\t-1", "c1\ttwo\t-1", "c2\tsix\t-1"], "a.tsv:1 has 3 columns"),
        (["text\tscore", "a\t-1", "b\t-2", "c\t-3"], "a.tsv:1 has no score"),
    ]:
        with pytest.raises(UsageError, match=said):
            GivenRecogniser.load(lines_in(path, *lines), CLIPS)
    with pytest.raises(UsageError, match=r"1 row\(s\) of the manifests cannot be read, so the lines of a.tsv"):
        GivenRecogniser.load(lines_in(path, *["a\t-1"] * 6), CLIPS, aside=1)


def test_whose_answer_it_is(tmp_path):
    clips = [
        Clip("x/take1.wav", Path("/data/x/take1.wav"), "r"), Clip("utt.001", Path("/data/rec.wav"), "r"),
        Clip("é", Path("/data/z.wav"), "r"),
    ]  # fmt: skip

    def kept(*rows):
        heard = GivenRecogniser.load(write(tmp_path / "a.jsonl", *rows), clips)
        return {k: [a.text for a in v] for k, v in heard.answers.items()}, heard.without

    found, without = kept(
        {"audio_filepath": "x/take1.wav", "text": "mine"}, {"audio_filepath": "y/take1.wav", "text": "another's"},
        {"id": "utt.002", "text": "another's"}, {"id": 7, "audio": "/elsewhere/rec.flac", "text": "by its file"},
        {"id": "e\u0301", "text": "composed"},
    )  # fmt: skip
    assert found == {"x/take1.wav": ["mine"], "utt.001": ["by its file"], "é": ["composed"]} and without == 2
    with pytest.raises(UsageError, match=r"y/take1 and of z/take1 could both be those of clip x/take1.wav"):
        kept({"audio": "y/take1.wav", "text": "a"}, {"audio": "z/take1.wav", "text": "b"})


def test_an_answer_given_twice_is_not_two(tmp_path):
    with pytest.raises(UsageError, match="every answer stands there twice"):
        GivenRecogniser.load(write(tmp_path / "a.jsonl", *ROWS, *ROWS), CLIPS)
    own = [Answer("c0", "a", (), "stop", 0, 7, 0.8).to_json()]
    with pytest.raises(UsageError, match="answer 0 of clip c0 stands there twice"):
        GivenRecogniser.load(write(tmp_path / "a.jsonl", *own, *own), CLIPS)
    stuck = [{**r, "pred_text": "x", "seed": 1 if r.get("seed") else None} for r in ROWS]
    assert texts(GivenRecogniser.load(write(tmp_path / "a.jsonl", *stuck), CLIPS)) == [["x", "x"]] * 3


def test_answers_of_test_rows_stay_unread(tmp_path):
    clips = [*CLIPS[:2], replace(CLIPS[2], split="test")]
    heard = GivenRecogniser.load(write(tmp_path / "a.jsonl", *ROWS), clips)
    assert set(heard.answers) == set(heard.first) == {"c0", "c1"} and heard.without == 0


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.json", b"3", "an object or a list"),
        ("a.json", b"[" * 100_000, "is not JSON"),
        ("a.jsonl", b"", "are empty"),
        ("a.jsonl.gz", gzip.compress(as_lines(ROWS).encode())[:-9], "cannot be read"),
        ("a.jsonl", b"\x00\xff", "is not UTF-8"),
    ],
)
def test_what_is_no_file_of_answers_is_refused_in_a_sentence(name, data, said, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=said):
        GivenRecogniser.load(tmp_path / name, CLIPS)
    with pytest.raises(UsageError, match="are not there"):
        GivenRecogniser.load(tmp_path / "nowhere.jsonl", CLIPS)
