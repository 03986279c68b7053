"""A brief written to be filled in: valid as it stands, nothing assumed that nobody may assume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.brief import Brief
from agent.form import write_form
from tools.errors import UsageError


def manifest(path: Path, **row: object) -> Path:
    body = {"audio_filepath": "a.wav", "text": "hello", "lang": "de", "duration": 1.0, "speaker": "s", **row}
    path.write_text(json.dumps(body) + "\n")
    return path


def test_an_empty_form_is_a_brief_that_asks_for_data_and_budget(tmp_path: Path) -> None:
    said = write_form(tmp_path / "mine.yaml", {}, None)
    assert said["open"] == ["data", "budget"]
    brief = Brief.load(tmp_path / "mine.yaml")
    assert brief.name == "mine" and brief.to_json() == {"name": "mine"}
    assert (tmp_path / "mine.yaml").read_text().count("FILL IN") == 2


def test_what_is_given_and_what_the_manifest_tells_is_filled_in(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    train = manifest(tmp_path / "data" / "train.jsonl")
    said = write_form(tmp_path / "briefs" / "b.yaml", {"train": train, "dev": None}, "20cpu_minutes")
    assert said["open"] == ["seed_model"]  # German: the embedded model knows English only
    brief = Brief.load(tmp_path / "briefs" / "b.yaml")
    assert brief.manifests()["train"][0].resolve() == train and brief.budget is not None and brief.budget.cap == 20
    text = (tmp_path / "briefs" / "b.yaml").read_text()
    assert "# languages: [de]   # the languages named in the manifests" in text
    assert "data: {train: ../data/train.jsonl}\n" in text


def test_every_commented_default_is_a_valid_answer(tmp_path: Path) -> None:
    train = manifest(tmp_path / "train.jsonl", lang="en")
    write_form(tmp_path / "b.yaml", {"train": train}, "20cpu_minutes")
    lines = (tmp_path / "b.yaml").read_text().splitlines()
    plain = [line.removeprefix("# ") if "   # " in line and " inside data" not in line else line for line in lines]
    (tmp_path / "c.yaml").write_text("\n".join(plain))
    brief = Brief.load(tmp_path / "c.yaml")
    assert {q.id for q in brief.missing({"languages": ["en"]})} == {"splits", "retention"}


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("")
    with pytest.raises(UsageError, match=r"there\.yaml exists"):
        write_form(tmp_path / "there.yaml", {}, None)
    with pytest.raises(UsageError, match="--train: there is no manifest"):
        write_form(tmp_path / "b.yaml", {"train": tmp_path / "no.jsonl"}, None)
    with pytest.raises(UsageError):
        write_form(tmp_path / "b.yaml", {}, "twenty")
    assert not (tmp_path / "b.yaml").exists()
