"""A label task on real speech, end to end: spoken digits as labels, from a brief to a clean audit."""

import json
import shutil

import pytest
import yaml

from tests.e2e.conftest import PRESET, rehear

pytestmark = [pytest.mark.seed_model, pytest.mark.speech]

NAMES = "zero one two three four five six seven eight nine".split()
SPEAKERS = {"train": ("george", "jackson"), "dev": ("lucas",), "test": ("nicolas",)}
TAKES = {"train": 1, "dev": 1, "test": 1}


@pytest.fixture(scope="session")
def label_brief(tmp_path_factory, shared_speech, seed_folder):
    """Ten digits as labels, a speaker to a split: the manifests hold labels and no transcripts."""
    folder = tmp_path_factory.mktemp("digits")
    digits = shared_speech / "digits"
    rows = [json.loads(x) for x in (digits / "manifest.jsonl").read_text().splitlines()]
    for split, speakers in SPEAKERS.items():
        kept = [
            {
                "id": r["id"],
                "audio_filepath": str(digits / r["audio_filepath"]),
                "label": NAMES[int(r["label"])],
                "speaker": r["speaker"],
                "lang": "en",
            }
            for r in rows
            if r["speaker"] in speakers and r["take"] < TAKES[split]
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in kept))
    (folder / "preset.yaml").write_text(yaml.safe_dump(PRESET))
    brief = {
        "name": "digits",
        "task": "label",
        "languages": ["en"],
        "seed_model": "embedded",
        "data": {split: f"{split}.jsonl" for split in SPEAKERS},
        "metric": "macro_recall",
        "protected": ["nine"],
        "class_limit": 0.5,
        "prompts": ["", "zero, one, two, three, four, five, six, seven, eight, nine"],
        "preset": "preset.yaml",
        "budget": {"cpu_minutes": 60},
        "reused_benchmark": True,
    }
    path = folder / "brief.yaml"
    path.write_text(yaml.safe_dump(brief))
    return path


