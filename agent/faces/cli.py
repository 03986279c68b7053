"""The one command table. Help and docs come from it; every command imports what it needs only when it runs.

Others script against this: exit codes and final documents are those of the headless contract (house.md §6).
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.faces.data import Json, Manifests, registry
from tools.errors import RehearError, UsageError

app = typer.Typer(
    name="rehear",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Reinforcement learning for speech recognisers, with a ledger that a stranger can audit.",
)

app.add_typer(registry, name="registry")
Stream = Annotated[bool, typer.Option("--stream", help="One JSON event a line on stdout, the final document last.")]
Workdir = Annotated[Path | None, typer.Option(help="Work directory (default workdirs/<name>).")]
Budget = Annotated[str | None, typer.Option(help="Cap, such as 40cpu_minutes.")]
Answers = Annotated[list[str] | None, typer.Option(help="ID=VALUE: answers an open question. Repeatable.")]
Finished = Annotated[Path, typer.Argument(metavar="WORKDIR", help="A work directory.")]


@app.command()
def demo(
    workdir: Workdir = None,
    seed: Annotated[int, typer.Option(help="Seeds corpus, splits and training.")] = 0,
    json_: Json = False,
    stream: Stream = False,
) -> None:
    """The main job on the embedded default: a spoken corpus in, an audited better model out."""
    from agent.faces.runs import run_brief
    from tools.embedded.demo import demo_brief

    brief = demo_brief(seed)
    _exit(run_brief(brief, workdir or Path("workdirs") / f"demo-{seed}", json_mode=json_, stream_mode=stream))


@app.command()
def run(
    brief: Annotated[Path, typer.Argument(help="The brief (YAML): what you know, in house.md's keys.")],
    workdir: Workdir = None,
    budget: Budget = None,
    answer: Answers = None,
    json_: Json = False,
    stream: Stream = False,
) -> None:
    """Run or resume a brief: check, baseline, mine, train, select, evaluate, hand over."""
    from agent.faces.runs import run_brief

    _exit(run_brief(brief, workdir, budget=budget, answers=answer or [], json_mode=json_, stream_mode=stream))


@app.command()
def check(
    manifests: Manifests,
    task: Annotated[str, typer.Option(help="asr (rows need a reference) or label (rows need a label).")] = "asr",
    lang: Annotated[list[str] | None, typer.Option(help="A language that rows may be in. Repeatable.")] = None,
    max_duration: Annotated[float, typer.Option(help="The model's window in seconds.")] = 30.0,
    max_quarantine: Annotated[
        float | None, typer.Option(help="Share of a split that may be set aside (default 0.05; 0 for dev and test).")
    ] = None,
    near: Annotated[bool, typer.Option(help="Look for near copies of audio too.")] = True,
    cache: Annotated[
        Path | None, typer.Option(help="File that remembers what was heard: next time only the rest.")
    ] = None,
    drop_leaks: Annotated[bool, typer.Option("--drop-leaks", help="Write no train row that leaks.")] = False,
    write_nemo: Annotated[Path | None, typer.Option(help="Folder for NeMo manifests of the rows kept.")] = None,
    write_lhotse: Annotated[Path | None, typer.Option(help="Folder for Lhotse cuts of the rows kept.")] = None,
    write_rows: Annotated[
        Path | None, typer.Option(help="File for the rows kept, with digests of their audio.")
    ] = None,
    json_: Json = False,
) -> None:
    """Check manifests (several are splits, named by file): rows, audio, leaks. What is given is never changed."""
    from agent.faces.data import Outputs, run_check

    options = {"task": task, "languages": lang, "max_duration_s": max_duration, "max_quarantine": max_quarantine}
    outputs = Outputs(write_nemo, write_lhotse, write_rows, drop_leaks)
    raise typer.Exit(run_check(manifests, options | {"near": near, "cache": cache}, outputs, json_))


Profiles = Annotated[
    str, typer.Option(help="Normaliser profile: a built-in one, `command: PROGRAM` or `file.py:function`.")
]
Lang = Annotated[str | None, typer.Option(help="Language code, where rows have none.")]


@app.command()
def score(
    hyp: Annotated[Path, typer.Argument(help="Hypotheses: JSONL, NeMo pred_text, CTM, STM or TRN.")],
    ref: Annotated[Path, typer.Argument(help="References, keyed by the same ids.")],
    profile: Profiles = "basic",
    lang: Lang = None,
    task: Annotated[str, typer.Option(help="asr, or label: strict and parsed scores side by side.")] = "asr",
    label: Annotated[
        list[str] | None, typer.Option(help="A label of the task (default: those of REF). Repeatable.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Slices: lang, speaker, recording, domain, duration, script, numbers. Repeatable."),
    ] = None,
    keywords: Annotated[Path | None, typer.Option(help="Your keywords: one a line, or JSON lists by class.")] = None,
    worst: Annotated[int, typer.Option(min=0, help="How many of the worst rows to list.")] = 0,
    confusions: Annotated[int, typer.Option(min=0, help="How many of the commonest confusions to list.")] = 0,
    rules: Annotated[bool, typer.Option("--rules", help="Which rule of the profile moved the score.")] = False,
    script: Annotated[str, typer.Option(help="Your own scoring program, run beside ours.")] = "",
    prompt: Annotated[str, typer.Option(help="The model's prompt: answers that repeat it are counted.")] = "",
    trn: Annotated[Path | None, typer.Option(help="Folder for ref.trn and hyp.trn (sclite), normalised.")] = None,
    json_: Json = False,
) -> None:
    """Score hypotheses against references, keyed by id."""
    from tools.score.changes import label_table, score_table
    from tools.score.files import Wanted, label_files, read_keywords, score_files, trn_files

    if task not in ("asr", "label"):
        raise UsageError(f"The task is {task!r}: asr or label is due.")
    asked = {"--by": by, "--keywords": keywords, "--worst": worst, "--confusions": confusions, "--rules": rules}
    odd = (
        [name for name, value in (asked | {"--script": script, "--prompt": prompt}).items() if value]
        if task == "label"
        else []
    )
    if task == "asr" and label:
        odd = ["--label"]
    if odd:
        raise UsageError(f"{', '.join(odd)} cannot be had with --task {task}: leave it out.")
    if task == "label":
        document = label_files(hyp, ref, profile, label or (), lang)
    else:
        listed = read_keywords(keywords) if keywords else {}
        wanted = Wanted(by or (), listed, worst, confusions, rules, script, prompt)
        document = score_files(hyp, ref, profile, lang, wanted)
    if trn:
        document["written"] = trn_files(hyp, ref, trn, profile, lang)
    _print_json(document) if json_ else print((label_table if task == "label" else score_table)(document))


@app.command()
def compare(
    hyp_a: Annotated[Path, typer.Argument(help="Hypotheses of A.")],
    hyp_b: Annotated[Path, typer.Argument(help="Hypotheses of B.")],
    ref: Annotated[Path, typer.Argument(help="References with the blocks' column.")],
    by: Annotated[str, typer.Option(help="Blocks: speaker, recording or id (a clip).")] = "speaker",
    profile: Profiles = "basic",
    lang: Lang = None,
    again: Annotated[
        Path | None, typer.Option(help="A second decode of A, other batches: a gain under its noise is not shown.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="Non-inferiority: B may be worse by this much (absolute).")
    ] = None,
    slices: Annotated[list[str] | None, typer.Option("--slice", help="Compare by slice too. Repeatable.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for plots: change by clip, rates by block.")] = None,
    json_: Json = False,
) -> None:
    """Compare two systems on the same rows, paired, with an interval by blocks."""
    from tools.score.changes import compare_table
    from tools.score.filepairs import Terms, compare_files

    terms = Terms(by, again=again, margin=margin, slices=slices or ())
    document = compare_files(hyp_a, hyp_b, ref, profile, lang, terms)
    if plots:
        from tools.report.comparison import write_comparison_figures

        document["plots"] = [str(path) for path in write_comparison_figures(document, plots)]
    _print_json(document) if json_ else print(compare_table(document))


@app.command()
def audit(
    workdir: Annotated[Path | None, typer.Argument(help="A work directory.")] = None,
    expect_head: Annotated[str | None, typer.Option(help="HASH:COUNT that was given out at hand-over.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and stop.")] = False,
    json_: Json = False,
) -> None:
    """Re-derive every claim of a work directory from its files."""
    from agent.ledger.audit import RULES
    from agent.ledger.audit import audit as audit_workdir

    if rules:
        _show(dict(RULES), json_)
        return
    if workdir is None:
        raise UsageError("audit needs a work directory: rehear audit WORKDIR, or rehear audit --rules")
    report = audit_workdir(workdir, expect_head=expect_head)
    if json_:
        _print_json(report.to_json())
    else:
        print(report.to_text())
    raise typer.Exit(0 if report.ok else 5)


@app.command()
def status(workdir: Finished, json_: Json = False) -> None:
    """Where a work directory stands. Reads only; never calls a model."""
    from agent.status import status_document

    _show(status_document(workdir), json_)


@app.command()
def curves(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or a work directory that has trained.")],
    json_: Json = False,
) -> None:
    """Show a run's figures update by update in the terminal, and draw them as curves.png beside its metrics."""
    from tools.train.curves import show

    text, files = show(run)
    _print_json({"curves": [str(path) for path in files]}) if json_ else print(text, *files, sep="\n")


