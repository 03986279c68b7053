"""A customer's own scoring script beside ours, so that a number of their dashboard stands in the same table.

The program reads the rows as JSON lines (id, ref, hyp, lang, speaker) on standard input and prints one JSON object with
`value` on standard output. It is run without a shell; its digest covers the command and the bytes of its files.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.errors import UsageError
from tools.rows import ScoredRow
from tools.score.transcripts import unique
from tools.text.custom import split_command

TIMEOUT_S = 3_600
_LARGEST = 1e300


@dataclass(frozen=True)
class ExternalScore:
    """What the customer's program said: `value` and everything else it printed (`details`)."""

    value: float
    details: dict[str, Any]
    command: str
    digest: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def external_score(command: str, rows: Iterable[ScoredRow]) -> ExternalScore:
    """Run the program on the rows. Raises UsageError where it cannot be run or prints no number."""
    argv = split_command(command)
    if not argv:
        raise UsageError("The scoring script names no program: write `PROGRAM ARGUMENTS`.")
    keep = ("id", "ref", "hyp", "lang", "speaker")
    lines = [json.dumps({key: getattr(row, key) for key in keep}, ensure_ascii=False) for row in unique(rows)]
    try:
        done = subprocess.run(
            argv, input="\n".join(lines) + "\n", capture_output=True, encoding="utf-8", timeout=TIMEOUT_S
        )
        said = {} if done.returncode else json.loads(done.stdout, parse_constant=_nothing, parse_float=_finite)
    except (OSError, ValueError, RecursionError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"The scoring script `{command}` gave no result ({error}): check it by hand.") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"The scoring script `{command}` ended with code {done.returncode} ({why}).")
    value = said.get("value") if isinstance(said, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST:
        raise UsageError(f"The scoring script `{command}` must print a JSON object with a finite number `value`.")
    return ExternalScore(float(value), said, command, _digest(argv))


def _nothing(constant: str) -> None:
    """NaN and infinities are no JSON: null."""


def _finite(number: str) -> float | None:
    return float(number) if math.isfinite(float(number)) else None


def _digest(argv: list[str]) -> str:
    files = [Path(part).read_bytes() for part in argv if Path(part).is_file()]
    return hashlib.sha256(b"\0".join([*(part.encode() for part in argv), *files])).hexdigest()
