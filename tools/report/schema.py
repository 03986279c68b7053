"""The shape of `report/result.json`: the one thing every table, figure, page and card of this room is made from.

Parts that an ending does not have (nothing trained, no interval under ten blocks) are absent or null; unknown keys are
kept and ignored, so that an older renderer reads a newer file. Rates are ratios of corpus totals, never clipped; counts
are in `reference_units` of the declared metric. `eval` is an evaluation's id, `record` the ledger's `seq` of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tools.errors import CheckError, UsageError

Update = int | Literal["seed"]
Item = str | dict[str, Any]


class Part(BaseModel):
    """Base of all parts: frozen, strict about types, no NaN or infinity, null means absent."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, Mapping) else data


class TableRow(Part):
    """One model on one split. ins + del + sub are errors of the result's metric over `reference_units`."""

    split: str
    model: str
    wer: float | None = None
    cer: float | None = None
    mer: float | None = None
    insertions: int | None = None
    deletions: int | None = None
    substitutions: int | None = None
    reference_units: int | None = None
    rows: int = 0
    empty: int = 0
    empty_references: int = 0
    truncated: int = 0
    loops: int = 0
    eval: str = ""
    rows_sha256: str = ""
    record: int | None = None

    @property
    def errors(self) -> int | None:
        counts = (self.insertions, self.deletions, self.substitutions)
        return None if any(c is None for c in counts) else sum(c for c in counts if c is not None)

    def rate(self, metric: str) -> float | None:
        """The row's value of `metric`, a ratio; None where it has none (no reference units)."""
        value = getattr(self, metric, None)
        if value is None and metric == "mer":
            value = self.wer  # the scorer's `wer` is in the profile's unit
        return float(value) if isinstance(value, int | float) else None


class ProfileRow(Part):
    """The same hypotheses scored under a second normaliser."""

    profile: str
    split: str
    seed: float | None = None
    candidate: float | None = None


class Comparison(Part):
    """Seed against candidate, paired. `interval` is the 95 % interval of `error_reduction`, null under ten blocks."""

    metric: str = "wer"
    split: str = "test"
    seed: float | None = None
    candidate: float | None = None
    delta: float | None = None
    error_reduction: float | None = None
    interval: list[float] | None = Field(default=None, min_length=2, max_length=2)
    delta_interval: list[float] | None = Field(default=None, min_length=2, max_length=2)
    blocks: int = 0
    block_by: str = "speaker"
    verdict: Literal["better", "worse", "not_shown", "too_few_blocks"]
    noise_floor: float | None = None
    permutation_p: float | None = None
    resamples: int | None = None
    method: str = ""
    record: int | None = None


class Retention(Part):
    """The other capability: absolute change of the metric against its limit."""

    seed: float | None = None
    candidate: float | None = None
    delta: float | None = None
    limit: float | None = None
    within: bool | None = None


class Slice(Part):
    """A speaker's or a language's rows on the test split; `seed` and `candidate` are rates."""

    speaker: str | None = None
    lang: str | None = None
    rows: int = 0
    reference_units: int | None = None
    seed: float | None = None
    candidate: float | None = None

    @property
    def name(self) -> str:
        return self.speaker or self.lang or "(not named)"


class WorstRow(Part):
    """A test row: ids and counts; texts only where the brief says `keep_text`."""

    id: str
    seed_errors: int | None = None
    candidate_errors: int | None = None
    audio: str | None = None
    ref: str | None = None
    seed_hyp: str | None = None
    candidate_hyp: str | None = None


class Change(Part):
    """How many test clips changed by `errors` (candidate's errors minus the seed's)."""

    errors: int
    clips: int


class CurvePoint(Part):
    """One checkpoint, evaluated under the frozen contract; update 0 is the seed model."""

    update: int
    dev: float | None = None
    retention: float | None = None
    eligible: bool = True
    digest: str = ""
    dev_eval: str = ""
    dev_record: int | None = None
    retention_record: int | None = None


class TrainingPoint(Part):
    """One update. `reward` is the mean over retained groups, `offered_reward` over all groups that were sampled."""

    update: int
    reward: float | None = None
    offered_reward: float | None = None
    contrast_share: float | None = None
    grad_norm: float | None = None
    ratio_mean: float | None = None
    ratio_p99: float | None = None
    clip_share: float | None = None
    entropy: float | None = None
    length_ratio: float | None = None


class PromptTrial(Part):
    """A prompt compared on dev with the seed model."""

    prompt: str
    wer: float | None = None
    eval: str = ""
    record: int | None = None
    chosen: bool = False


