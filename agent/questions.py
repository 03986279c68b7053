"""What can be asked, in the order of asking: each with its schema, its reason, and a default where one is safe.

`QUESTIONS` maps the id to a function (brief, what was found out) -> Question, or None where nothing is open. A default
is safe when it can do no harm that a reader of the assumptions would not see: money, data and a language never have
one unless it was found out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.brief import Brief

SPACELESS = ("zh", "yue", "ja", "th", "lo", "my", "km")
TASKS = {"asr": ["wer", "cer", "mer"], "label": ["accuracy", "macro_recall"]}


@dataclass(frozen=True, slots=True)
class Question:
    """One open point. `default` None: nobody may assume an answer; `assumed` says what the default means."""

    id: str
    text: str
    schema: dict[str, Any]
    why: str
    default: Any = None
    assumed: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def record(self) -> dict[str, Any]:
        """The payload of a ledger `question`."""
        return {"id": self.id, "text": self.text, "schema": self.schema, "why": self.why}


Asker = Callable[["Brief", dict[str, Any]], Question | None]


def task_of(brief: Brief, found: dict[str, Any]) -> str:
    """The task as said, or as its safe default will be."""
    label = brief.labels is not None or (bool(found.get("labels")) and not found.get("texts"))
    return brief.task or ("label" if label else "asr")


def _task(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.task is not None:
        return None
    label = task_of(brief, found) == "label"
    return Question(
        "task",
        "Is the answer a transcript (asr) or one of a few labels (label)?",
        {"enum": ["asr", "label"]},
        "scoring, reward and output limits depend on it",
        "label" if label else "asr",
        "the rows carry labels and no transcripts" if label else "transcripts, as the rows carry texts",
    )


def _seed_model(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.seed_model is not None:
        return None
    english = not set(brief.languages or found.get("languages") or ["en"]) - {"en"}
    return Question(
        "seed_model",
        "Which model shall be improved (a Hugging Face Whisper folder, or embedded)?",
        {"type": ["string", "object"], "minLength": 1},
        "every figure is measured against it",
        "embedded" if english else None,
        "the embedded Whisper tiny.en" if english else "",
    )


def _languages(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.languages is not None:
        return None
    default, assumed = None, ""
    if found.get("languages"):
        default, assumed = sorted(found["languages"]), "the languages named in the manifests"
    elif found.get("english_only") or brief.seed_model in (None, "embedded"):
        default, assumed = ["en"], "the seed model knows English only"
    return Question(
        "languages",
        "Which languages are spoken (codes such as en, de)?",
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "a recogniser that guesses the language per clip is another recogniser",
        default,
        assumed,
    )


def _data(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.data is not None and (brief.data.train is not None or brief.data.manifest is not None):
        return None
    return Question(
        "data",
        "Where are the recordings: a training manifest (train, better with dev and test), or one manifest to be split?",
        {
            "type": "object",
            "properties": {k: {"type": "string"} for k in ("train", "dev", "test", "retention", "manifest")},
            "anyOf": [{"required": ["train"]}, {"required": ["manifest"]}],
        },
        "nothing can be measured or learnt without them",
    )


def _splits(brief: Brief, found: dict[str, Any]) -> Question | None:
    data = brief.data
    if data is None or data.split_by is not None or (data.dev is not None and data.test is not None):
        return None
    return Question(
        "splits",
        "Missing splits are made from the training material: keep apart speakers or recordings?",
        {"enum": ["speaker", "recording"]},
        "a voice on both sides would make the test say nothing about new voices",
        "speaker",
        "missing splits are made from the training material, no speaker in two of them",
    )


def _retention(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.data is None or brief.data.retention is not None:
        return None
    return Question(
        "retention",
        "Which recordings show what the model must not lose (a manifest), if any?",
        {"type": "string", "minLength": 1},
        "what is not measured can get worse unseen",
        "none",
        "no retention set: retention stays unmeasured",
    )


def _metric(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.metric is not None:
        return None
    if task_of(brief, found) == "label":
        default, assumed = "macro_recall", "each label counts the same"
    elif set(brief.languages or found.get("languages") or []) & set(SPACELESS):
        default, assumed = "cer", "a language written without spaces"
    else:
        default, assumed = "wer", "word error rate"
    return Question(
        "metric",
        "Which figure decides?",
        {"enum": TASKS[task_of(brief, found)]},
        "checkpoints are selected by it, and it is fixed before sampling",
        default,
        assumed,
    )


def _profile(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.profile is not None:
        return None
    english = list(brief.languages or found.get("languages") or ["en"]) == ["en"]
    label = task_of(brief, found) == "label"
    return Question(
        "profile",
        "Which normaliser profile is scored with?",
        {"type": "string", "minLength": 1},
        "spelling, case and number style decide what counts as an error",
        "english" if english and not label else "basic",
        "the English rule set" if english and not label else "case and punctuation ignored",
    )


def _protected(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.protected is not None or task_of(brief, found) != "label":
        return None
    return Question(
        "protected",
        "Which labels must not lose recall?",
        {"type": "array", "items": {"type": "string"}},
        "a rare label can get worse while the total gets better",
        [],
        "no label is protected",
    )


def _class_limit(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.class_limit is not None or not brief.protected:
        return None
    return Question(
        "class_limit",
        "By how much may the dev recall of a protected label fall (absolute)?",
        {"type": "number", "minimum": 0, "maximum": 1},
        "a checkpoint beyond it is not chosen",
        0.05,
        "five points, absolute",
    )


def _budget(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.budget is not None:
        return None
    number = {"type": "number", "exclusiveMinimum": 0}
    return Question(
        "budget",
        "How much may it cost at most: cpu_minutes, gpu_hours, or money with currency and prices?",
        {
            "type": "object",
            "properties": {"cpu_minutes": number, "gpu_hours": number, "money": number, "currency": {"type": "string"}},
            "minProperties": 1,
        },
        "nothing is spent without a limit",
    )


def _reused(brief: Brief, found: dict[str, Any]) -> Question | None:
    if brief.reused_benchmark is not None:
        return None
    made = brief.data is None or brief.data.test is None
    return Question(
        "reused_benchmark",
        "Has the test split been looked at or used for choices before?",
        {"type": "boolean"},
        "a test that shaped earlier choices flatters, and the report must say so",
        False,
        "the test split is made afresh" if made else "nobody said that the test split was used before",
    )


def _fixed(name: str, text: str, schema: dict[str, Any], why: str, default: Any, assumed: str) -> Asker:
    """A question whose default does not depend on anything."""

    def ask(brief: Brief, found: dict[str, Any]) -> Question | None:
        return Question(name, text, schema, why, default, assumed) if getattr(brief, name) is None else None

    return ask


QUESTIONS: dict[str, Asker] = {
    "data": _data,
    "budget": _budget,
    "task": _task,
    "seed_model": _seed_model,
    "languages": _languages,
    "splits": _splits,
    "retention": _retention,
    "metric": _metric,
    "profile": _profile,
    "retention_limit": _fixed(
        "retention_limit",
        "By how much may the retention error rate rise (absolute)?",
        {"type": "number", "minimum": 0, "maximum": 1},
        "a checkpoint beyond it is not chosen",
        0.01,
        "one point, absolute",
    ),
    "protected": _protected,
    "class_limit": _class_limit,
    "prompts": _fixed(
        "prompts",
        "Which prompts are worth comparing on dev (the empty one too)?",
        {"type": "array", "items": {"type": "string"}},
        "a gain over a badly prompted model is no gain",
        [],
        "three made from the training references: none, an example of style, a glossary",
    ),
    "reused_benchmark": _reused,
    "where": _fixed("where", "Where does it run?", {"enum": ["local"]}, "what is paid for", "local", "this machine"),
    "random_seed": _fixed(
        "random_seed",
        "Which seed do sampling and splits start from?",
        {"type": "integer", "minimum": 0},
        "the same seed gives the same run",
        0,
        "seed 0",
    ),
    "keep_text": _fixed(
        "keep_text",
        "May transcripts be kept in the work directory's history and report?",
        {"type": "boolean"},
        "texts may be private",
        False,
        "texts stay out of git and of the report",
    ),
    "preset": _fixed(
        "preset",
        "Which training preset?",
        {"type": "string", "minLength": 1},
        "it fixes updates, groups and learning rate",
        "auto",
        "sized to the data",
    ),
}
QUESTION_IDS = tuple(QUESTIONS)