@app.command()
def report(workdir: Finished) -> None:
    """Render the report again from report/result.json and print its table."""
    from tools.report import load_result, render_all, render_terminal

    render_all(workdir)
    print(render_terminal(load_result(workdir / "report" / "result.json"), bold=sys.stdout.isatty()))


@app.command()
def plan(
    brief: Annotated[Path | None, typer.Argument(help="The brief (YAML).")] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model's memory plan: a folder, or nemotron-3.5-transcribe.")
    ] = None,
    surface: Annotated[str, typer.Option(help="With --memory: what trains.")] = "decoder",
    adapter: Annotated[str, typer.Option(help="With --memory: none, lora, rslora, dora or rsdora.")] = "none",
    precision: Annotated[str, typer.Option(help="With --memory: bf16 or float32.")] = "bf16",
    gpu_gib: Annotated[float, typer.Option(help="With --memory: memory of one GPU.")] = 80.0,
    json_: Json = False,
) -> None:
    """Say what a brief would do, and its worst case in time and cost; or what training a model takes. Starts nothing."""
    if memory is not None:
        from tools.policy.memory import memory_plan, memory_text

        document = memory_plan(memory, surface, adapter=adapter, precision=precision, gpu_gib=gpu_gib)
        _print_json(document) if json_ else print(memory_text(document))
        return
    if brief is None:
        raise UsageError("plan needs a brief, or --memory MODEL: rehear plan brief.yaml")
    from agent.faces.runs import load_brief
    from agent.plan import plan_document

    _show(plan_document(load_brief(brief)), json_)


