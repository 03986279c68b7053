"""Honest work directories of every kind, finished and not, must raise no alarm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.ledger.audit import audit
from agent.ledger.chain import read_ledger
from tests.cheats.workdirs import MORE, SIZES, Maker, copy

Make = Callable[..., Maker]


@pytest.fixture
def make(maker: Maker) -> Make:
    """Another experiment on the same corpus and seed model."""

    def made(**more: Any) -> Maker:
        return Maker(maker.root, **more)

    return made


def clean(workdir: Path) -> None:
    report = audit(workdir)
    assert report.ok, report.to_text()


def decided(workdir: Path, what: str) -> Any:
    return [r.payload["chosen"] for r in read_ledger(workdir)[0] if r.kind == "decision" and r.payload["what"] == what][
        -1
    ]


STATES = ["intake", "define", "check_data", "baseline", "mine", "choose_run", "train", "select", "evaluate"]


def test_every_state_on_the_way_is_clean(make: Make, tmp_path: Path) -> None:
    workdir, here = tmp_path / "w", None
    maker = make()
    for state in STATES:
        assert maker.run(workdir, start=here, until=state)["error"] is None
        clean(workdir)
        here = STATES[STATES.index(state) + 1] if state != STATES[-1] else "handover"
    assert maker.run(workdir, start=here)["outcome"] == "done"
    clean(workdir)


@pytest.mark.parametrize(
    "what, count, state",
    [
        ("greedy", 2, "baseline"),
        ("greedy", 4, "baseline"),
        ("sample", 1, "mine"),
        ("update", 12, "train"),
        ("greedy", 12, "train"),
    ],
)
def test_killed_and_resumed_is_clean_before_and_after(
    make: Make, tmp_path: Path, finished: Path, what: str, count: int, state: str
) -> None:
    maker = make()
    maker.snapshot = (what, count, tmp_path / "killed")
    maker.run(tmp_path / "w", until=state)
    maker.snapshot = None
    clean(tmp_path / "killed")
    assert maker.run(tmp_path / "killed", start=state)["outcome"] == "done"
    clean(tmp_path / "killed")
    assert decided(tmp_path / "killed", "select") == decided(finished, "select")


def test_a_run_stopped_by_the_customer_goes_on_later(make: Make, tmp_path: Path) -> None:
    from agent.act import Interrupted

    maker = make()
    maker.stop_after = 7
    maker.run(tmp_path / "w", until="choose_run")
    with maker.session(tmp_path / "w") as context:
        context.should_stop = lambda: True
    from agent.steps import train as train_step

    with maker.session(tmp_path / "w") as context, pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_step, "_train", maker._train)
        context.state, asked = "train", iter([False] * 1000)
        context.should_stop = lambda: len(context.ledger.records("launch")) > 0 and next(asked, True) is not None
        with pytest.raises(Interrupted):
            train_step.run(context)
    clean(tmp_path / "w")
    maker.stop_after = None
    assert maker.run(tmp_path / "w", start="train")["outcome"] == "done"
    clean(tmp_path / "w")


def test_the_seed_wins(make: Make, tmp_path: Path) -> None:
    maker = make(skill=dict.fromkeys(MORE, 0.9))
    assert maker.run(tmp_path / "w")["outcome"] == "done"
    assert decided(tmp_path / "w", "select") == "seed" and decided(tmp_path / "w", "finish") == "seed_wins"
    clean(tmp_path / "w")


def test_nothing_to_learn(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cheats.speech.chance", lambda *parts: 0.99)  # every word is heard rightly
    assert make().run(tmp_path / "w")["outcome"] == "done"
    assert decided(tmp_path / "w", "finish") == "no_contrast"
    clean(tmp_path / "w")


def test_the_budget_is_too_small(make: Make, tmp_path: Path) -> None:
    maker = make(budget={"cpu_minutes": 0.5})
    ended = maker.run(tmp_path / "w")
    assert ended["outcome"] == "stop_budget" and ended["error"]["exit_code"] == 4
    clean(tmp_path / "w")


def test_a_larger_budget_answers_the_stop(make: Make, tmp_path: Path) -> None:
    maker = make(budget={"cpu_minutes": 0.5})
    state = maker.run(tmp_path / "w")["state"]
    maker.brief = maker.brief.with_budget("400 cpu_minutes")
    assert maker.run(tmp_path / "w", start=state)["outcome"] == "done"
    clean(tmp_path / "w")


@pytest.mark.parametrize(
    "brief", [{"keep_text": True}, {"metric": "cer"}, {"prompts": ["", "boxes"]}, {"reused_benchmark": True}]
)
def test_other_wishes(make: Make, tmp_path: Path, brief: dict[str, Any]) -> None:
    ended = make(**brief).run(tmp_path / "w")
    assert ended["outcome"] == "done", ended
    clean(tmp_path / "w")


def test_without_a_retention_set(make: Make, tmp_path: Path) -> None:
    data = {split: f"{split}.jsonl" for split in SIZES if split != "retention"}
    assert make(data=data).run(tmp_path / "w")["outcome"] == "done"
    clean(tmp_path / "w")


def test_splits_made_from_one_manifest(make: Make, tmp_path: Path) -> None:
    assert make(data={"manifest": "train.jsonl"}).run(tmp_path / "w")["error"] is None
    clean(tmp_path / "w")


def test_another_seed_on_other_speech(tmp_path: Path) -> None:
    assert Maker(tmp_path / "other", seed=3).run(tmp_path / "w")["outcome"] == "done"
    clean(tmp_path / "w")


def test_a_torn_line_recovered(make: Make, tmp_path: Path) -> None:
    maker = make()
    maker.run(tmp_path / "w", until="baseline")
    with open(tmp_path / "w/ledger.jsonl", "ab") as out:
        out.write(b'{"actor":"agent","co')
    clean(tmp_path / "w")
    assert maker.run(tmp_path / "w", start="mine")["outcome"] == "done"
    clean(tmp_path / "w")


def test_a_finished_run_opened_again_and_moved(maker: Maker, finished: Path, tmp_path: Path) -> None:
    moved = copy(finished, tmp_path / "elsewhere")
    with maker.session(moved):
        pass
    clean(moved)


LONG = {"preset": "local-small", "budget": {"cpu_minutes": 4000}}


def asked(workdir: Path) -> list[tuple[str, int, bool]]:
    found = [r.payload for r in read_ledger(workdir)[0] if r.kind == "decision" and r.payload["what"] == "go_on"]
    return [(p["details"]["reason"], p["chosen"]["update"], p["chosen"]["go_on"]) for p in found]


def test_twenty_updates_first_and_on_while_dev_improves(make: Make, tmp_path: Path) -> None:
    maker = make(skill={u: 0.5 - u / 200 for u in range(10, 70, 10)}, **LONG)
    assert maker.run(tmp_path / "w")["outcome"] == "done"
    assert asked(tmp_path / "w") == [("improving", 20, True), ("improving", 40, True)]
    clean(tmp_path / "w")


def test_a_reward_that_rises_without_dev_ends_in_paired_outputs_not_in_more_updates(make: Make, tmp_path: Path) -> None:
    maker = make(skill=dict.fromkeys(range(10, 70, 10), 0.9), **LONG)
    assert maker.run(tmp_path / "w")["outcome"] == "done"
    assert asked(tmp_path / "w") == [("inspect", 20, False)]
    pairs = (tmp_path / "w/runs/run1/paired-u0020.jsonl").read_text().splitlines()
    assert len(pairs) == 12 and "hyp" not in pairs[0]
    clean(tmp_path / "w")


def test_refills_that_dominate_lead_back_to_mining_once_and_both_runs_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIZES, "train", (16, 4))
    maker = Maker(tmp_path / "other", skill={u: 0.5 - u / 200 for u in range(10, 70, 10)}, **LONG)
    maker.wasted = 99
    assert maker.run(tmp_path / "w")["outcome"] == "done"
    clean(tmp_path / "w")
    records = read_ledger(tmp_path / "w")[0]
    again = [r.payload["chosen"]["again"] for r in records if r.kind == "decision" and r.payload["what"] == "refresh"]
    assert again == [True, False] and [r.payload["run_id"] for r in records if r.kind == "register"] == ["run1", "run2"]
    sampled = [
        set(r.payload["args"]["clips"]) for r in records if r.kind == "intent" and r.payload["effect"] == "sample"
    ]
    assert not sampled[0] & sampled[-1]
    result = json.loads((tmp_path / "w/report/result.json").read_text())
    assert len(result["registrations"]) == 2 and len(result["other_runs"]) == 1


def test_a_selection_that_cannot_be_refreshed_goes_on_with_what_there_is(make: Make, tmp_path: Path) -> None:
    maker = make(skill={u: 0.5 - u / 200 for u in range(10, 70, 10)}, **LONG)
    maker.wasted = 99  # all 24 training clips have been mined already
    assert maker.run(tmp_path / "w")["outcome"] == "done"
    assert asked(tmp_path / "w") == [("refills", 20, False)] and decided(tmp_path / "w", "select") == 20
    clean(tmp_path / "w")


def learnt(workdir: Path) -> dict[str, Any]:
    found = [r.payload for r in read_ledger(workdir)[0] if r.kind == "decision" and r.payload["what"] == "learn"]
    return found[-1]["details"]["summary"]


def test_a_mined_sample_is_summed_up_by_task_language_and_domain_with_cost_and_examples(finished: Path) -> None:
    summary = learnt(finished)
    told = summary["by_language"]["en"]
    assert told["all_right"] + told["all_wrong"] + told["mixed"] == told["clips"] == 24
    assert set(summary["by_task"]) == {"asr"} and summary["cost"]["tokens"] > 0 and summary["by_domain"]
    rows = [json.loads(x) for x in (finished / "rollouts/examples.jsonl").read_text().splitlines()]
    assert rows and {r["kind"] for r in rows} <= set(summary["examples"]) and all(r["ref"] != r["greedy"] for r in rows)
    assert "ref" not in json.dumps(summary)  # texts stay out of the ledger


def test_what_shall_be_kept_is_mined_and_trained_on_beside_what_shall_improve(make: Make, tmp_path: Path) -> None:
    maker = make()
    rows = [json.loads(x) for x in (maker.root / "corpus/train.jsonl").read_text().splitlines()]
    for name, part in (("x", rows[:16]), ("y", rows[16:])):
        (maker.root / f"corpus/{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in part))
    splits = {s: f"{s}.jsonl" for s in ("dev", "test", "retention")}
    both = make(data={"train": "x.jsonl", "train_retention": "y.jsonl", **splits})
    assert both.run(tmp_path / "w")["outcome"] == "done"
    assert set(learnt(tmp_path / "w")["by_mix"]) == {"target", "retention"}
    mix = decided(tmp_path / "w", "mix")
    assert mix["target"] > 0 and mix["retention"] > 0
    result = json.loads((tmp_path / "w/report/result.json").read_text())
    assert result["mix"]["presented"]["retention"] > 0
    clean(tmp_path / "w")


def test_killed_while_the_report_is_written_it_is_written_anew_and_clean(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools import report

    maker, render = make(), report.render_all
    monkeypatch.setattr(report, "render_all", lambda workdir: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        maker.run(tmp_path / "w")
    clean(tmp_path / "w")
    monkeypatch.setattr(report, "render_all", render)
    assert maker.run(tmp_path / "w", start="handover")["outcome"] == "done"
    clean(tmp_path / "w")