class Stratum(Part):
    """A stratum of the mining sample."""

    name: str = ""
    clips: int | None = None
    answers: int | None = None
    contrast_share: float | None = None
    better_share: float | None = None
    greedy: float | None = None
    oracle: float | None = None
    extended: bool | None = None


class Mining(Part):
    """What a few sampled answers a clip of training audio showed. Shares are 0..1, greedy/mean/oracle are rates."""

    clips: int = 0
    answers_per_clip: int | None = None
    temperature: float | None = None
    valid_share: float | None = None
    truncated_share: float | None = None
    contrast_share: float | None = None
    better_share: float | None = None
    greedy: float | None = None
    mean_sample: float | None = None
    oracle: float | None = None
    strata: list[Stratum] = []
    extended: int | list[str] | None = None
    selected: int | None = None
    reason: str = ""
    advice: str | list[str] = ""
    record: int | None = None


class Rejected(Part):
    update: Update
    why: str = ""


class Selection(Part):
    rule: str = ""
    selected: Update | None = None
    run_id: str | None = None
    why: str = ""
    rejected: list[Rejected] = []
    record: int | None = None


class Split(Part):
    rows: int = 0
    speakers: int | None = None
    seconds: float | None = None


class Finding(Part):
    check: str = ""
    severity: str = "info"
    text: str = ""
    rows: int | list[Any] = 0

    @property
    def row_count(self) -> int:
        return self.rows if isinstance(self.rows, int) else len(self.rows)


class Data(Part):
    splits: dict[str, Split] = {}
    quarantined: int | list[Any] = 0
    findings: list[Finding] = []
    reused_benchmark: bool | None = None
    membership_sha256: str = ""
    record: int | None = None

    @property
    def quarantined_count(self) -> int:
        return self.quarantined if isinstance(self.quarantined, int) else len(self.quarantined)


class BudgetItem(Part):
    what: str
    reserved: float | None = None
    spent: float | None = None
    record: int | None = None


class Budget(Part):
    unit: str = ""
    cap: float | None = None
    reserved: float | None = None
    spent: float | None = None
    items: list[BudgetItem] = []


class Registration(Part):
    """A run as announced before it started, and how it ended."""

    run_id: str
    preset: str = ""
    config_sha256: str = ""
    updates: int | None = None
    random_seed: int | None = None
    hypothesis: str = ""
    end: str = ""
    record: int | None = None


class Opening(Part):
    record: int | None = None
    update: Update | None = None
    digest: str = ""
    reused: bool = False


class Contract(Part):
    """The frozen contract: `{"digest": sha256, "contract": {...}}`; its keys may also lie beside the digest."""

    digest: str = ""
    contract: dict[str, Any] = {}
    record: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "contract" in data:
            return data
        own = {k: data[k] for k in ("digest", "record") if k in data}
        return {**own, "contract": {k: v for k, v in data.items() if k not in own}}


class Ledger(Part):
    records: int = 0
    head: str = ""


class SeedModel(Part):
    """What is known of the seed: `name` (a hub id where it has one), `license` (an SPDX-like id)."""

    name: str = ""
    license: str = ""


class Provenance(Part):
    """Digests. `encoder_moved` says whether training touched the speech encoder (None: not on record)."""

    seed_model_digest: str = ""
    selected_digest: str = ""
    export_digest: str = ""
    seed_model: SeedModel = SeedModel()
    surface: str = ""
    encoder_moved: bool | None = None
    source: dict[str, Any] = {}
    versions: dict[str, str] = {}
    ledger: Ledger = Ledger()


class Command(Part):
    what: str
    command: str


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
    table: list[TableRow] = []
    profiles: list[ProfileRow] = []
    comparison: Comparison | None = None
    retention: Retention | None = None
    by_speaker: list[Slice] = []
    by_lang: list[Slice] = []
    worst: list[WorstRow] = []
    changes: list[Change] = []
    curve: list[CurvePoint] = []
    training: list[TrainingPoint] = []
    prompts: list[PromptTrial] = []
    mining: Mining | None = None
    selection: Selection | None = None
    registrations: list[Registration] = []
    test_open: Opening | None = None
    data: Data = Data()
    budget: Budget | None = None
    assumptions: list[Item] = []
    not_tested: list[Item] = []
    unsuccessful: list[Item] = []
    contract: Contract | None = None
    provenance: Provenance = Provenance()
    commands: list[Command] = []
    artefacts: dict[str, str] = {}

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
