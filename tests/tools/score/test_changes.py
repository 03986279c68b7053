"""Changes by clip and block, tables, a customer's own scoring script."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tools.score.systems import two_systems
from tools.errors import UsageError
from tools.score import compare_rows, score_rows
from tools.score.blocks import make_blocks
from tools.score.changes import block_changes, compare_table, score_table
from tools.score.external import external_score
from tools.score.filepairs import compare_files
from tools.score.files import score_files
from tools.text import profile

BASIC = profile("basic")


def test_changes_add_up_to_the_comparison() -> None:
    a, b = two_systems(12)
    blocks, whole = make_blocks(a, b, BASIC), compare_rows(a, b, BASIC)
    changes = block_changes(blocks)
    assert sum(c.errors_a for c in changes) == whole.errors_a and sum(c.errors_b for c in changes) == whole.errors_b
    assert len(changes) == 12 and sum(c.rows for c in changes) == len(a)
    assert [c.delta for c in changes] == sorted(c.delta for c in changes)
    assert sum(blocks.changes.values()) == len(a) and list(blocks.changes) == sorted(blocks.changes)
    assert sum(errors * n for errors, n in blocks.changes.items()) == whole.errors_b - whole.errors_a


def test_tables(tmp_path: Path) -> None:
    a, b = two_systems(12)
    for name, rows in (("a", a), ("b", b)):
        text = "".join(f'{{"id": "{r.id}", "text": "{r.hyp}"}}\n' for r in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    text = "".join(f'{{"id": "{r.id}", "text": "{r.ref}", "speaker": "{r.speaker}"}}\n' for r in a)
    (tmp_path / "ref.jsonl").write_text(text)
    paths = [tmp_path / f"{name}.jsonl" for name in ("a", "b", "ref")]
    table = compare_table(compare_files(*paths))
    assert "verdict           better" in table and "12 by speaker" in table and len(table.splitlines()) == 17
    assert score_table(score_files(paths[0], paths[2])).startswith("WER               0.")


SCRIPT = """import json, sys
rows = [json.loads(line) for line in sys.stdin]
print(json.dumps({"value": sum(r["ref"] != r["hyp"] for r in rows) / len(rows), "rows": len(rows)}))
"""


def test_a_customers_scoring_script(tmp_path: Path) -> None:
    path = tmp_path / "score.py"
    path.write_text(SCRIPT)
    a, _ = two_systems(3)
    got = external_score(f"{sys.executable} {path}", a)
    assert got.value == sum(r.ref != r.hyp for r in a) / len(a) and got.details["rows"] == len(a)
    assert score_rows(a, BASIC).value != got.value
    path.write_text(SCRIPT + "# edited")
    assert external_score(f"{sys.executable} {path}", a).digest != got.digest


@pytest.mark.parametrize(
    ("script", "message"),
    [("print('hello')", "gave no result"), ("print('{}')", "finite number"), ("import sys; sys.exit('broken')", "code 1"),
     ("print('{\"value\": \"high\"}')", "finite number"), ("print('{\"value\": NaN}')", "finite number")],
)  # fmt: skip
def test_scripts_that_cannot_serve(tmp_path: Path, script: str, message: str) -> None:
    (tmp_path / "s.py").write_text(script)
    with pytest.raises(UsageError, match=message):
        external_score(f"{sys.executable} {tmp_path / 's.py'}", two_systems(2)[0])
    with pytest.raises(UsageError):
        external_score("", [])
    with pytest.raises(UsageError, match="gave no result"):
        external_score("/no/such/program", [])
