"""What the skill demands in so many words, shown on runs through the real steps (no model, seconds each)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.ledger.audit import audit
from agent.ledger.chain import Record, read_ledger
from agent.steps import reading, summary
from agent.steps.runs import changed_settings
from tests.cheats.speech import FakeRecogniser
from tests.cheats.workdirs import SIZES, Maker
from tools.report.caveats import caveats
from tools.report.schema import parse_result
from tools.rows import Answer, ScoredRow

YES_NO = ("yes", "no", "stop")


def records(workdir: Path, kind: str, **match: Any) -> list[Record]:
    found = [r for r in read_ledger(workdir)[0] if r.kind == kind]
    return [r for r in found if all(r.payload.get(k) == v for k, v in match.items())]


def result(workdir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((workdir / "report/result.json").read_text())
    return found


def preset(folder: Path, **more: Any) -> str:
    body = {"updates": 20, "groups": 6, "answers": 8, "checkpoint_every": 5, "optimiser_steps": 2, **more}
    (folder / "preset.yaml").write_text(yaml.safe_dump(body))
    return str(folder / "preset.yaml")


# -- section 2 --------------------------------------------------------------------------------------------------------


def test_answers_in_another_script_are_refused_before_the_contract_is_frozen(
    maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def russian(self: Any, clip: Any, prompt: str, limit: int, index: int, heat: Any, seed: int = 0) -> Answer:
        return Answer(clip.id, "пожалуйста привезите шесть ящиков", (1, 2), "stop", index, None, 0.0, (-0.1, -0.1))

    monkeypatch.setattr(FakeRecogniser, "_answer", russian)
    ended = Maker(maker.root).run(tmp_path / "w")
    assert ended["state"] == "baseline" and ended["error"]["exit_code"] == 5 and "script" in ended["error"]["message"]
    assert not records(tmp_path / "w", "freeze")


def test_number_style_and_language_are_told_with_their_shares(finished: Path, maker: Maker) -> None:
    rows = [
        ScoredRow("a", "six crates", "6 crates", lang="en"),
        ScoredRow("b", "move it", "move it", lang="en"),
        ScoredRow("c", "move the crates", "der die und nicht das ist", lang="en"),
        ScoredRow("d", "go", "<|nospeech|> go", lang="en"),
    ]
    with maker.session(finished) as context:
        shares = reading.shares_of(context, rows)
    assert shares == {"script": 0.0, "language": 0.25, "numbers": 0.25, "prompt": 0.25, "vocabulary": 0.0}
    assert records(finished, "decision", what="reading")[0].seq < records(finished, "freeze")[0].seq


@pytest.fixture(scope="session")
def label_maker(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """The same corpus with one of three labels a clip."""
    made = Maker(
        tmp_path_factory.mktemp("labels"), skill=dict.fromkeys((5, 10, 15, 20), 0.05), task="label", protected=["stop"]
    )
    for split in SIZES:
        path = made.root / f"corpus/{split}.jsonl"
        rows = [json.loads(x) for x in path.read_text().splitlines()]
        for i, row in enumerate(rows):
            row.pop("text")
            row["label"] = YES_NO[i % 3]
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return made


@pytest.fixture(scope="session")
def labelled(label_maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("labelled") / "w"
    ended = label_maker.run(workdir)
    assert ended["outcome"] == "done", ended
    return workdir


def test_a_label_run_is_clean_and_its_gain_is_by_speaker(labelled: Path) -> None:
    report = audit(labelled)
    assert report.ok, report.to_text()
    told = result(labelled)
    assert told["comparison"]["metric"] == told["metric"] == "macro_error" and told["comparison"]["blocks"] == 12
    assert told["termination_reason"] == "candidate_wins" and told["retention"]["within"]


@pytest.mark.parametrize(
    ("where", "figure", "rule"),
    [
        ("ledger", "macro_error", "label-scores"),
        ("select", "recall", "select-figures"),
    ],
)
def test_label_figures_that_the_answers_do_not_give_are_found(
    labelled: Path, tmp_path: Path, where: str, figure: str, rule: str
) -> None:
    from tests.cheats.forge import Forger
    from tests.cheats.workdirs import copy

    forger = Forger(copy(labelled, tmp_path / "w"))
    if where == "ledger":
        forger.payload("eval", eval_id="selected-test")["scores"][figure] /= 2
    else:
        forger.payload("decision", what="select")["details"]["candidates"][-1][figure]["stop"] = 0.123
    forger.save()
    assert rule in audit(tmp_path / "w").rules


def test_a_label_answer_has_a_limit_of_its_own(labelled: Path) -> None:
    assert records(labelled, "freeze")[0].payload["contract"]["decoding"]["limit"] == 16


def test_a_gain_that_the_comparator_has_as_well_is_said_to_be_none(labelled: Path) -> None:
    told = result(labelled)
    through = next(c for c in told["labels"]["compared"] if c["reading"] == "comparator")
    through["seed"] = through["candidate"] = told["comparison"]["candidate"]
    sentences = " ".join(caveats(parse_result(told)))
    assert "without training the gain is gone" in sentences and "without any training" in sentences


# -- section 3 --------------------------------------------------------------------------------------------------------


def test_eight_equal_answers_are_weak_evidence() -> None:
    assert summary.flat_bound(8) == pytest.approx(0.312, abs=1e-3)  # another answer may come as often as that
    assert summary.flat_bound(64) == pytest.approx(0.046, abs=1e-3)


def test_retention_clips_without_contrast_are_warned_of(maker: Maker, tmp_path: Path) -> None:
    splits = {s: f"{s}.jsonl" for s in ("dev", "test", "retention")}
    rows = [json.loads(x) for x in (maker.root / "corpus/train.jsonl").read_text().splitlines()]
    for name, part in (("x2", rows[:16]), ("y2", rows[16:])):
        (maker.root / f"corpus/{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in part))
    both = Maker(maker.root, data={"train": "x2.jsonl", "train_retention": "y2.jsonl", **splits})
    assert both.run(tmp_path / "w", until="baseline")["error"] is None
    said: list[Any] = []
    with both.session(tmp_path / "w") as context:
        context.emit = said.append
        flat = {"by_mix": {"retention": {"contrast": 0, "clips": 8}, "target": {"contrast": 9, "clips": 16}}}
        summary.watch_mix(context, flat, [r["id"] for r in rows], 1)
    assert any("protects nothing" in getattr(event, "text", "") for event in said)


# -- sections 4 and 5 -------------------------------------------------------------------------------------------------


def test_exposure_and_refills_are_told_before_the_run_starts(finished: Path) -> None:
    decided = records(finished, "decision", what="preset")[0]
    assert decided.seq < records(finished, "launch")[0].seq
    assert "960 answers presented, 1920 sampled at worst with refills" in decided.payload["because"]
    assert decided.payload["details"]["exposure"]["epochs_worst"] > 0
    assert "sampled at worst with refills" in (finished / "progress.md").read_text()


def test_more_than_a_hundred_updates_are_refused_in_a_first_comparison(maker: Maker, tmp_path: Path) -> None:
    made = Maker(maker.root, preset=preset(tmp_path, updates=120), budget={"cpu_minutes": 9000})
    ended = made.run(tmp_path / "w")
    assert (
        ended["state"] == "choose_run"
        and ended["error"]["exit_code"] == 2
        and "at most 100" in ended["error"]["message"]
    )


def test_a_run_that_changes_the_estimator_with_its_data_is_refused(finished: Path, maker: Maker) -> None:
    config = records(finished, "register")[0].payload["details"]["config"]
    with maker.session(finished) as context:
        assert changed_settings(context, config) == []
        assert changed_settings(context, {**config, "estimator": "group_mean", "kl_weight": 0.1}) == [
            "estimator",
            "kl_weight",
        ]


# -- section 6 --------------------------------------------------------------------------------------------------------


def test_the_test_split_is_decoded_from_the_exported_folder(
    maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[tuple[str, str]] = []
    greedy = FakeRecogniser.greedy

    def heard(self: Any, clips: Any, *args: Any) -> Any:
        decoded.append((clips[0].split, self.policy.folder.name))
        return greedy(self, clips, *args)

    monkeypatch.setattr(FakeRecogniser, "greedy", heard)
    assert Maker(maker.root).run(tmp_path / "w")["outcome"] == "done"
    assert {folder for split, folder in decoded if split == "test"} == {"seed", "export"}
    assert {folder for split, folder in decoded if split != "test"} == {"seed"}


def test_timestamps_are_not_claimed_where_the_encoder_moved(maker: Maker, tmp_path: Path) -> None:
    made = Maker(maker.root, preset=preset(tmp_path, surface="all"))
    assert made.run(tmp_path / "w")["outcome"] == "done"
    told = result(tmp_path / "w")
    assert told["provenance"]["encoder_moved"] is True
    assert any("timestamps" in line and "encoder moved" in line for line in told["not_tested"])


def test_unsuccessful_trials_and_untested_settings_are_named_at_hand_over(finished: Path) -> None:
    told = result(finished)
    assert any(line.startswith("prompt ") for line in told["unsuccessful"])
    assert any("serving stacks" in line for line in told["not_tested"]) and told["next_action"]