@pytest.fixture(scope="session")
def labelled(tmp_path_factory, label_brief):
    """(work directory, final document) of one label run."""
    workdir = tmp_path_factory.mktemp("labels") / "digits"
    done = rehear("run", label_brief, "--workdir", workdir, "--json", cwd=workdir.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return workdir, json.loads(done.stdout)


def result(workdir):
    return json.loads((workdir / "report/result.json").read_text())


def test_a_label_task_ends_with_strict_parsed_and_comparator_scores_of_every_model(labelled):
    workdir, document = labelled
    told = result(workdir)
    assert document["status"] == "finished" and told["task"] == "label" and told["metric"] == "macro_error"
    assert told["contract"]["contract"]["reward"]["name"] == "label_exact"
    for row in told["table"]:
        model = next(m for m in told["labels"]["models"] if m["eval"] == row["eval"])
        assert {"strict", "parsed", "comparator", "recall"} <= set(model)
        assert row["macro_error"] == pytest.approx(1 - model["strict"]["macro_recall"])
        assert row["insertions"] + row["deletions"] + row["substitutions"] == round(row["label_error"] * row["rows"])
    seed = next(m for m in told["labels"]["models"] if (m["split"], m["model"]) == ("test", "seed"))
    assert 0 <= seed["strict"]["accuracy"] <= seed["parsed"]["accuracy"] <= 1
    assert sum(sum(row.values()) for row in told["labels"]["confusion"]["seed"].values()) == 10


def test_the_comparator_saw_the_dev_answers_of_the_seed_and_nothing_else(labelled):
    fitted = json.loads((labelled[0] / "data/comparator.jsonl").read_text())
    assert (fitted["split"], fitted["fitted_on"]) == ("dev", 10) and fitted["labels"] == sorted(NAMES)


def test_protected_classes_are_part_of_the_declared_rule_and_of_every_candidate(labelled):
    records = [json.loads(x) for x in (labelled[0] / "ledger.jsonl").read_text().splitlines()]
    select = [r for r in records if r["kind"] == "decision" and r["payload"]["what"] == "select"]
    if not select:
        pytest.skip("the seed's samples held nothing to learn on this machine")
    details = select[-1]["payload"]["details"]
    assert "protected classes" in details["rule"]
    assert all(set(c["recall"]) == {"nine"} for c in details["candidates"])


def test_the_page_shows_the_labels_and_calls_the_benchmark_reused(labelled):
    page = (labelled[0] / "report/report.html").read_text(encoding="utf-8")
    for words in ("Recall by class", "Comparator", "macro recall", "reused benchmark"):
        assert words in page, words


def test_the_audit_finds_every_label_figure_again(labelled):
    found = json.loads(rehear("audit", labelled[0], "--json", cwd=labelled[0].parent).stdout)
    assert found["ok"], found["violations"]


@pytest.mark.parametrize(
    "cheat, rule",
    [("answer", "eval-files"), ("comparator", "label-comparator"), ("reading", "label-report")],
)
def test_label_cheats_are_caught(labelled, tmp_path, cheat, rule):
    copy = tmp_path / "copy"
    shutil.copytree(labelled[0], copy)
    if cheat == "answer":
        path = copy / "evals/seed-test/rows.jsonl"
        lines = path.read_text().split("\n")
        row = json.loads(lines[0])
        lines[0] = json.dumps({**row, "hyp": row["ref"] + "x"}, sort_keys=True)
        path.write_text("\n".join(lines))
    elif cheat == "comparator":
        path = copy / "data/comparator.jsonl"
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "fallback": "two", "aliases": {"so": "four"}}) + "\n"
        )
    else:
        path = copy / "report/result.json"
        told = json.loads(path.read_text())
        told["labels"]["models"][0]["comparator"]["accuracy"] = 0.99
        path.write_text(json.dumps(told))
    found = json.loads(rehear("audit", copy, "--json", cwd=tmp_path).stdout)
    assert rule in {v["rule"] for v in found["violations"]}, found["violations"]


@pytest.mark.parametrize(
    "change, says",
    [
        ({"labels": ["zero", "one"]}, "label"),
        ({"protected": ["eleven"]}, "eleven"),
        ({"metric": "wer"}, "metric"),
        ({"labels": ["one", "One.", "two"]}, "one"),
    ],
)
def test_a_label_brief_that_cannot_be_scored_is_refused(label_brief, tmp_path, change, says):
    brief = {**yaml.safe_load(label_brief.read_text()), **change}
    path = label_brief.parent / f"bad-{says}.yaml"
    path.write_text(yaml.safe_dump(brief))
    done = rehear("run", path, "--workdir", tmp_path / "w", "--json", cwd=tmp_path)
    assert done.returncode in (2, 5) and says in json.loads(done.stdout)["error"]["message"]


def test_mining_a_label_task_tells_both_readings_and_names_classes_without_contrast(label_brief, tmp_path):
    done = rehear("mine", label_brief, "--workdir", tmp_path / "w", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "w/report/headroom.json").read_text())
    report, figures = told["labels"], told["figures"]
    classes = {c["label"]: c for c in report["strict"]["classes"]}
    assert set(classes) == set(NAMES) and sum(c["clips"] for c in classes.values()) == figures["clips"]
    assert set(report["without_contrast"]) == {k for k, c in classes.items() if c["clips"] and not c["contrast"]}
    assert report["parsed"]["greedy"] >= report["strict"]["greedy"]
    assert figures["greedy"] == pytest.approx(1 - report["strict"]["greedy"]) and not figures["repairs"]
    text = (tmp_path / "w/report/headroom.txt").read_text()
    assert "strict" in text and "greedy right" in text
    assert rehear("audit", tmp_path / "w", "--json", cwd=tmp_path).returncode == 0
