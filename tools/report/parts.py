"""The parts of a result: one small model for each block of `report/result.json`.

Rates are ratios of corpus totals, never clipped; counts are in the reference units of the result's metric. `record` is
the ledger's `seq` of the record that a figure comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

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


class LabelReading(Part):
    """One way to read the answers. `invalid_rate` is the share of answers in which no label was read."""

    accuracy: float | None = None
    macro_recall: float | None = None
    invalid_rate: float | None = None


class LabelModel(Part):
    """A model's answers on a split: strict and parsed apart, and through the comparator fitted on dev."""

    split: str
    model: str
    eval: str = ""
    strict: LabelReading
    parsed: LabelReading | None = None
    comparator: LabelReading | None = None
    recall: dict[str, float] = {}


class LabelComparison(Part):
    """Seed against candidate under another reading of the same answers; rates are errors."""

    reading: str
    seed: float | None = None
    candidate: float | None = None
    delta: float | None = None
    error_reduction: float | None = None
    interval: list[float] | None = Field(default=None, min_length=2, max_length=2)
    blocks: int = 0
    verdict: str = ""


class Labels(Part):
    """A label task. `confusion`: model -> label -> what was read strictly -> test rows."""

    names: list[str] = []
    protected: list[str] = []
    comparator: dict[str, int] | None = None
    models: list[LabelModel] = []
    confusion: dict[str, dict[str, dict[str, int]]] = {}
    compared: list[LabelComparison] = []

    def model(self, split: str, model: str) -> LabelModel | None:
        return next((m for m in self.models if (m.split, m.model) == (split, model)), None)


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
