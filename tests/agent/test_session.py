import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git import Repo

from agent.brief import Brief
from agent.ledger.chain import read_ledger
from agent.session import Session
from tools.errors import CheckError, UsageError

BRIEF: dict[str, Any] = {"name": "x", "data": {"train": "a.jsonl"}, "budget": {"cpu_minutes": 5}}


@pytest.fixture
def brief() -> Callable[..., Brief]:
    def build(**more: Any) -> Brief:
        return Brief.build({k: v for k, v in {**BRIEF, **more}.items() if v is not None})

    return build


def begun(workdir: Path, brief: Brief) -> Path:
    """A work directory with its defaults taken and its plan recorded."""
    with Session.open(workdir, brief, skill="s", skill_digest="5" * 64) as session:
        session.assume_defaults(state="intake")
        session.ledger.append("plan", session.plan_payload([{"id": "a", "title": "b", "does": "c"}]), state="define")
        session.commit_state("define")
    return workdir


def test_a_new_work_directory_is_a_git_repository_with_pages(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief())
    repo = Repo(workdir)
    assert not repo.is_dirty(untracked_files=True)
    records, _ = read_ledger(workdir)
    assert f"Ledger: {len(records)} {records[-1].hash}" in repo.head.commit.message
    tracked = set(repo.git.ls_files().splitlines())
    assert {"brief.yaml", "ledger.jsonl", "plan.md", "progress.md", ".gitignore"} == tracked


@pytest.mark.parametrize("keep", [False, True])
def test_texts_audio_and_weights_stay_out_of_git(tmp_path: Path, brief: Any, keep: bool) -> None:
    workdir = tmp_path / "w"
    files = {
        "evals/a/rows.jsonl": keep, "rollouts/m.jsonl": keep, "data/clips.jsonl": keep, "data/membership.jsonl": True,
        "evals/a/scores.json": True, "evals/a/digests.txt": True, "runs/r/config.json": True,
        "runs/r/metrics.jsonl": True, "runs/r/checkpoints/u1/state.json": False,
        "runs/r/export/model.safetensors": False, "x.wav": False,
        ".rehear/graph.sqlite": False, "report/result.json": True,
    }  # fmt: skip
    with Session.open(workdir, brief(keep_text=keep)) as session:
        for name in files:
            (workdir / name).parent.mkdir(parents=True, exist_ok=True)
            (workdir / name).write_text("x")
        session.commit_state("a")
    tracked = set(Repo(workdir).git.ls_files().splitlines())
    assert {name: name in tracked for name in files} == files


def test_the_same_brief_resumes(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief())
    with Session.open(workdir, brief()) as session:
        assert session.brief.answer_to("metric") == "wer"
        assert session.ledger.records()[-1].kind == "plan"


def test_defaults_are_recorded_as_the_agents_answers(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief())
    with Session.open(workdir, brief()) as session:
        assumed = {a["id"]: a["value"] for a in session.assumptions()}
        assert assumed["retention"] == "none" and assumed["splits"] == "speaker"
        answers = session.ledger.records("answer")
        assert all(r.actor == "agent" and r.payload["default"] for r in answers)
        asked = {r.payload["id"] for r in session.ledger.records("question")}
        assert {r.payload["id"] for r in answers} <= asked


@pytest.mark.parametrize(
    "change, key",
    [
        ({"metric": "cer"}, "metric"),
        ({"data": {"train": "b.jsonl"}}, "data"),
        ({"budget": {"cpu_minutes": 50}}, "budget"),
        ({"prompts": ["a"]}, "prompts"),
        ({"name": "y"}, "name"),
        ({"data": {"train": "a.jsonl", "retention": "r.jsonl"}}, "retention"),
    ],
)
def test_a_changed_brief_is_refused_and_nothing_is_lost(
    tmp_path: Path, brief: Any, change: dict[str, Any], key: str
) -> None:
    workdir = begun(tmp_path / "w", brief())
    before = (workdir / "ledger.jsonl").read_bytes()
    with pytest.raises(UsageError, match=f"the brief changed: {key} was"):
        Session.open(workdir, brief(**change))
    assert (workdir / "ledger.jsonl").read_bytes() == before
    with Session.open(workdir, brief()):
        pass


def test_a_key_taken_out_of_the_brief_is_a_change(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief(metric="wer"))
    with pytest.raises(UsageError, match="metric"):
        Session.open(workdir, brief())


def test_a_change_that_answers_an_open_question_is_taken(tmp_path: Path, brief: Any) -> None:
    workdir = tmp_path / "w"
    with Session.open(workdir, brief(budget=None)) as session:
        assert [q.id for q in session.missing() if q.default is None] == ["budget"]
    with Session.open(workdir, brief(budget={"cpu_minutes": 7})) as session:
        assert session.budget.cap == 7
        answer = session.ledger.records("answer")[-1]
        assert (answer.actor, answer.payload["default"]) == ("customer", False)
    with Session.open(workdir, brief(budget=None)) as session:
        assert session.budget.cap == 7


