"""What each kind of record carries. One model a kind; `PAYLOADS` is the table, and the only list of kinds.

A payload with a missing or a foreign field is refused when it is written, so that an auditor never has to guess.
Digests are sha256 in hex. Numbers that could not be measured are null, never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.errors import UsageError

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Unit = Literal["cpu_minutes", "gpu_hours", "money"]
Update = int | Literal["seed"]


class Payload(BaseModel):
    """Base of all payloads: no foreign fields, no coercion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, serialize_by_alias=True, populate_by_name=True)


class Step(Payload):
    id: str
    title: str
    does: str


class Plan(Payload):
    """What is to be done: whose wish, which code, which machine. `brief` is complete, assumptions included."""

    brief_sha256: Sha
    brief: dict[str, Any]
    steps: list[Step]
    versions: dict[str, str | None]
    source: dict[str, Any]
    machine: dict[str, Any]


class Question(Payload):
    id: str
    text: str
    schema_: dict[str, Any] = Field(alias="schema")
    why: str


class Answer(Payload):
    """`default` true: nobody said so, the agent assumed it; it is listed among the assumptions."""

    id: str
    value: Any
    why: str
    default: bool


class Finding(Payload):
    check: str
    severity: Literal["block", "warn", "info"]
    rows: int
    text: str = ""


class Split(Payload):
    rows: int
    speakers: int
    seconds: float


class DataCheck(Payload):
    """`near_checked` true: near copies (re-encoded, louder, cut) were looked for, not only equal samples. `manifests`: the
    digest of each split's manifests as they were read."""

    rows_in: int
    kept: int
    quarantined: int
    findings: list[Finding]
    checks_sha256: Sha
    membership_sha256: Sha
    splits: dict[str, Split]
    near_checked: bool = False
    manifests: dict[str, str] = {}


class Freeze(Payload):
    contract_sha256: Sha
    contract: dict[str, Any]


class Intent(Payload):
    effect: str
    args: dict[str, Any]


class Outcome(Payload):
    """`result.files` {path relative to the work directory: sha256} puts files under the audit's eye."""

    effect: str
    ok: bool
    result: dict[str, Any]


class Model(Payload):
    kind: Literal["seed", "checkpoint"]
    run: str | None = None
    update: int | None = None
    digest: Sha


class Scores(BaseModel):
    """Corpus totals. Label tasks add their own figures (accuracy, macro_recall, ...)."""

    model_config = ConfigDict(extra="allow", strict=True)
    wer: float | None = None
    cer: float | None = None
    insertions: int = 0
    deletions: int = 0
    substitutions: int = 0
    reference_units: int = 0


class Eval(Payload):
    """One evaluation; `row_digests_sha256` is the digest of evals/<id>/digests.txt (agent.ledger.rowfiles)."""

    eval_id: str
    split: str
    model: Model
    prompt: str
    rows: int
    rows_sha256: Sha
    scores_sha256: Sha
    contract_sha256: Sha | None
    scores: Scores
    row_digests_sha256: Sha | None = None
    decoding: dict[str, Any] | None = None
    details: dict[str, Any] = Field(default_factory=dict)


class Register(Payload):
    """What a run is to show, written before it starts."""

    run_id: str
    preset: str
    config_sha256: Sha
    updates: int
    random_seed: int
    metric: str
    split: str
    retention_limit: float
    hypothesis: str
    details: dict[str, Any] = Field(default_factory=dict)


class Launch(Payload):
    """`attempt` counts a run's launches from 1; `from_update` 0 is a fresh start."""

    run_id: str
    attempt: int
    from_update: int
    reservation: str
    details: dict[str, Any] = Field(default_factory=dict)


class Checkpoint(Payload):
    update: int
    digest: Sha


class RunEnd(Payload):
    """`reason`: finished, stopped, budget, failed, or lost (an attempt that a kill ended, told by the next one)."""

    run_id: str
    attempt: int
    reason: str
    updates: int
    checkpoints: list[Checkpoint]
    trained_sha256: Sha | None
    metrics_sha256: Sha | None
    details: dict[str, Any] = Field(default_factory=dict)


class Decision(Payload):
    what: str
    chosen: Any
    because: str
    details: dict[str, Any] = Field(default_factory=dict)


class TestOpen(Payload):
    __test__ = False  # not a pytest class

    run_id: str | None
    update: Update
    digest: Sha
    contract_sha256: Sha
    membership_sha256: Sha
    reused: bool


class Reserve(Payload):
    reservation: str
    unit: Unit
    amount: float = Field(ge=0, allow_inf_nan=False)
    for_: str = Field(alias="for")


class Settle(Payload):
    reservation: str
    unit: Unit
    amount: float = Field(ge=0, allow_inf_nan=False)
    measured_by: str


class Override(Payload):
    what: str
    from_: Any = Field(alias="from")
    to: Any
    why: str


class Note(Payload):
    text: str
    details: dict[str, Any] = Field(default_factory=dict)


class Recovery(Payload):
    what: str
    details: dict[str, Any] = Field(default_factory=dict)


class Claim(Payload):
    """A sentence with a figure in it, and what it rests on: evaluations by id, the run's registration by seq."""

    id: str
    text: str
    value: Any
    evals: list[str]
    register_: int | None = Field(alias="register")
    interval: list[float] | None
    details: dict[str, Any] = Field(default_factory=dict)


PAYLOADS: dict[str, type[Payload]] = {
    "plan": Plan,
    "question": Question,
    "answer": Answer,
    "data_check": DataCheck,
    "freeze": Freeze,
    "intent": Intent,
    "outcome": Outcome,
    "eval": Eval,
    "register": Register,
    "launch": Launch,
    "run_end": RunEnd,
    "decision": Decision,
    "test_open": TestOpen,
    "reserve": Reserve,
    "settle": Settle,
    "claim": Claim,
    "note": Note,
    "recovery": Recovery,
    "override": Override,
}
KINDS = tuple(PAYLOADS)


def plain(value: Any, where: str = "payload") -> Any:
    """A JSON value with numpy scalars, tuples and paths made plain, and NaN and infinities refused (UsageError)."""
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{where}.{k}") for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if value is None or isinstance(value, bool | str | int):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return plain(value.item(), where)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"{where} is {value}: the ledger holds null for what could not be measured")
        return value
    return str(value)


def check_payload(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload as it will be stored. Raises UsageError naming the kind and the field."""
    if kind not in PAYLOADS:
        raise UsageError(f"{kind!r} is not a kind of ledger record: one of {', '.join(KINDS)}")
    try:
        return PAYLOADS[kind].model_validate(plain(payload, kind)).model_dump(by_alias=True, exclude_none=False)
    except ValidationError as err:
        first = err.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "payload"
        raise UsageError(f"a {kind} record cannot be written: {field}: {first['msg']}") from err
