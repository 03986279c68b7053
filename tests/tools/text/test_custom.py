"""A customer's own normaliser as a profile: a command or a Python callable, its digest frozen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.errors import UsageError
from tools.rows import ScoredRow
from tools.score import score_rows
from tools.text import profile

UPPER = "import sys\nfor line in sys.stdin:\n    print(line.rstrip('\\n').upper().replace('UM ', ''))\n"


def _script(tmp_path: Path, text: str, name: str = "norm.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_command_normalises_in_batches(tmp_path: Path) -> None:
    own = profile(f"command: {sys.executable} {_script(tmp_path, UPPER)}")
    rows = [ScoredRow(id=f"{i:03}", ref=f"um hello {i}", hyp=f"HELLO {i}") for i in range(300)]
    assert score_rows(rows, own).value == 0.0
    assert own.version == "custom" and len(own.digest) == 64


def test_the_digest_covers_the_program(tmp_path: Path) -> None:
    path = _script(tmp_path, UPPER)
    first = profile(f"command: {sys.executable} {path}").digest
    profile.cache_clear()
    assert profile(f"command: {sys.executable} {path}").digest == first
    path.write_text(UPPER + "# edited\n")
    profile.cache_clear()
    assert profile(f"command: {sys.executable} {path}").digest != first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys; sys.exit('no dictionary')", "ended with code 1 .no dictionary"),
        ("print('one line')", "gave 1 lines for"),
        ("import sys, os\nfor l in sys.stdin: print(os.urandom(4).hex())", "another text the second time"),
    ],
)
def test_commands_that_cannot_serve(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profile(f"command: {sys.executable} {_script(tmp_path, text)}")


@pytest.mark.parametrize("spec", ["command:", "command: /no/such/program", "no_such_module:f", "json:no_such_function"])
def test_specs_that_name_nothing(spec: str) -> None:
    with pytest.raises(UsageError):
        profile(spec)


def test_a_callable_by_module_or_file_with_or_without_a_language(tmp_path: Path) -> None:
    path = _script(
        tmp_path, "def plain(text):\n    return text.lower()\n\ndef spoken(text, lang):\n    return f'{lang} {text}'\n"
    )
    assert profile(f"{path}:plain").normalise("ABC  D") == "abc d"
    assert profile(f"{path}:spoken").normalise("x", "de") == "de x"
    assert profile("tools.text.clean:spaces").normalise(" a  b ") == "a b"


@pytest.mark.parametrize(
    ("body", "message"), [("return 3", "returned int"), ("raise KeyError('x')", "failed on a text of 27")]
)
def test_callables_that_cannot_serve(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profile(f"{_script(tmp_path, f'def f(text):{chr(10)}    {body}')}:f")
