"""What the rules look at: a work directory read once, nothing trusted and nothing changed.

Every property is read when first asked for. A file that is missing or unreadable is None or empty here; the rules say
what that means.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from agent.history import History, Revision
from agent.ledger.chain import LEDGER, Record, verify_bytes
from tools.errors import UsageError

FINISH = "finish"


@dataclass(frozen=True, slots=True)
class Violation:
    """What a rule found: the records (seq) and files ({path, line}) it rests on, and a sentence."""

    text: str
    records: tuple[int, ...] = ()
    files: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class NotChecked:
    """What a rule could not look at, and why."""

    why: str


Finding = Violation | NotChecked
Check = Callable[["Evidence"], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """An id, a sentence that says what must hold, and the check of it."""

    id: str
    text: str
    check: Check


@dataclass(frozen=True, slots=True)
class EvalFiles:
    """One evaluation on record beside its files. `rows` by line, `None` where rows.jsonl cannot be read."""

    record: Record
    folder: Path
    rows: list[dict[str, Any]] | None

    @property
    def id(self) -> str:
        return str(self.record.payload["eval_id"])

    @property
    def name(self) -> str:
        return f"evals/{self.id}/rows.jsonl"


@dataclass
class Evidence:
    """A work directory under audit. `expect_head` is (hash, count) where a head was given out."""

    workdir: Path
    expect_head: tuple[str, int] | None = None
    data: bytes = b""
    torn: bytes = b""
    broken: list[tuple[int, str]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    cache: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, workdir: Path, expect_head: tuple[str, int] | None = None) -> Evidence:
        """Raises UsageError where there is no ledger; a broken ledger is evidence, not an error."""
        path = workdir / LEDGER
        if not path.is_file():
            raise UsageError(f"{workdir} is not a work directory: it has no {LEDGER}")
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        self = cls(workdir, expect_head, data[:whole], data[whole:])
        self.records = verify_bytes(self.data, path, lambda line, why: self.broken.append((line, why)))
        return self

    # -- records ----------------------------------------------------------------------------------------------------

    @cached_property
    def by_kind(self) -> dict[str, list[Record]]:
        out: dict[str, list[Record]] = {}
        for record in self.records:
            out.setdefault(record.kind, []).append(record)
        return out

    def of(self, kind: str) -> list[Record]:
        return self.by_kind.get(kind, [])

    def last(self, kind: str, **payload: Any) -> Record | None:
        return next(
            (r for r in reversed(self.of(kind)) if all(r.payload.get(k) == v for k, v in payload.items())), None
        )

    @property
    def finished(self) -> bool:
        """Whether the run says that it came to its end: then nothing may be left open."""
        return self.last("decision", what=FINISH) is not None

    @cached_property
    def open_intents(self) -> list[Record]:
        """Intents without any outcome: work that runs now, or that a kill ended and nobody resumed."""
        done = {r.key for r in self.of("outcome")}
        return [r for r in self.of("intent") if r.key not in done]

    def in_flight(self, name: str) -> bool:
        """Whether an open intent mentions this evaluation or run."""
        return any(name in json.dumps(r.payload["args"], ensure_ascii=False) for r in self.open_intents)

    @property
    def frozen(self) -> Record | None:
        return self.of("freeze")[0] if self.of("freeze") else None

    @property
    def contract(self) -> Mapping[str, Any] | None:
        """The contract as it was frozen on record."""
        return self.frozen.payload["contract"] if self.frozen else None

    @property
    def metric(self) -> str:
        return str(self.contract["selection"]["metric"]) if self.contract else "wer"

    def score_of(self, record: Record) -> float | None:
        """The declared metric of an `eval` record."""
        scores = record.payload["scores"]
        if self.metric in scores:
            return scores[self.metric]  # type: ignore[no-any-return]
        return scores["cer" if self.metric == "cer" else "wer"]  # type: ignore[no-any-return]

    @cached_property
    def brief(self) -> dict[str, Any]:
        """What was wished for: the plan's brief with the answers given since; {} before there is a plan."""
        plan = self.of("plan")[-1] if self.of("plan") else None
        return dict(plan.payload["brief"]) if plan else {}

    # -- files ------------------------------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        return self.workdir / name

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {}

    def sha256(self, name: str) -> str | None:
        """Digest of a file of the work directory, None where it is not there."""
        if name not in self._digests:
            path = self.path(name)
            if not path.is_file():
                return None
            with path.open("rb") as handle:
                self._digests[name] = hashlib.file_digest(handle, "sha256").hexdigest()
        return self._digests[name]

    def json(self, name: str) -> Any:
        """A JSON file, None where it is missing or not JSON."""
        try:
            return json.loads(self.path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def jsonl(self, name: str) -> list[dict[str, Any]] | None:
        """The objects of a JSONL file, a broken line as {}; None where the file is missing."""
        path = self.path(name)
        if not path.is_file():
            return None
        return [_object(line) for line in path.read_bytes().split(b"\n") if line]

    @cached_property
    def membership(self) -> list[dict[str, Any]] | None:
        return self.jsonl("data/membership.jsonl")

    @cached_property
    def members(self) -> dict[str, dict[str, dict[str, Any]]]:
        """split -> id -> membership row."""
        out: dict[str, dict[str, dict[str, Any]]] = {}
        for row in self.membership or []:
            out.setdefault(str(row.get("split")), {})[str(row.get("id"))] = row
        return out

    @cached_property
    def evals(self) -> list[EvalFiles]:
        """Every evaluation on record, in order, with its rows."""
        out = []
        for record in self.of("eval"):
            folder = self.path(f"evals/{record.payload['eval_id']}")
            out.append(EvalFiles(record, folder, self.jsonl(f"evals/{record.payload['eval_id']}/rows.jsonl")))
        return out

    def eval(self, eval_id: str) -> EvalFiles | None:
        return next((e for e in reversed(self.evals) if e.id == eval_id), None)

    @cached_property
    def profile(self) -> Any:
        """The normaliser of the contract as it is here; None where there is none or this one is another version."""
        from tools.errors import RehearError
        from tools.text import profile

        if self.contract is None:
            return None
        try:
            known = profile(str(self.contract["profile"]["name"]))
        except RehearError:
            return None
        return known if known.to_json() == dict(self.contract["profile"]) else None

    @cached_property
    def labels(self) -> Any:
        """The LabelSet of a label task's contract; None for transcripts, or without the contract's normaliser."""
        names = (self.contract or {}).get("scoring", {}).get("labels")
        if names is None or self.profile is None:
            return None
        from tools.score.labels import label_set

        return label_set(self.profile, names)

    @cached_property
    def report_code(self) -> str | None:
        """The code that made the report, where that is not the code that audits; else None."""
        from agent.machine import code

        made = next((r.code for r in reversed(self.of("outcome")) if r.payload["effect"] == "report"), None)
        return None if made == code() else str(made)

    @cached_property
    def result(self) -> dict[str, Any] | None:
        """report/result.json, None before there is one."""
        value = self.json("report/result.json")
        return value if isinstance(value, dict) else None

    # -- history ----------------------------------------------------------------------------------------------------

    @cached_property
    def history(self) -> History:
        return History(self.workdir)

    @cached_property
    def revisions(self) -> list[Revision]:
        return self.history.revisions()


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def near(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    """Equal figures: null equals null, numbers within an absolute tolerance."""
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    return abs(float(a) - float(b)) <= tolerance
