import hashlib
import json
from pathlib import Path

from agent.ledger.rowfiles import read_digests, row_lines, seal_rows


def test_every_row_has_its_digest_under_its_id(tmp_path: Path) -> None:
    rows = [{"id": "a b", "hyp": "x"}, {"id": "ü\n", "hyp": "y"}, {"clip_id": "c"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    sealed = seal_rows(tmp_path)
    assert sealed["rows"] == 3
    assert sealed["rows_sha256"] == hashlib.sha256((tmp_path / "rows.jsonl").read_bytes()).hexdigest()
    assert sealed["row_digests_sha256"] == hashlib.sha256((tmp_path / "digests.txt").read_bytes()).hexdigest()
    digests = read_digests(tmp_path)
    assert digests is not None and [name for _, name in digests] == ["a b", "ü\n", "c"]
    assert [sha for sha, _ in digests] == [
        hashlib.sha256(line).hexdigest() for _, line in row_lines(tmp_path / "rows.jsonl")
    ]


def test_without_a_list_there_is_none(tmp_path: Path) -> None:
    assert read_digests(tmp_path) is None
    (tmp_path / "digests.txt").write_text("abc not-json\n")
    assert read_digests(tmp_path) is None
