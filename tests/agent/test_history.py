from pathlib import Path

import pytest

from agent.disk import write_atomic
from agent.history import History
from tools.errors import UsageError


def test_revisions_carry_count_and_head_and_blobs_their_bytes(tmp_path: Path) -> None:
    history = History(tmp_path)
    assert not history.exists and history.revisions() == []
    history.init("x.wav\n")
    bodies = [b"one\r\n", b"one\r\ntwo\n"]
    for number, body in enumerate(bodies, start=1):
        (tmp_path / "ledger.jsonl").write_bytes(body)
        history.commit(f"state {number}", number, f"{number}" * 64)
    assert [(r.records, r.head) for r in history.revisions()] == [(1, "1" * 64), (2, "2" * 64)]
    assert [history.blob(r.sha, "ledger.jsonl") for r in history.revisions()] == bodies
    assert history.blob(history.revisions()[0].sha, "none") is None
    assert set(history.files(history.revisions()[1].sha)) == {".gitignore", "ledger.jsonl"}
    assert history.faults() == ""


def test_a_foreign_commit_has_no_head(tmp_path: Path) -> None:
    from git import Repo

    repo = Repo.init(tmp_path)
    (tmp_path / "a").write_text("x")
    repo.index.add(["a"])
    repo.index.commit("by hand")
    assert [(r.records, r.head) for r in History(tmp_path).revisions()] == [(None, None)]


def test_a_damaged_repository_is_told(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.init("")
    (tmp_path / "a").write_text("x")
    history.commit("state a", 1, "a" * 64)
    for path in (tmp_path / ".git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"broken")
    assert history.faults()
    (tmp_path / "a").write_text("y")
    with pytest.raises(UsageError, match="git .* failed in"):
        history.commit("state b", 2, "b" * 64)


def test_a_write_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    write_atomic(path, "old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent.disk.os.replace", refuse)
    with pytest.raises(UsageError, match="no space left to write"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
