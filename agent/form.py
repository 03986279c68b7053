"""A commented brief to fill in: what is known is written, every safe default stands beside it as a comment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agent.brief import Brief, DataBrief, _slug
from agent.questions import QUESTIONS, Question
from tools.errors import UsageError

HEAD = """# What Rehear is told. Lines that begin with '#' and a key are safe defaults: remove the '#' to say otherwise.
# `rehear plan {name}` says what it would do and cost; `rehear run {name}` does it.
"""
INNER = {"splits": "split_by inside data", "retention": "retention inside data"}
UNFILLED = {
    "data": {"train": "train.jsonl", "dev": "dev.jsonl", "test": "test.jsonl"},
    "budget": {"cpu_minutes": 60},
}


def brief_form(values: Mapping[str, Any], found: Mapping[str, Any], path: Path) -> str:
    """The text of a brief with `values` filled in; paths in it are relative to `path`'s folder.

    `found` is what the manifests tell. What nobody may assume and `values` lacks stands as a comment too, marked FILL IN: left as it is, a run asks for it.
    """
    known = {key: value for key, value in values.items() if value is not None}
    lines = [HEAD.format(name=path.name), f"name: {known.pop('name', _slug(path))}", ""]
    brief = Brief.build(known, base=path.parent)
    for key, ask in QUESTIONS.items():
        question = ask(Brief.build({}, base=path.parent) if key in known else brief, dict(found))
        if question is None and key not in known:
            continue
        lines += [] if question is None else [f"# {question.text}", f"#   ({question.why})"]
        lines += [_line(key, known, question), ""]
    return "\n".join(lines)


def _line(key: str, known: Mapping[str, Any], question: Question | None) -> str:
    if key in known:
        return _yaml(key, known[key])
    if question is None or question.default is None:
        return f"# {_yaml(key, UNFILLED.get(key, '...'))}   # FILL IN"
    place = INNER.get(key, key)
    return f"# {_yaml(place, question.default)}" + (f"   # {question.assumed}" if question.assumed else "")


def _yaml(key: str, value: Any) -> str:
    body = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=True, width=10_000)
    return f"{key}: {body.removesuffix('...' + chr(10)).rstrip()}"


def _look(known: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What the manifests tell, where some are named."""
    from agent.findings import look

    if not known.get("data"):
        return {}
    return look(Brief.build({"data": known["data"]}, base=path.parent))


def write_form(path: Path, data: Mapping[str, Path | None], budget: str | None) -> dict[str, Any]:
    """Writes the brief and returns what is still open: {path, open: [question ids]}.

    Raises UsageError where `path` exists, where a manifest is missing, or for a budget that cannot be read.
    """
    if path.exists():
        raise UsageError(f"{path} exists: give another name, or edit it")
    for name, manifest in data.items():
        if manifest is not None and not manifest.exists():
            raise UsageError(f"--{name}: there is no manifest at {manifest}")
    named = {k: os.path.relpath(v.absolute(), path.absolute().parent) for k, v in data.items() if v is not None}
    values: dict[str, Any] = {"data": DataBrief.model_validate(named).model_dump(exclude_none=True)} if named else {}
    if budget is not None:
        values["budget"] = Brief.build({"name": _slug(path)}, base=path.parent).with_budget(budget).to_json()["budget"]
    path.parent.mkdir(parents=True, exist_ok=True)  # before looking: `..` in a path needs the folder it is in
    found = _look(values, path.absolute())
    path.write_text(brief_form(values, found, path.absolute()), encoding="utf-8")
    brief = Brief.build(values, base=path.absolute().parent)
    return {"path": str(path), "open": [q.id for q in brief.missing(found) if q.default is None]}
