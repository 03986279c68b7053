"""The model card (README.md of an export): Hugging Face front matter, then what result.json holds and no more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tools.report import words
from tools.report.caveats import caveats, units_note
from tools.report.html import declared
from tools.report.parts import TableRow
from tools.report.schema import Result
from tools.report.terminal import audit_head, in_order

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
LICENSE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$@]|:(?=//)|(?<=www)\.|^[#+=-]|^\d+(?=[.)](?:\s|$)))")
TASKS = {"asr": "automatic-speech-recognition", "label": "audio-classification"}


def render_model_card(result: Result) -> str:
    """Markdown with YAML front matter. Where no candidate was selected it describes the seed model's baseline."""
    sections = [
        _front(result),
        f"# {md(result.name)}\n\n{md(result.headline or words.headline(result))}",
        _results(result),
        _use(result),
        _bullets("Limits", _limits(result)),
        _training(result),
        _data(result),
        _declared(result),
        _commands(result),
        _provenance(result),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def has_new_model(result: Result) -> bool:
    """Was a checkpoint (and not the seed) selected?"""
    return bool(result.selection and result.selection.selected not in (None, "seed"))


def md(text: object) -> str:
    """One line of Markdown that shows `text` as it is: no markup, no HTML, no link, no list at its start."""
    return SPECIAL.sub(lambda m: f"{m[0]}\\" if m[0].isdigit() else f"\\{m[0]}", words.plain(text).strip())


def code(text: object, cell: bool = False) -> str:
    """A code span of `text`, whatever backticks it holds; `cell` escapes it for a table."""
    line = words.plain(text).replace("|", "\\|") if cell else words.plain(text)
    fence = _fence(line, 1)
    pad = " " if "`" in line else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else "not on record"


def _fence(text: str, least: int) -> str:
    """Backticks enough to enclose `text`."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))


def _front(result: Result) -> str:
    import yaml

    seed = result.provenance.seed_model
    task = TASKS.get(result.task, "automatic-speech-recognition")
    languages = result.contract.contract.get("languages") if result.contract else None
    front: dict[str, Any] = {"license": _license(seed.license)}
    if isinstance(languages, list) and languages:
        front["language"] = [str(code) for code in languages]
    if HUB_ID.fullmatch(seed.name):
        front["base_model"] = seed.name
    tags = [task, "rehear"] + (["reinforcement-learning"] if has_new_model(result) else [])
    front |= {"library_name": "transformers", "pipeline_tag": task, "tags": tags, "metrics": [result.metric]}
    index = _model_index(result, task)
    if index:
        front["model-index"] = index
    text = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{text}---"


def _license(text: str) -> str:
    return text if LICENSE_ID.fullmatch(text) else "other" if text else "unknown"


def _model_index(result: Result, task: str) -> list[dict[str, Any]]:
    """The candidate's own values, the seed's in each metric's name; nothing where there is no new model."""
    if not has_new_model(result):
        return []
    found = []
    slug = re.sub(r"[^a-z0-9]+", "-", result.name.lower()).strip("-")[:60] or "data"
    for row in in_order(result):
        value = row.rate(result.metric)
        if row.model != "candidate" or value is None:
            continue
        metrics = [_metric(result, row, result.metric, value)]
        if row.cer is not None and result.metric != "cer":
            metrics.append(_metric(result, row, "cer", row.cer))
        dataset = {"name": f"{words.plain(result.name)} ({row.split})", "type": slug, "split": row.split}
        found.append({"task": {"type": task}, "dataset": dataset, "metrics": metrics})
    return [{"name": words.plain(result.name), "results": found}] if found else []


def _metric(result: Result, row: TableRow, metric: str, value: float) -> dict[str, Any]:
    seed = result.row(row.split, "seed")
    before = f" (seed model: {words.rate(seed.rate(metric))})" if seed else ""
    return {"type": metric, "value": round(value, 6), "name": f"{words.metric_name(metric)}{before}"}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; cells must be escaped already."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _results(result: Result) -> str:
    if not result.table:
        return "## Results\n\nNothing was evaluated."
    metric = words.metric_name(result.metric)
    head = ("split", "model", metric, "CER", "errors", "ins", "del", "sub", words.unit(result.metric), "clips", "eval")
    rows = [
        (
            md(r.split),
            md(r.model),
            words.rate(r.rate(result.metric)),
            words.rate(r.cer),
            *(
                words.count(n)
                for n in (r.errors, r.insertions, r.deletions, r.substitutions, r.reference_units, r.rows)
            ),
            code(r.eval, cell=True),
        )
        for r in in_order(result)
    ]
    out = f"## Results\n\n{table(head, rows)}\n\n{md(units_note(result))}"
    if result.comparison:
        verdict = words.VERDICTS[result.comparison.verdict]
        out += f"\n\n**{verdict}.** {md(words.reduction(result).capitalize())}; {md(words.interval(result))}."
    out += "".join(f"\n\n{md(line[:1].upper() + line[1:])}." for line in words.labels(result))
    return f"{out}\n\nRetention: {md(words.retention(result))}."


def _use(result: Result) -> str:
    tree = result.contract.contract if result.contract else {}
    prompt = tree.get("prompt")
    text = prompt.get("text", "") if isinstance(prompt, dict) else ""
    languages = words.value_text(tree["languages"]) if tree.get("languages") else "the languages of its training data"
    what = "Transcription" if result.task == "asr" else "The label task"
    lines = [f"{what} of speech like that of the data below, language {md(languages)}."]
    lines.append(
        f"The figures hold for the decoder prompt {code(text)}."
        if text
        else "The figures hold without a decoder prompt."
    )
    if not has_new_model(result):
        lines.append("No new model came out of this run: the figures are the seed model's.")
    return "## Intended use\n\n" + " ".join(lines)


def _limits(result: Result) -> list[str]:
    moved = result.provenance.encoder_moved
    found = caveats(result)
    if has_new_model(result):
        found.append(
            "The speech encoder stayed frozen; timestamps were not measured."
            if moved is False
            else "Training may have moved the speech encoder: no timestamp accuracy is claimed."
            if moved is None
            else "Training moved the speech encoder: no timestamp accuracy is claimed."
        )
    return found + [f"Not tested: {words.item(entry)}" for entry in result.not_tested]


def _bullets(title: str, lines: Iterable[str]) -> str:
    text = "\n".join(f"- {md(line)}" for line in lines)
    return f"## {title}\n\n{text}" if text else ""


def _training(result: Result) -> str:
    if not result.trained():
        return ""
    lines = []
    for run in result.registrations:
        steps = f", at most {words.plural(run.updates, 'update')}" if run.updates is not None else ""
        seed = f", random seed {run.random_seed}" if run.random_seed is not None else ""
        lines.append(f"- Run {code(run.run_id)}: preset {md(run.preset or 'not named')}{steps}{seed}")
    lines.append(f"- Selected: {md(words.selected(result))}")
    if result.selection and result.selection.rule:
        lines.append(f"- Rule, declared beforehand: {md(result.selection.rule)}")
    if result.mining and result.mining.selected is not None:
        lines.append(f"- Clips with useful contrast selected for training: {result.mining.selected}")
    if result.provenance.surface:
        lines.append(f"- Trained parameters: {md(result.provenance.surface)}")
    if result.budget:
        lines.append(f"- Compute: {md(words.budget(result))}")
    return "## Training\n\n" + "\n".join(lines)


def _data(result: Result) -> str:
    if not result.data.splits:
        return ""
    rows = [
        (md(name), words.count(s.rows), words.count(s.speakers), words.minutes(s.seconds))
        for name, s in result.data.splits.items()
    ]
    text = f"## Data\n\n{table(('split', 'clips', 'speakers', 'audio'), rows)}"
    if result.data.membership_sha256:
        text += f"\n\nMembership digest {code(result.data.membership_sha256)}."
    return text


def _declared(result: Result) -> str:
    if not result.contract:
        return ""
    rows = [(md(label), md(value)) for label, value in declared(result)]
    head = f"## Declared beforehand\n\nContract digest {code(result.contract.digest)}."
    return f"{head}\n\n{table(('setting', 'value'), rows)}" if rows else head


def _commands(result: Result) -> str:
    blocks = []
    for entry in result.commands:
        command = "\n".join(words.plain(line) for line in entry.command.splitlines())
        fence = _fence(command, 3)
        blocks.append(f"{md(entry.what)}\n\n{fence}sh\n{command}\n{fence}")
    return "## Commands\n\n" + "\n\n".join(blocks) if blocks else ""


def _provenance(result: Result) -> str:
    p = result.provenance
    lines = [
        f"- Seed model: {md(p.seed_model.name or 'not named')}, digest {code(p.seed_model_digest)}",
        f"- Selected model: digest {code(p.selected_digest)}",
        f"- Export: digest {code(p.export_digest)}",
        f"- Source: {md(words.value_text(p.source)) if p.source else 'not on record'}",
        f"- Versions: {md(words.value_text(p.versions)) if p.versions else 'not on record'}",
    ]
    if p.ledger.head:
        lines.append(f"- Audit: {code('rehear audit WORKDIR --expect-head ' + audit_head(result))}")
    return "## Provenance\n\n" + "\n".join(lines)
