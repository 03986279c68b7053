import json
from pathlib import Path

from agent.brief import Brief
from agent.findings import look


def manifest(path: Path, *rows: dict[str, str]) -> str:
    path.write_text("".join(json.dumps({"audio_filepath": "a.wav", "duration": 1.0, **row}) + "\n" for row in rows))
    return path.name


def test_languages_are_found_when_every_row_names_one(tmp_path: Path) -> None:
    train = manifest(tmp_path / "a.jsonl", {"text": "ja", "lang": "de"}, {"text": "oui", "lang": "fr"})
    test = manifest(tmp_path / "b.jsonl", {"text": "nein", "lang": "German"})
    brief = Brief.build({"name": "x", "seed_model": "m", "data": {"train": train, "test": test}}, base=tmp_path)
    assert look(brief) == {"languages": ["de", "fr"], "texts": 3}
    unnamed = manifest(tmp_path / "c.jsonl", {"text": "ja"})
    brief = Brief.build({"name": "x", "seed_model": "m", "data": {"train": train, "test": unnamed}}, base=tmp_path)
    assert "languages" not in look(brief)


def test_labels_and_an_english_only_model_are_found(tmp_path: Path) -> None:
    train = manifest(tmp_path / "a.jsonl", {"label": "yes"}, {"label": "no"})
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"vocab_size": 51864}')
    brief = Brief.build({"name": "x", "seed_model": "model", "data": {"train": train}}, base=tmp_path)
    assert look(brief) == {"labels": ["no", "yes"], "texts": 0, "english_only": True}
    assert {q.id: q.default for q in brief.missing(look(brief)) if q.id in ("task", "languages")} == {
        "task": "label",
        "languages": ["en"],
    }


def test_what_cannot_be_read_is_left_to_the_step_that_needs_it(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text("{")
    brief = Brief.build({"name": "x", "seed_model": "model", "data": {"train": "none.jsonl"}}, base=tmp_path)
    assert look(brief) == {"texts": 0}
