from pathlib import Path
from typing import Any

import pytest

from agent.brief import QUESTION_IDS, Brief
from tools.errors import UsageError

DATA = {"train": "a.jsonl", "dev": "b.jsonl", "test": "c.jsonl", "retention": "r.jsonl"}
COMPLETE: dict[str, Any] = {
    "name": "complete",
    "task": "asr",
    "languages": ["en"],
    "seed_model": "embedded",
    "data": DATA,
    "metric": "wer",
    "profile": "english",
    "retention_limit": 0.01,
    "prompts": ["", "boxes"],
    "budget": {"cpu_minutes": 40},
    "where": "local",
    "random_seed": 0,
    "keep_text": False,
    "preset": "auto",
    "reused_benchmark": False,
}
SAFE = {  # what may be assumed when nothing but data and a budget was said, in the order of asking
    "task": "asr",
    "seed_model": "embedded",
    "languages": ["en"],
    "splits": "speaker",
    "retention": "none",
    "metric": "wer",
    "profile": "english",
    "retention_limit": 0.01,
    "prompts": [],
    "reused_benchmark": False,
    "where": "local",
    "random_seed": 0,
    "keep_text": False,
    "preset": "auto",
}


def without(*keys: str, **more: Any) -> dict[str, Any]:
    """The complete brief without some keys (`data.dev` for a part), and with others."""
    brief = {k: dict(v) if isinstance(v, dict) else v for k, v in COMPLETE.items()}
    for key in keys:
        whole, _, part = key.partition(".")
        del (brief[whole] if part else brief)[part or whole]
    return {**brief, **more}


# name, brief, what looking told, questions that must be asked, assumptions expected (None: not looked at)
BRIEFS: list[tuple[str, dict[str, Any], dict[str, Any], list[str], dict[str, Any] | None]] = [
    ("complete", COMPLETE, {}, [], {}),
    (
        "empty",
        {"name": "x"},
        {},
        ["data", "budget"],
        {k: v for k, v in SAFE.items() if k not in ("splits", "retention")},
    ),
    ("data only", {"name": "x", "data": {"train": "a"}}, {}, ["budget"], SAFE),
    ("budget only", {"name": "x", "budget": {"gpu_hours": 2}}, {}, ["data"], None),
    ("data and budget", {"name": "x", "data": {"train": "a"}, "budget": {"cpu_minutes": 5}}, {}, [], SAFE),
    ("a manifest to split", {"name": "x", "data": {"manifest": "m"}, "budget": {"cpu_minutes": 5}}, {}, [], SAFE),
    ("split by recording", without(data={"manifest": "m", "split_by": "recording", "retention": "none"}), {}, [], {}),
    ("no task", without("task"), {}, [], {"task": "asr"}),
    (
        "no task, labels found",
        without("task"),
        {"labels": ["yes", "no"], "texts": 0},
        [],
        {"task": "label", "protected": []},
    ),
    ("no task, labels and texts", without("task"), {"labels": ["yes", "no"], "texts": 4}, [], {"task": "asr"}),
    ("no task, labels said", without("task", labels=["yes", "no"]), {}, [], {"task": "label", "protected": []}),
    ("no languages, embedded model", without("languages"), {}, [], {"languages": ["en"]}),
    ("no languages, own model", without("languages", seed_model="models/mine"), {}, ["languages"], {}),
    (
        "no languages, own English model",
        without("languages", seed_model="m"),
        {"english_only": True},
        [],
        {"languages": ["en"]},
    ),
    (
        "no languages, found",
        without("languages", seed_model="m"),
        {"languages": ["de", "fr"]},
        [],
        {"languages": ["de", "fr"]},
    ),
    ("no model, English", without("seed_model"), {}, [], {"seed_model": "embedded"}),
    ("no model, German", without("seed_model", languages=["de"]), {}, ["seed_model"], {}),
    (
        "no model, German found",
        without("seed_model", "languages"),
        {"languages": ["de"]},
        ["seed_model"],
        {"languages": ["de"]},
    ),
    ("no data", without("data"), {}, ["data"], {}),
    ("no train", without("data.train"), {}, ["data"], {}),
    ("only a test", without(data={"test": "t", "retention": "none"}), {}, ["data"], {"splits": "speaker"}),
    ("no dev", without("data.dev"), {}, [], {"splits": "speaker"}),
    ("no test", without("data.test", "reused_benchmark"), {}, [], {"splits": "speaker", "reused_benchmark": False}),
    ("no retention", without("data.retention"), {}, [], {"retention": "none"}),
    ("retention declined", without(data={**DATA, "retention": "none"}), {}, [], {}),
    ("no metric", without("metric"), {}, [], {"metric": "wer"}),
    ("no metric, labels", without("metric", task="label"), {}, [], {"metric": "macro_recall", "protected": []}),
    ("no metric, Chinese", without("metric", languages=["zh"]), {}, [], {"metric": "cer"}),
    ("no metric, Thai found", without("metric", "languages", seed_model="m"), {"languages": ["th"]}, [], None),
    ("no profile", without("profile"), {}, [], {"profile": "english"}),
    ("no profile, German", without("profile", languages=["de"]), {}, [], {"profile": "basic"}),
    ("no profile, labels", without("profile", task="label"), {}, [], {"profile": "basic", "protected": []}),
    ("a protected label", without(task="label", protected=["stop"]), {}, [], {"class_limit": 0.05}),
    ("no limit", without("retention_limit"), {}, [], {"retention_limit": 0.01}),
    ("no prompts", without("prompts"), {}, [], {"prompts": []}),
    ("no budget", without("budget"), {}, ["budget"], {}),
    ("no budget, no data", without("budget", "data"), {}, ["data", "budget"], {}),
    ("money", without(budget={"money": 20, "currency": "EUR", "prices": {"cpu_hour": 0.1}}), {}, [], {}),
    ("no seed", without("random_seed"), {}, [], {"random_seed": 0}),
    ("nothing but defaults missing", without("where", "keep_text", "preset", "reused_benchmark"), {}, [], None),
    ("several training manifests", without(data={**DATA, "train": ["a.jsonl", "b.jsonl"]}), {}, [], {}),
]


