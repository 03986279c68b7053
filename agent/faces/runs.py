"""What `rehear run` and `rehear demo` share: load the brief, run it with a face, print the ending."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agent.brief import Brief
from agent.document import error_document
from agent.events import Finished
from agent.faces.headless import StopFlag, emitter, listening
from tools.errors import RehearError, UsageError


def load_brief(path: Path, budget: str | None = None) -> Brief:
    brief = Brief.load(path)
    return brief if budget is None else brief.with_budget(budget)


def parse_answers(answers: list[str]) -> dict[str, Any]:
    """ID=VALUE pairs; a value is YAML. Raises UsageError on a pair without '='."""
    import yaml

    out = {}
    for pair in answers:
        name, sign, value = pair.partition("=")
        if not sign:
            raise UsageError(f"--answer takes ID=VALUE, got {pair!r}")
        out[name.strip()] = yaml.safe_load(value)
    return out


def run_brief(
    path: Path,
    workdir: Path | None,
    *,
    budget: str | None = None,
    answers: list[str] | None = None,
    json_mode: bool = False,
    stream_mode: bool = False,
    until: str = "",
) -> dict[str, Any]:
    """Runs a brief with the face the flags ask for, and returns the final document. In json mode it is printed whatever happens."""
    flag = StopFlag()
    try:
        with listening(flag):
            from agent.driver import run

            brief = load_brief(path, budget)
            document = run(
                brief,
                workdir or Path("workdirs") / brief.name,
                emit=emitter(json_mode, stream_mode),
                should_stop=flag,
                answers=parse_answers(answers or []),
                until=until,
            )
    except RehearError as error:
        document = error_document(error, workdir)
    except KeyboardInterrupt:
        document = error_document(KeyboardInterrupt("stopped at once"), workdir)
    if document["status"] == "interrupted":
        document["exit_code"] = flag.exit_code
    _print_ending(document, json_mode, stream_mode)
    return document


def _print_ending(document: dict[str, Any], json_mode: bool, stream_mode: bool) -> None:
    if json_mode or stream_mode:
        last = Finished(document=document).to_json() if stream_mode else document
        print(json.dumps(last, ensure_ascii=False), flush=True)
        if document["error"]:
            print(f"rehear: {document['error']['message']}", file=sys.stderr)
        return
    if document["artefacts"].get("headroom") and document["status"] == "finished":
        print(Path(document["artefacts"]["headroom_text"]).read_text(encoding="utf-8"))
        print(f"page    {document['artefacts']['headroom_page']}")
        print(f"ledger  {document['ledger']['head']}:{document['ledger']['records']}")
    elif document["result"] is not None:
        from tools.report import load_result, render_terminal

        print(render_terminal(load_result(Path(document["artefacts"]["result"])), bold=sys.stdout.isatty()))
        print(f"report  {document['artefacts']['report']}")
        print(f"ledger  {document['ledger']['head']}:{document['ledger']['records']}")
    for q in document["questions"]:
        print(f" ? {q['id']}: {q['text']} ({q['why']})", file=sys.stderr)
    if document["error"]:
        print(f"rehear: {document['error']['message']}", file=sys.stderr)