@app.command()
def mine(
    brief: Annotated[Path, typer.Argument(help="The brief; its seed_model may be a served model, or {answers: FILE}.")],
    workdir: Workdir = None,
    budget: Budget = None,
    answer: Answers = None,
    json_: Json = False,
    stream: Stream = False,
) -> None:
    """Is there anything to learn for this model? Check, baseline, mine, and a verdict; nothing is trained."""
    from agent.faces.runs import run_brief

    _exit(
        run_brief(
            brief, workdir, budget=budget, answers=answer or [], json_mode=json_, stream_mode=stream, until="mine"
        )
    )


@app.command()
def serve(
    model: Annotated[str, typer.Argument(help="A Hugging Face Whisper folder, a hub id, or embedded.")] = "embedded",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8000,
    name: Annotated[str, typer.Option(help="Name of the model there (default: its folder's).")] = "",
    lang: Annotated[str | None, typer.Option(help="Language of clips whose request names none.")] = None,
    threads: Annotated[int, typer.Option(help="Threads to decode with; 0 leaves it to the machine.")] = 0,
    batch: Annotated[int, typer.Option(help="Clips decoded together at most.")] = 16,
    api_key_env: Annotated[str, typer.Option(help="Variable that holds the key callers must bring.")] = "",
) -> None:
    """Serve a local model behind the OpenAI contract: chat with audio, n answers, seeds, transcriptions."""
    from agent.faces.serving import serve_model

    serve_model(
        model, host=host, port=port, name=name, lang=lang, threads=threads, batch=batch, api_key_env=api_key_env
    )


