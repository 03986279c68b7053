"""How a comparison spreads over its blocks; and the documents of `rehear score` and `rehear compare` as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.score.blocks import Blocks


@dataclass(frozen=True)
class Change:
    """Errors of a and b in one block, and reference units; `delta` is b - a."""

    name: str
    rows: int
    errors_a: int
    errors_b: int
    reference_units: int

    @property
    def delta(self) -> float | None:
        return (self.errors_b - self.errors_a) / self.reference_units if self.reference_units else None

    def to_json(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "delta": self.delta}


def block_changes(blocks: Blocks) -> list[Change]:
    """One change a block, the best first."""
    columns = (blocks.rows, blocks.errors_a, blocks.errors_b, blocks.units)
    changes = [Change(name, *map(int, row)) for name, *row in zip(blocks.names, *columns)]
    return sorted(changes, key=lambda change: (change.delta or 0.0, change.name))


# --- tables --------------------------------------------------------------------------------------------------------


def score_table(document: Mapping[str, Any]) -> str:
    """The document of `rehear score` as a short table."""
    counts = ("insertions", "deletions", "substitutions", "reference_units", "rows", "empty_references")
    lines = [f"{document['metric'].upper():<18}{_rate(document['value'])}   ({document['profile']['name']})"]
    others = document.get("profiles", [])[1:]
    lines += [f"{one['metric'].upper():<18}{_rate(one['value'])}   ({one['profile']})" for one in others]
    lines += [f"{key.replace('_', ' '):<18}{document[key]}" for key in counts]
    if document.get("hallucinated_units"):
        lines.append(f"{'invented there':<18}{document['hallucinated_units']}")
    odd = {key: n for key, n in document.get("diagnostics", {}).items() if n and key != "length_ratio"}
    lines += [f"{key.replace('_', ' '):<18}{n}" for key, n in odd.items()]
    for by, slices in document.get("slices", {}).items():
        lines += ["", f"by {by}"]
        lines += [
            f"  {name or '(unknown)':<20}{s['metric'].upper()} {_rate(s['value'])}  {s['reference_units']:>8} units {s['rows']:>7} rows"
            for name, s in slices.items()
        ]
    return "\n".join([*lines, *_lists(document)])


def _lists(document: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, k in document.get("keywords", {}).items():
        lines += [
            "",
            f"{name}: error rate {_rate(k['rate'])} ({k['said']} said, {k['missed']} missed, {k['invented']} invented)",
        ]
        wrong = sorted(k["by_keyword"].items(), key=lambda item: (-item[1]["missed"] - item[1]["invented"], item[0]))
        lines += [
            f"  {word:<20}{n['missed']} missed, {n['invented']} invented of {n['said']}" for word, n in wrong[:10]
        ]
    for kind, found in document.get("confusions", {}).items():
        lines += ["", kind] if found else []
        lines += [
            f"  {one['times']:>5}  {one['said'] or '':<18} {'-> ' + one['heard'] if one['heard'] else ''}".rstrip()
            for one in found
        ]
    if rules := document.get("rules"):
        lines += ["", "rules: rate after each, its move, rows touched"]
        lines += [f"  {one['rule']:<24}{_rate(one['rate'])} {_move(one['change'])} {one['rows']:>7}" for one in rules]
    if worst := document.get("worst"):
        lines += ["", "worst rows"]
        for one in worst:
            lines += [
                f"  {one['id']}: {_of(one['errors'], one['reference_units'])}  {one['audio'] or ''}".rstrip(),
                f"    ref {one['ref']}",
                f"    hyp {one['hyp']}",
            ]
    if script := document.get("script"):
        lines += ["", f"{'your script':<18}{script['value']}"]
    return lines


def label_table(document: Mapping[str, Any]) -> str:
    """The document of label scores: strict and parsed side by side, then recall by class."""
    ways = [document["strict"], document["parsed"]]
    lines = [f"{'':<18}{'strict':>8}{'parsed':>8}"]
    for name in ("accuracy", "macro_recall", "invalid_rate"):
        lines.append(f"{name.replace('_', ' '):<18}" + "".join(f"{_rate(way[name]):>8}" for way in ways))
    lines += [f"{'rows':<18}{ways[0]['rows']:>8}", f"{'empty':<18}{document['empty']:>8}", "", "recall by class"]
    return "\n".join(
        [
            *lines,
            *(
                f"  {label:<16}{value:>8.4f}{ways[1]['recall'][label]:>8.4f}"
                for label, value in ways[0]["recall"].items()
            ),
        ]
    )


def compare_table(document: Mapping[str, Any]) -> str:
    """The document of `rehear compare` as a short table, blocks that changed most at its end."""
    metric = document["metric"].upper()
    lines = [f"{metric:<18}a {_rate(document['a'])}   b {_rate(document['b'])}"]
    for one in document["profiles"][1:]:
        lines.append(f"{one['metric'].upper():<18}a {_rate(one['a'])}   b {_rate(one['b'])}   ({one['profile']})")
    lines += [
        f"{'delta':<18}{_move(document['delta'])}   {_span(document['interval'])}",
        f"{'blocks':<18}{document['blocks']} by {document['block_by']}",
        f"{'verdict':<18}{document['verdict'].replace('_', ' ')}",
    ]
    lines += [f"{'note':<18}{note}" for note in document.get("notes", [])]
    if noise := document.get("noise"):
        lines.append(
            f"{'noise floor':<18}{_rate(noise['delta'])}   {noise['differing']} of {noise['rows']} answers differ"
        )
    if margin := document.get("non_inferiority"):
        says = {True: "shown", False: "not shown", None: "not shown (too few blocks)"}[margin["shown"]]
        lines.append(
            f"{'no worse than':<18}{_move(margin['margin'])}   {'n/a' if margin['delta'] is None else 'within' if margin['within'] else 'over'}, {says}"
        )
    for kind, slices in document.get("slices", {}).items():
        lines += ["", f"by {kind} (p after Holm)"]
        for name, s in slices.items():
            p = "" if s["holm_p"] is None else f"p {s['holm_p']:.3f}"
            lines.append(
                f"  {name or '(unknown)':<18}{_rate(s['a'])} -> {_rate(s['b'])}  {s['verdict'].replace('_', ' '):<15} {p}".rstrip()
            )
    changed = document.get("by_block", [])
    lines += ["", f"errors by {document['block_by']}"] if changed else []
    for one in changed if len(changed) <= 10 else [*changed[:5], *changed[-5:]]:
        lines.append(f"  {one['name']:<16}{one['errors_a']:>6} ->{one['errors_b']:>6} of {one['reference_units']}")
    return "\n".join(lines)


def _of(errors: int, units: int) -> str:
    return f"{errors} errors of {units}" if units else f"n/a, {errors} insertions"


def _span(interval: list[float] | None) -> str:
    return "no interval" if interval is None else f"95 % interval {_move(interval[0])} to {_move(interval[1])}"


def _rate(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4f}"


def _move(value: float | None) -> str:
    return "n/a    " if value is None else f"{value:+.4f}"