@pytest.mark.parametrize("values, found, asked, assumed", [b[1:] for b in BRIEFS], ids=[b[0] for b in BRIEFS])
def test_brief_asks_for_exactly_what_is_missing(
    values: dict[str, Any], found: dict[str, Any], asked: list[str], assumed: dict[str, Any] | None
) -> None:
    questions = Brief.build(values).missing(found)
    assert [q.id for q in questions if q.default is None] == asked
    if assumed is not None:
        assert {q.id: q.default for q in questions if q.default is not None} == assumed
    for question in questions:
        assert question.id in QUESTION_IDS and question.text.endswith("?") and question.why and question.schema


def test_there_are_at_least_thirty_briefs() -> None:
    assert len(BRIEFS) >= 30


@pytest.mark.parametrize("values", [b[1] for b in BRIEFS if not b[3]], ids=[b[0] for b in BRIEFS if not b[3]])
def test_taking_every_default_leaves_nothing_open(values: dict[str, Any]) -> None:
    brief = Brief.build(values)
    for question in brief.missing():
        if question.default is not None:
            brief = brief.answered({question.id: question.default})
    assert [q.id for q in brief.missing() if q.default is not None] == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"nme": "x"}, r"unknown key nme \(closest: name\)"),
    ({"data": {"trian": "x"}}, r"unknown key data.trian \(closest: train\)"),
    ({"budget": {"cpu_minuts": 3}}, r"unknown key budget.cpu_minuts \(closest: cpu_minutes\)"),
    ({"zzz": 1}, r"unknown key zzz: known are"),
    ({"budget": {"cpu_minutes": 0}}, "budget.cpu_minutes: input should be greater than 0"),
    ({"budget": {"cpu_minutes": 3, "gpu_hours": 1}}, "budget: give exactly one of"),
    ({"budget": {"money": 3}}, "an unknown price is refused"),
    ({"budget": 40}, "budget: "),
    ({"data": {"train": 3}}, "data.train: "),
    ({"data": {"train": []}}, "data.train: a path is needed"),
    ({"data": {"train": "a", "manifest": "b"}}, "data: give either manifest"),
    ({"data": {"manifest": "b", "split_by": "shoe size"}}, "data.split_by: input should be 'speaker' or 'recording'"),
    ({"task": "translate"}, "task: input should be 'asr' or 'label'"),
    ({"languages": []}, "languages: "),
    ({"metric": "bleu"}, "metric: "),
    ({"retention_limit": -0.1}, "retention_limit: "),
    ({"retention_limit": float("nan")}, "retention_limit: "),
    ({"random_seed": 1.5}, "random_seed: "),
    ({"name": "../up"}, "name: "),
    ({"where": "moon"}, "where: input should be 'local'"),
]


@pytest.mark.parametrize("values, text", BAD, ids=[str(b[0])[:40] for b in BAD])
def test_wrong_values_are_refused_with_the_key(values: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text) as err:
        Brief.build(values)
    assert "\n" not in str(err.value)


def test_load_resolves_paths_against_the_briefs_folder(tmp_path: Path) -> None:
    (tmp_path / "my run.yaml").write_text("data: {train: sub/a.jsonl, test: /abs/t.jsonl}\nlanguages: de\n")
    brief = Brief.load(tmp_path / "my run.yaml")
    assert brief.name == "my-run" and brief.languages == ["de"]
    assert brief.manifests() == {"train": [tmp_path / "sub/a.jsonl"], "test": [Path("/abs/t.jsonl")]}
    with pytest.raises(UsageError, match=r"data.train: there is no manifest at .*sub/a.jsonl"):
        brief.check_files()


@pytest.mark.parametrize("text", ["- a list", "name: [", "name: \x00", "reward: cer\nreward: wer"])
def test_what_is_no_brief_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"b\.yaml"):
        Brief.load(tmp_path / "b.yaml")


def test_a_missing_brief_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Brief.load(tmp_path / "none.yaml")


def test_digest_is_of_what_was_said_and_not_of_where() -> None:
    a, b = Brief.build(COMPLETE, base="/one"), Brief.build(COMPLETE, base="/two")
    assert a.digest == b.digest != Brief.build(without("prompts")).digest


def test_budget_flag_and_answers() -> None:
    brief = Brief.build(without("budget"))
    assert brief.with_budget("40cpu_minutes").answer_to("budget") == {"cpu_minutes": 40.0}
    assert brief.answered({"splits": "recording"}).answer_to("splits") == "recording"
    money = Brief.build(without(budget={"money": 20, "currency": "EUR", "prices": {"cpu_hour": 0.1}}))
    assert money.with_budget("30 money").answer_to("budget")["prices"] == {"cpu_hour": 0.1}
    for bad in ("40", "cpu_minutes", "40 apples", "-3cpu_minutes"):
        with pytest.raises(UsageError, match="--budget"):
            brief.with_budget(bad)
    with pytest.raises(UsageError, match="no question 'languges'"):
        brief.answered({"languges": ["en"]})
    with pytest.raises(UsageError, match="metric"):
        brief.answered({"metric": "bleu"})