@app.command()
def new(
    brief: Annotated[Path, typer.Argument(help="Where to write it, such as brief.yaml.")],
    train: Annotated[Path | None, typer.Option(help="Training manifest.")] = None,
    dev: Annotated[Path | None, typer.Option(help="Development manifest.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test manifest.")] = None,
    retention: Annotated[Path | None, typer.Option(help="What the model must not lose.")] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="One manifest to be split, instead of train, dev and test.")
    ] = None,
    budget: Budget = None,
    json_: Json = False,
) -> None:
    """Write a commented brief to fill in; says what is still open."""
    from agent.form import write_form

    given = {"train": train, "dev": dev, "test": test, "retention": retention, "manifest": manifest}
    _show(write_form(brief, given, budget), json_)


@app.command()
def replay(
    workdir: Finished,
    speed: Annotated[float, typer.Option(help="Times as fast as it was; 0 plays all at once.")] = 0.0,
    stream: Stream = False,
) -> None:
    """Play a work directory's run back from its ledger. Reads only."""
    import time

    from agent.faces.headless import Plain
    from agent.faces.headless import stream as stream_event
    from agent.replay import replay as play

    play(workdir, stream_event if stream else Plain(sys.stdout), speed, time.sleep)


@app.command()
def doctor(
    folder: Annotated[Path, typer.Argument(help="Where work directories will be.")] = Path("workdirs"),
    json_: Json = False,
) -> None:
    """Look whether this machine is fit for a run. Changes nothing."""
    from agent.doctor import doctor_document

    document = doctor_document(folder)
    if json_:
        _print_json(document)
    else:
        print("\n".join(f"{f['level']:<5} {f['what']:<16} {f['text']}" for f in document["findings"]))
    raise typer.Exit(0 if document["ok"] else 5)


@app.command()
def skills(json_: Json = False) -> None:
    """List the skills with their states."""
    from agent.driver import load
    from agent.procedure import skills_folder

    names = sorted(p.parent.parent.name for p in skills_folder().glob("*/assets/procedure.yaml"))
    _show({n: {s.id: s.title for s in load(n).procedure.states} for n in names}, json_)


def _exit(document: dict[str, Any]) -> None:
    raise typer.Exit(document["exit_code"])


def _print_json(document: dict[str, Any]) -> None:
    print(_json_text(document))


def _json_text(document: dict[str, Any]) -> str:
    """One line of JSON that any reader takes: no NaN, no infinity, nothing that the stream cannot encode."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        text.encode(sys.stdout.encoding or "utf-8")
        return text
    except UnicodeEncodeError:
        return json.dumps(document, allow_nan=False)
    except ValueError:
        return _json_text(json.loads(json.dumps(document), parse_constant=lambda constant: None))


def _show(document: dict[str, Any], json_: bool) -> None:
    if json_:
        _print_json(document)
        return
    for key, value in document.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for k, v in value.items():
                print(f"  {k:<24} {_cell(v)}")
        else:
            print(f"{key:<24} {_cell(value)}")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list):
        return ", ".join(_cell(v) for v in value) or "none"
    if isinstance(value, dict) and {"id", "text", "why"} <= value.keys():
        return f"{value['id']}: {value['text']} ({value['why']})"
    return "" if value is None else str(value)


def main(argv: list[str] | None = None) -> None:
    """The entry point. Errors of the customer's kind become one sentence and an exit code, never a traceback."""
    args = sys.argv[1:] if argv is None else argv
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    json_mode = "--json" in args or "--stream" in args
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args=args, standalone_mode=False) or 0
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        code = _report(error, json_mode)
    sys.exit(code)


def _report(error: Exception, json_mode: bool) -> int:
    """Says what went wrong on stderr, and in json mode in one document on stdout; returns the exit code."""
    from agent.document import error_document

    if isinstance(error, typer.Exit):
        return error.exit_code
    says = getattr(error, "format_message", None)  # the parser's own errors, whichever click typer brings
    if callable(says):
        error = UsageError(str(says()))
    document = error_document(error)
    if json_mode:
        _print_json(document)
    if isinstance(error, RehearError):
        print(f"rehear: {error}", file=sys.stderr)
    else:
        print(
            f"rehear: internal error: {document['error']['message']} (set REHEAR_DEBUG=1 for the traceback)",
            file=sys.stderr,
        )
        if os.environ.get("REHEAR_DEBUG"):
            raise error
    return int(document["exit_code"])


if __name__ == "__main__":
    main()
