"""The result as a short plain-text table: readable without colour, at most 100 columns, no library."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator

from tools.report import words
from tools.report.caveats import caveats
from tools.report.parts import TableRow
from tools.report.schema import Result

SPLITS = ("test", "dev", "retention")
LABEL = 11
HEAD = ("split", "model", "{metric}", "errors", "ins", "del", "sub", "of {units}", "clips", "record")


def render_terminal(result: Result, *, bold: bool = False, width: int = 100) -> str:
    """A page of at most `width` columns. `bold` adds ANSI bold to title and headline; pass `stdout.isatty()`."""
    blocks = [_title(result, width, bold), _table(result), _facts(result, width), _care(result, width)]
    blocks.append(_where(result, width))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _bold(text: str, on: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if on and text else text


def _title(result: Result, width: int, bold: bool) -> list[str]:
    title = f"{words.plain(result.name)}: {words.ending(result).lower()}"
    lines = wrap(title, width)
    rule = "=" * min(width, max(columns(line) for line in lines))
    headline = words.plain(result.headline) or words.headline(result)
    return [_bold(line, bold) for line in lines] + [rule] + [_bold(line, bold) for line in wrap(headline, width)]


def in_order(result: Result) -> list[TableRow]:
    """The table's rows: test, dev, retention, then others; the seed above its candidate."""
    order = {split: n for n, split in enumerate(SPLITS)}
    models = {"seed": 0, "candidate": 1}
    return sorted(result.table, key=lambda r: (order.get(r.split, 9), r.split, models.get(r.model, 2), r.model))


def _table(result: Result) -> list[str]:
    if not result.table:
        return []
    head = [h.format(metric=words.metric_name(result.metric), units=words.unit(result.metric)) for h in HEAD]
    grid = [head]
    previous = ""
    for row in in_order(result):
        counts = (row.errors, row.insertions, row.deletions, row.substitutions, row.reference_units, row.rows)
        cells = [words.plain(row.split)[:16] if row.split != previous else "", words.plain(row.model)[:12]]
        cells += [words.rate(row.rate(result.metric)), *(words.count(c) for c in counts)]
        grid.append([*cells, "-" if row.record is None else str(row.record)])
        previous = row.split
    used = [i for i in range(len(head)) if any(line[i] not in ("n/a", "-", "") for line in grid[1:])]
    grid = [[line[i] for i in used] for line in grid]
    widths = [max(columns(line[i]) for line in grid) for i in range(len(used))]
    lines = ["  ".join(_cell(cell, widths[i], i < 2) for i, cell in enumerate(line)).rstrip() for line in grid]
    return [lines[0], "-" * max(columns(line) for line in lines), *lines[1:]]


def _cell(text: str, width: int, left: bool) -> str:
    gap = " " * (width - columns(text))
    return text + gap if left else gap + text


def _facts(result: Result, width: int) -> list[str]:
    facts: list[tuple[str, str]] = []
    if result.comparison:
        verdict = words.VERDICTS[result.comparison.verdict].lower()
        facts.append(("change", f"{words.reduction(result)}; {words.interval(result)}; verdict: {verdict}"))
    facts += [("labels" if i == 0 else "", text) for i, text in enumerate(words.labels(result))]
    facts.append(("retention", words.retention(result)))
    facts.append(("oracle", words.oracle(result)))
    if result.selection:
        facts.append(("selected", words.selected(result)))
    if result.budget:
        facts.append(("budget", words.budget(result)))
    return [line for label, text in facts for line in labelled(label, text, width)]


def _care(result: Result, width: int) -> list[str]:
    found = caveats(result)
    return ["read with care", *(line for text in found for line in wrap(text, width, "  - ", "    "))] if found else []


def _where(result: Result, width: int) -> list[str]:
    lines = list(labelled("next", words.plain(result.next_action), width)) if result.next_action else []
    for name, path in result.artefacts.items():
        lines += labelled(words.plain(name).replace("_", " "), words.plain(path), width)
    ledger = result.provenance.ledger
    if ledger.head:
        lines += labelled("audit", "rehear audit WORKDIR --expect-head \\", width)
        lines += labelled("", audit_head(result), width)
    return lines


def audit_head(result: Result) -> str:
    """HASH:COUNT of the ledger when the result was written."""
    ledger = result.provenance.ledger
    return f"{words.plain(ledger.head)}:{ledger.records}"


def labelled(label: str, text: str, width: int) -> Iterator[str]:
    """`label` in its own column, `text` wrapped beside it."""
    return iter(wrap(text, width, f"{label[:LABEL]:<{LABEL}}  ", " " * (LABEL + 2)))


def wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most `width` columns; long digests and commands are broken rather than left to overflow."""
    narrow = width if columns(text) == len(text) else width // 2
    lines = textwrap.wrap(
        text, narrow, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=True
    )
    return lines or [first.rstrip()]


def columns(text: str) -> int:
    """Terminal columns that `text` takes: wide East Asian characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1 for ch in text)
