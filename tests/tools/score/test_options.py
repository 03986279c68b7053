"""What `rehear score` and `rehear compare` say beyond the totals, streamed from files."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.score.systems import two_systems
from tests.tools.score.test_files import put
from tools.errors import CheckError, UsageError
from tools.report.comparison import comparison_figures
from tools.rows import ScoredRow
from tools.score import compare_rows, score_by
from tools.score.changes import compare_table, label_table, score_table
from tools.score.filepairs import Terms, compare_files
from tools.score.files import Wanted, label_files, read_keywords, score_files, trn_files
from tools.score.inference import mapsswe, noise_floor, non_inferior
from tools.score.store import RowStore
from tools.text import profile

BASIC = profile("basic")


def written(folder: Path, *systems: list[ScoredRow]) -> list[Path]:
    """The systems' hypotheses in shuffled files of their own, then the references."""
    folder.mkdir(exist_ok=True)
    paths = []
    for i, rows in enumerate(systems):
        shuffled = random.Random(i).sample(rows, len(rows))
        paths.append(put(folder / f"hyp{i}.jsonl", *({"id": r.id, "text": r.hyp} for r in shuffled)))
    refs = (
        {"id": r.id, "text": r.ref, "speaker": r.speaker, "lang": r.lang, "duration": r.duration_s, "audio": f"{r.id}.wav",
         "domain": "calls" if r.id < "s05" else "news"}
        for r in systems[0]
    )  # fmt: skip
    return [*paths, put(folder / "ref.jsonl", *refs)]


def test_a_store_joins_files_of_any_order(tmp_path: Path) -> None:
    a, b = two_systems(11)
    store = RowStore(written(tmp_path, a, b)[2], written(tmp_path, a, b)[:2])
    strip = [(r.id, r.ref, r.hyp, r.speaker) for r in sorted(a, key=lambda r: r.id)]
    assert [(r.id, r.ref, r.hyp, r.speaker) for r in store.rows()] == strip
    assert [(x.id, x.hyp, y.hyp) for x, y in store.pairs()] == [
        (x.id, x.hyp, y.hyp) for x, y in sorted(zip(a, b), key=lambda p: p[0].id)
    ]
    assert (store.rows_without("speaker"), store.rows_without("recording")) == (0, len(a))
    assert store.notes("audio")["s00-000"] == "s00-000.wav"


def test_ids_keep_odd_characters(tmp_path: Path) -> None:
    keys = ["é", "z", "\ud800", "a b", "𝒜", "1"]
    ref = tmp_path / "r.jsonl"
    ref.write_text("".join(json.dumps({"id": k, "text": "x"}) + "\n" for k in keys))
    assert [r.id for r in RowStore(ref, [ref]).rows()] == sorted(keys)


def test_slices_keywords_confusions_worst_rows_and_rules(tmp_path: Path) -> None:
    a, _ = two_systems(11)
    hyp, ref = written(tmp_path, a)
    words = tmp_path / "words.txt"
    words.write_text("crates\nmonday morning\n")
    by = ("speaker", "domain", "duration", "script", "numbers")
    wanted = Wanted(by, read_keywords(words), worst=2, confused=3, rules=True)
    out = score_files(hyp, ref, "english", wanted=wanted)
    expected = score_by(a, "speaker", profile("english"))
    assert {k: v["value"] for k, v in out["slices"]["speaker"].items()} == {k: s.value for k, s in expected.items()}
    assert set(out["slices"]["domain"]) == {"calls", "news"} and set(out["slices"]["duration"]) == {""}
    assert all(sum(s["rows"] for s in parts.values()) == len(a) for parts in out["slices"].values())
    assert out["keywords"]["keywords"]["said"] == sum(r.ref.split().count("crates") for r in a) + sum(
        r.ref.count("monday morning") for r in a
    )
    assert [c["heard"] for c in out["confusions"]["substitutions"]] == ["zebra"] * 3
    assert out["worst"][0]["audio"] == f"{out['worst'][0]['id']}.wav"
    assert out["rules"][-1]["rate"] == out["value"]
    table = score_table(out)
    assert "by domain" in table and "worst rows" in table and "crates" in table and "-> zebra" in table


def test_keywords_by_class_and_bad_lists(tmp_path: Path) -> None:
    path = tmp_path / "k.json"
    path.write_text('{"drug": ["aspirin"], "place": ["york", "new york"]}')
    assert set(read_keywords(path)) == {"drug", "place"}
    for text in ("", "{}", '{"drug": "aspirin"}', "[1]", '{"drug": []}', "{"):
        path.write_text(text)
        with pytest.raises(UsageError):
            read_keywords(path)
    a, _ = two_systems(2)
    with pytest.raises(UsageError, match="Slices cannot be made by 'mood'"):
        score_files(*written(tmp_path, a), wanted=Wanted(("mood",)))


def test_labels_from_files(tmp_path: Path) -> None:
    ref = put(tmp_path / "r.jsonl", *({"id": i, "text": t} for i, t in enumerate(["yes", "no", "yes", "no"])))
    hyp = put(
        tmp_path / "h.jsonl", *({"id": i, "text": t} for i, t in enumerate(["Yes.", "it is no", "yes and no", ""]))
    )
    out = label_files(hyp, ref)
    assert (out["strict"]["correct"], out["parsed"]["correct"], out["parsed"]["invalid"]) == (1, 2, 2)
    assert "parsed" in label_table(out)
    with pytest.raises(CheckError, match="no label of the task"):
        label_files(hyp, ref, labels=["yes", "maybe not"])