def test_answers_of_the_command_line(tmp_path: Path, brief: Any) -> None:
    workdir = tmp_path / "w"
    with Session.open(workdir, brief(), answers={"metric": "cer"}) as session:
        assert session.brief.answer_to("metric") == "cer"
    with Session.open(workdir, brief(), answers={"metric": "cer"}):
        pass
    with pytest.raises(UsageError, match="the brief changed: metric"):
        Session.open(workdir, brief(), answers={"metric": "wer"})
    with pytest.raises(UsageError, match="no question 'metrik'"):
        Session.open(workdir, brief(), answers={"metrik": "wer"})


def test_a_budget_asked_for_again_may_be_raised_and_only_then(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief())
    with Session.open(workdir, brief()) as session:
        question = {"id": "budget", "text": "raise it?", "schema": {}, "why": "it does not fit"}
        session.ledger.append("question", question)
    with Session.open(workdir, brief(budget={"cpu_minutes": 50})) as session:
        assert session.budget.cap == 50
    with pytest.raises(UsageError, match="budget"):
        Session.open(workdir, brief(budget={"cpu_minutes": 500}))
    with Session.open(workdir, brief()) as session:
        assert session.budget.cap == 50


def test_two_processes_on_one_work_directory(tmp_path: Path, brief: Any) -> None:
    code = (
        "import sys; from agent.brief import Brief; from agent.session import Session\n"
        "from tools.errors import UsageError\n"
        f"brief = Brief.build({BRIEF!r})\n"
        "try:\n    Session.open(sys.argv[1], brief)\n"
        "except UsageError as err:\n    print(err); sys.exit(err.exit_code)\n"
    )
    with Session.open(tmp_path / "w", brief()):
        other = subprocess.run([sys.executable, "-c", code, str(tmp_path / "w")], capture_output=True, text=True)
    assert other.returncode == 2 and f"in use by another process (pid {os.getpid()})" in other.stdout
    again = subprocess.run([sys.executable, "-c", code, str(tmp_path / "w")], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    "plant, text",
    [
        (lambda w: w.write_text("x"), "is a file"),
        (lambda w: (w.mkdir(), (w / "thesis.tex").write_text("x")), r"holds other files \(thesis.tex\)"),
        (lambda w: ((w / ".rehear").mkdir(parents=True), (w / "evals").write_text("x")), "evals is in the way"),
        (
            lambda w: (w / ".rehear" / "x").mkdir(parents=True) or (w / "ledger.jsonl").mkdir(),
            "ledger.jsonl is in the way",
        ),
    ],
    ids=["a file", "foreign files", "a file for a folder", "a folder for a file"],
)
def test_what_is_in_the_way_is_named_and_kept(tmp_path: Path, brief: Any, plant: Any, text: str) -> None:
    plant(tmp_path / "w")
    with pytest.raises(UsageError, match=text):
        Session.open(tmp_path / "w", brief())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path, brief: Any) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="may not be written"):
        Session.open(tmp_path / "w", brief())


def test_a_read_only_disk_and_a_full_one(tmp_path: Path, brief: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> Any:
        def mkdir(*_: Any, **__: Any) -> None:
            raise OSError(number, os.strerror(number))

        return mkdir

    monkeypatch.setattr(Path, "mkdir", refuse(30))
    with pytest.raises(UsageError, match="read-only disk"):
        Session.open(tmp_path / "w", brief())
    monkeypatch.setattr(Path, "mkdir", refuse(28))
    with pytest.raises(UsageError, match=r"no space left to write .* bytes free"):
        Session.open(tmp_path / "w", brief())


def test_a_broken_ledger_is_refused_and_the_lock_given_back(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief())
    path = workdir / "ledger.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"speaker", b"speakes", 1))
    for _ in range(2):
        with pytest.raises(CheckError, match="line"):
            Session.open(workdir, brief())
    path.write_bytes(whole)
    with Session.open(workdir, brief()):
        pass


def test_locks_that_a_kill_left_in_git_do_not_stop_a_resume(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief())
    for name in ("index.lock", "HEAD.lock", "refs/heads/main.lock"):
        (workdir / ".git" / name).write_text("")
    with Session.open(workdir, brief()) as session:
        assert session.commit_state("again")


def test_the_users_own_git_settings_and_hooks_do_not_reach_in(
    tmp_path: Path, brief: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[core]\n\thooksPath = {hook.parent}\n\tautocrlf = true\n[commit]\n\tgpgsign = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    workdir = begun(tmp_path / "w", brief())
    assert (workdir / ".git").is_dir() and not (tmp_path / "elsewhere").exists()


def test_changed_versions_are_noted_once(tmp_path: Path, brief: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workdir = begun(tmp_path / "w", brief())
    monkeypatch.setattr("agent.machine.versions", lambda: {"python": "3.99"})
    for _ in range(2):
        with Session.open(workdir, brief()) as session:
            notes = session.ledger.records("note")
    assert [n.payload["details"] for n in notes] == [{"versions": {"python": "3.99"}}]


def test_moved_and_cloned_without_its_hidden_folder_it_still_opens(tmp_path: Path, brief: Any) -> None:
    workdir = begun(tmp_path / "w", brief())
    Repo.clone_from(str(workdir), str(tmp_path / "clone"))
    with Session.open(tmp_path / "clone", brief()) as session:
        assert session.ledger.records("plan")
