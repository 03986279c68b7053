"""The shape of `report/result.json`: the one thing every table, figure, page and card of this room is made from.

Parts that an ending does not have (nothing trained, no interval under ten blocks) are absent or null; unknown keys are
kept and ignored, so that an older renderer reads a newer file. The parts themselves are in parts.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from tools.errors import CheckError, UsageError
from tools.report.parts import (
    Budget,
    Change,
    Command,
    Comparison,
    Contract,
    CurvePoint,
    Data,
    Item,
    Labels,
    Mining,
    Opening,
    Part,
    ProfileRow,
    PromptTrial,
    Provenance,
    Registration,
    Retention,
    Selection,
    Slice,
    TableRow,
    TrainingPoint,
    WorstRow,
)


class Result(Part):
    """The whole of `report/result.json`."""

    schema_version: int = 1
    renderer: str = "1"
    name: str
    task: str = "asr"
    metric: str = "wer"
    termination_reason: str
    headline: str = ""
    next_action: str = ""
    table: list[TableRow] = Field(default_factory=list)
    profiles: list[ProfileRow] = Field(default_factory=list)
    comparison: Comparison | None = None
    labels: Labels | None = None
    retention: Retention | None = None
    by_speaker: list[Slice] = Field(default_factory=list)
    by_lang: list[Slice] = Field(default_factory=list)
    worst: list[WorstRow] = Field(default_factory=list)
    changes: list[Change] = Field(default_factory=list)
    curve: list[CurvePoint] = Field(default_factory=list)
    training: list[TrainingPoint] = Field(default_factory=list)
    prompts: list[PromptTrial] = Field(default_factory=list)
    mining: Mining | None = None
    selection: Selection | None = None
    registrations: list[Registration] = Field(default_factory=list)
    test_open: Opening | None = None
    data: Data = Data()
    budget: Budget | None = None
    assumptions: list[Item] = Field(default_factory=list)
    not_tested: list[Item] = Field(default_factory=list)
    unsuccessful: list[Item] = Field(default_factory=list)
    contract: Contract | None = None
    provenance: Provenance = Provenance()
    commands: list[Command] = Field(default_factory=list)
    artefacts: dict[str, str] = Field(default_factory=dict)

    def row(self, split: str, model: str) -> TableRow | None:
        """The table's row of `split` and `model` ("seed" or "candidate"), or None."""
        return next((r for r in self.table if (r.split, r.model) == (split, model)), None)

    @property
    def checkpoints(self) -> list[CurvePoint]:
        """The curve without its point of the seed model."""
        return [point for point in self.curve if point.update > 0]

    def baseline(self, split: str) -> float | None:
        """The seed's value of the metric on `split`: the table's, else the curve's at update 0."""
        row = self.row(split, "seed")
        if row:
            return row.rate(self.metric)
        return next((getattr(p, split, None) for p in self.curve if p.update == 0), None)

    def trained(self) -> bool:
        return bool(self.training or self.checkpoints)


def parse_result(data: Mapping[str, Any], where: str = "result.json") -> Result:
    """`data` as a Result, its numbers checked against each other.

    Raises CheckError, naming `where` and the first key at fault.
    """
    from tools.report.consistent import contradictions

    try:
        result = Result.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the document"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise CheckError(f"{where}: {key}: {first['msg'].lower()}{more}; it cannot be rendered as it is.") from None
    problems = contradictions(result)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise CheckError(f"{where} contradicts itself: {problems[0]}{more}; nothing was rendered.")
    return result


def load_result(path: Path | str) -> Result:
    """Read and check `report/result.json`. Raises UsageError (no such file), CheckError (not what it should be)."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: there is no result to render ({error.strerror}); run `rehear run` first.") from None
    try:
        data = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except ValueError as error:
        raise CheckError(f"{path}: not valid JSON ({error}); render it from the ledger again.") from None
    if not isinstance(data, dict):
        raise CheckError(f"{path}: a JSON object is needed, found {type(data).__name__}.")
    return parse_result(data, str(path))


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number a report can show")
