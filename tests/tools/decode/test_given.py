"""Answers that others decoded, in the forms they come in: all land on their clips, and what is missing is named."""

import json
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
