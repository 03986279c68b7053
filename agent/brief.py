"""The brief: what the customer told us, typed; what is still missing, and which defaults are safe.

A value of None means "not said". `missing` turns what was not said into questions: those with a default are assumed and
written down as assumptions, those without one stop a headless run. Paths stay as written (the digest is over what was
written); `manifests` and `seed_folder` resolve them against the brief's own folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from agent.ledger.chain import digest
from agent.questions import QUESTION_IDS, QUESTIONS, Question
from agent.redact import redact
from tools.errors import UsageError
from tools.plain_yaml import read_yaml

__all__ = ["QUESTION_IDS", "Brief", "BudgetBrief", "DataBrief", "Question"]

Paths = str | list[str]
SPLITS = ("train", "dev", "test", "retention")
NO_RETENTION = "none"
TRAIN_RETENTION = "train_retention"
UNITS = ("cpu_minutes", "gpu_hours", "money")
EMBEDDED = "embedded"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataBrief(_Part):
    """Manifests: ready splits (`train`, `dev`, `test`, `retention`), or `manifest` to be split by `split_by`."""

    train: Paths | None = None
    dev: Paths | None = None
    test: Paths | None = None
    retention: Paths | None = None
    train_retention: Paths | None = None  # training clips of what must be kept, beside those of what shall improve
    manifest: Paths | None = None
    split_by: Literal["speaker", "recording"] | None = None

    @field_validator("train", "dev", "test", "retention", "train_retention", "manifest")
    @classmethod
    def _named(cls, value: Paths | None) -> Paths | None:
        if value is not None and (not value or not all(isinstance(v, str) and v.strip() for v in _listed(value))):
            raise ValueError("a path is needed, or a list of paths")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> DataBrief:
        if self.manifest is not None and self.train is not None:
            raise ValueError("give either manifest (to be split) or train, not both")
        return self


class BudgetBrief(_Part):
    """One cap, in one unit. `money` needs a currency and the prices to reckon with, e.g. {cpu_hour: 0.1}."""

    cpu_minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    gpu_hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    money: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    currency: str | None = None
    prices: dict[Literal["cpu_hour", "gpu_hour"], Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None

    @model_validator(mode="after")
    def _one_unit(self) -> BudgetBrief:
        given = [unit for unit in UNITS if getattr(self, unit) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(UNITS)}")
        if given == ["money"] and (not self.currency or not self.prices):
            raise ValueError("money needs currency and prices (cpu_hour, gpu_hour): an unknown price is refused")
        return self

    @property
    def unit(self) -> str:
        return next(unit for unit in UNITS if getattr(self, unit) is not None)

    @property
    def cap(self) -> float:
        return float(getattr(self, self.unit))


class Brief(_Part):
    """What the customer told us. Keys and meanings: house §3; `rehear plan BRIEF` says what they lead to."""

    name: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$")
    task: Literal["asr", "label"] | None = None
    languages: list[str] | None = Field(default=None, min_length=1)
    seed_model: str | dict[str, Any] | None = None  # weights; or a served model, or {answers: FILE}
    data: DataBrief | None = None
    labels: list[str] | None = Field(default=None, min_length=2)
    metric: Literal["wer", "cer", "mer", "accuracy", "macro_recall"] | None = None
    reward: str | dict[str, Any] | None = None  # what training pays for, see tools.reward.reward_from
    profile: str | None = Field(default=None, min_length=1)
    retention_limit: float | None = Field(default=None, ge=0, le=1)
    protected: list[str] | None = None  # labels whose recall must not fall
    class_limit: float | None = Field(default=None, ge=0, le=1)
    prompts: list[str] | None = None  # an empty list: made from the training references
    budget: BudgetBrief | None = None
    where: Literal["local"] | None = None
    random_seed: int | None = Field(default=None, ge=0, lt=2**32)
    keep_text: bool | None = None
    preset: str | None = Field(default=None, min_length=1)
    reused_benchmark: bool | None = None

    _base: Path = PrivateAttr(default_factory=Path)

    @field_validator("seed_model")
    @classmethod
    def _seed(cls, value: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        """A served model's description is checked at once; it holds no key, and no address need stand in it."""
        if isinstance(value, dict):
            if set(value) == {"answers"} and isinstance(value["answers"], str) and value["answers"]:
                return value
            from tools.decode.served.settings import Served

            Served.build(value)
        elif value is not None and not value:
            raise ValueError("a folder, a name, a served model or given answers are needed")
        return value

    @field_validator("languages", mode="before")
    @classmethod
    def _one_language(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @classmethod
    def load(cls, path: Path | str) -> Brief:
        """Read a YAML brief; its name defaults to the file's. Raises UsageError naming the key at fault."""
        path = Path(path)
        try:
            values = read_yaml(path.read_text(encoding="utf-8"))
        except OSError as err:
            raise UsageError(f"the brief {path} cannot be read: {err.strerror}") from err
        except (yaml.YAMLError, UnicodeDecodeError) as err:
            raise UsageError(f"the brief {path} is not YAML: {' '.join(str(err).split())}") from err
        if not isinstance(values, dict):
            raise UsageError(f"the brief {path} must be a mapping of keys such as name, data, budget")
        return cls.build({"name": _slug(path), **values}, base=path.parent, where=str(path))

    @classmethod
    def build(cls, values: Mapping[str, Any], *, base: Path | str = ".", where: str = "the brief") -> Brief:
        """A brief from a mapping; relative paths are relative to `base`. Raises UsageError naming the key at fault."""
        _known_keys(values, cls, where)
        try:
            brief = cls.model_validate(dict(values))
        except ValidationError as err:
            raise UsageError(_first_error(err, where)) from err
        brief._base = Path(base)
        _without_secrets(brief.to_json(), where)
        return brief

    def to_json(self) -> dict[str, Any]:
        """What was said, as written; nothing that was not said."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def digest(self) -> str:
        return digest(self.to_json())

    def with_budget(self, text: str) -> Brief:
        """The brief with the budget of `--budget`: `40cpu_minutes`, `2 gpu_hours`, or `30 money` (prices stay)."""
        found = re.fullmatch(rf"\s*([0-9.]+)\s*({'|'.join(UNITS)})\s*", text)
        if not found:
            raise UsageError(
                f"--budget takes a number and a unit ({', '.join(UNITS)}), such as 40cpu_minutes, got {text!r}"
            )
        more = {} if self.budget is None or found[2] != "money" else self.budget.model_dump(exclude_none=True)
        return self.answered({"budget": {**more, found[2]: yaml.safe_load(found[1])}})

    def answered(self, answers: Mapping[str, Any]) -> Brief:
        """The brief with answers to questions, by question id. Raises UsageError for an unknown id or a wrong value."""
        values = self.to_json()
        for name, value in answers.items():
            if name not in QUESTIONS:
                raise UsageError(f"there is no question {name!r}{_closest(name, QUESTIONS)}")
            key, part = _PLACES.get(name, (name, ""))
            values[key] = {**(values.get(key) or {}), part: value} if part else value
        return Brief.build(values, base=self._base, where="the answer")

    def answer_to(self, question: str) -> Any:
        """What the brief says to a question id, None where it says nothing."""
        key, part = _PLACES.get(question, (question, ""))
        value = self.to_json().get(key)
        return value.get(part) if part and isinstance(value, dict) else value

    def missing(self, found: Mapping[str, Any] | None = None) -> list[Question]:
        """What was not said, in the order of asking; a question whose `default` is None must be asked.

        `found`: what looking told (`agent.findings.look`): languages, english_only, labels, made_test.
        """
        return [q for q in (ask(self, dict(found or {})) for ask in QUESTIONS.values()) if q is not None]

    @property
    def complete(self) -> bool:
        return all(q.default is not None for q in self.missing())

    @property
    def base(self) -> Path:
        """The folder that relative paths are relative to."""
        return self._base

    def at(self, other: Brief) -> Brief:
        """The same brief with the folder of another."""
        return Brief.build(self.to_json(), base=other.base)

    def resolve(self, path: str) -> Path:
        """A path as written -> absolute, relative to the brief's folder; `~` is the user's home."""
        return (self._base / Path(path).expanduser()).absolute()

    def manifests(self) -> dict[str, list[Path]]:
        """Resolved manifests by split, under "manifest" those still to be split, under "train_retention" the part of the
        training mix that is to be kept; absent ones are left out."""
        data = self.data or DataBrief()
        named = {name: getattr(data, name) for name in (*SPLITS, TRAIN_RETENTION, "manifest")}
        return {
            name: [self.resolve(p) for p in _listed(value)]
            for name, value in named.items()
            if value is not None and not (name == "retention" and value == NO_RETENTION)
        }

    def check_files(self) -> None:
        """Raises UsageError naming the key and the path of the first manifest that is not there."""
        for name, paths in self.manifests().items():
            for path in paths:
                if not path.exists():
                    raise UsageError(f"data.{name}: there is no manifest at {path}")

    @property
    def seed_folder(self) -> Path | None:
        """The seed model's folder where the brief names one that exists; None for a name to be looked up."""
        if not isinstance(self.seed_model, str) or self.seed_model == EMBEDDED:
            return None
        path = self.resolve(str(self.seed_model))
        return path if path.is_dir() else None


_PLACES = {"splits": ("data", "split_by"), "retention": ("data", "retention")}


def _listed(paths: Paths) -> list[str]:
    return [paths] if isinstance(paths, str) else list(paths)


def _slug(path: Path) -> str:
    stem = path.parent.name if path.stem == "brief" and path.parent.name else path.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._") or "run"


def _closest(key: str, known: Any) -> str:
    near = get_close_matches(key, [str(k) for k in known], n=1, cutoff=0.5)
    return f" (closest: {near[0]})" if near else f": known are {', '.join(sorted(known))}"


def _known_keys(values: Mapping[str, Any], model: type[BaseModel], where: str, under: str = "") -> None:
    for key, value in values.items():
        if key not in model.model_fields:
            raise UsageError(f"{where}: unknown key {under}{key}{_closest(str(key), model.model_fields)}")
        inner: type[BaseModel] | None = {"data": DataBrief, "budget": BudgetBrief}.get(str(key))  # type: ignore[assignment]
        if inner and not under and isinstance(value, Mapping):
            _known_keys(value, inner, where, f"{key}.")


def _without_secrets(values: Mapping[str, Any], where: str) -> None:
    """A brief is stored and committed as it was given, so what looks like a secret must not stand in it."""
    for key, value in values.items():
        if redact({key: value}) != {key: value}:
            raise UsageError(f"{where}: {key} holds what looks like a secret: take it out, keys go by the environment")


def _first_error(err: ValidationError, where: str) -> str:
    first = err.errors()[0]
    parts = [str(p) for p in first["loc"] if not re.match(r"^(str|list\[)", str(p))]
    text = first["msg"].removeprefix("Value error, ")
    return f"{where}: {'.'.join(parts) or 'the brief'}: {text[:1].lower()}{text[1:]}"