def test_trn_for_sclite(tmp_path: Path) -> None:
    a, _ = two_systems(2, clips=3)
    hyp, ref = written(tmp_path / "in", a)
    paths = trn_files(hyp, ref, tmp_path / "out", "basic")
    again = score_files(paths[1], paths[0], "exact")
    assert again["value"] == score_files(hyp, ref)["value"] and again["rows"] == 6


def test_noise_margin_slices_and_mapsswe_are_those_of_the_functions(tmp_path: Path) -> None:
    a, b = two_systems(24)
    again = [ScoredRow(r.id, r.ref, r.hyp if i % 9 else "zebra", r.speaker, lang=r.lang) for i, r in enumerate(a)]
    hyp_a, hyp_b, hyp_c, ref = written(tmp_path, a, b, again)
    terms = Terms(again=hyp_c, margin=0.01, slices=("domain", "lang"))
    out = compare_files(hyp_a, hyp_b, ref, terms=terms)
    floor = noise_floor(a, again, BASIC)
    assert out["noise"] == floor.to_json() and out["noise_floor"] == floor.delta > 0
    whole = compare_rows(a, b, BASIC, noise_floor=floor.delta)
    assert (out["verdict"], out["delta"], out["permutation_p"]) == (whole.verdict, whole.delta, whole.permutation_p)
    assert out["non_inferiority"] == non_inferior(a, b, BASIC, 0.01).to_json()
    assert out["mapsswe"] == mapsswe(a, b, BASIC).to_json()
    calls = out["slices"]["domain"]["calls"]
    assert calls["verdict"] == "too_few_blocks" and calls["blocks"] == 5
    assert calls["holm_p"] >= calls["permutation_p"] and out["slices"]["lang"]["en"]["delta"] == whole.delta
    table = compare_table(out)
    assert "noise floor" in table and "no worse than" in table and "p after Holm" in table
    assert compare_files(hyp_a, hyp_b, ref, terms=Terms(again=hyp_b))["verdict"] == "not_shown"


def test_a_slice_claims_nothing_that_the_family_does_not_carry(tmp_path: Path) -> None:
    """Twenty slices without any gain: one of them is "better" by itself sooner or later, none after Holm."""
    plain = adjusted = 0
    for seed in range(3):
        a, b = two_systems(200, clips=2, error_a=0.25, error_b=0.25, seed=seed)
        hyp_a, hyp_b, ref = written(tmp_path, a, b)
        rows = [json.loads(line) for line in ref.read_text().splitlines()]
        put(ref, *({**row, "domain": f"d{int(row['speaker'][1:]) % 20:02}"} for row in rows))
        found = compare_files(hyp_a, hyp_b, ref, terms=Terms(slices=("domain",)))["slices"]["domain"].values()
        plain += sum(s["permutation_p"] <= 0.05 for s in found)
        adjusted += sum(s["verdict"] in ("better", "worse") for s in found)
    assert plain > 0 and adjusted == 0


def test_refused_terms(tmp_path: Path) -> None:
    a, b = two_systems(3)
    paths = written(tmp_path, a, b)
    for terms, message in (
        (Terms(by="mood"), "Blocks cannot"),
        (Terms(margin=-1.0), "margin"),
        (Terms(slices=("x",)), "Slices"),
    ):
        with pytest.raises(UsageError, match=message):
            compare_files(*paths, terms=terms)


@pytest.mark.parametrize("speakers", [12, 40])
def test_plots(tmp_path: Path, speakers: int) -> None:
    document = compare_files(*written(tmp_path, *two_systems(speakers)))
    made = comparison_figures(document)
    assert set(made) == {"clip_changes.png", "by_speaker.png"}
    assert all(png.startswith(b"\x89PNG") for png in made.values()) and made == comparison_figures(document)
    other = {**document, "clip_changes": [{"errors": 0, "clips": 5}]}
    assert comparison_figures(other)["clip_changes.png"] != made["clip_changes.png"]


MEMORY = """
import resource, sys
from tools.score.filepairs import compare_files
from tools.score.files import score_files
score_files(sys.argv[1], sys.argv[3]); compare_files(*sys.argv[1:4])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_grow_with_the_files(tmp_path: Path) -> None:
    peaks = []
    for i, clips in enumerate((40, 1_200)):
        paths = written(tmp_path / str(i), *two_systems(20, clips))
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, *map(str, paths)], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout))
    size = sum(path.stat().st_size for path in (tmp_path / "1").iterdir()) / 2**20
    assert peaks[1] - peaks[0] < 35, (peaks, size)


def test_a_program_is_asked_in_batches_whatever_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A customer's normaliser runs a few times, not once a text, even where its memory is small."""
    from tools.text import custom

    monkeypatch.setattr(custom, "_CACHE", 50)
    runs: list[int] = []
    run = custom.Command._run
    monkeypatch.setattr(custom.Command, "_run", lambda self, texts: runs.append(len(texts)) or run(self, texts))
    a, b = two_systems(12)
    hyp_a, hyp_b, ref = written(tmp_path, a, b)
    wanted = Wanted(("script",), {"words": ["crates"]}, worst=2, confused=2, rules=True)
    assert score_files(hyp_a, ref, "command: cat", wanted=wanted)["rules"]
    assert compare_files(hyp_a, hyp_b, ref, "command: cat", terms=Terms(again=hyp_b))["noise"]
    assert len(runs) < 20
