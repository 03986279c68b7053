"""How a comparison spreads: the change of every clip and of every block, for tables and plots; and tables as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.rows import ScoredRow
from tools.score.blocks import choose_block, paired
from tools.score.transcripts import Tally
from tools.text.profile import Profile


@dataclass(frozen=True)
class Change:
    """Errors of a and b on one clip or in one block, and reference units; `rate` deltas are b - a."""

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


def clip_changes(a: Iterable[ScoredRow], b: Iterable[ScoredRow], profile: Profile) -> list[Change]:
    """One change a clip, by id. Raises CheckError for unequal ids or references."""
    tally = Tally(profile)
    out = []
    for one, two in paired(a, b):
        first, second = tally.measure(one).words, tally.measure(two).words
        out.append(Change(one.id, 1, first.total, second.total, first.reference))
    return out


def block_changes(
    a: Sequence[ScoredRow], b: Sequence[ScoredRow], profile: Profile, by: str = "speaker"
) -> list[Change]:
    """One change a block (speaker, or what every row has), the best first."""
    field = choose_block(a, by)
    block = {row.id: str(getattr(row, field)) for row in a}
    sums: dict[str, list[int]] = {}
    for change in clip_changes(a, b, profile):
        held = sums.setdefault(block[change.name], [0, 0, 0, 0])
        for i, more in enumerate((1, change.errors_a, change.errors_b, change.reference_units)):
            held[i] += more
    changes = [Change(name, *held) for name, held in sums.items()]
    return sorted(changes, key=lambda change: (change.delta or 0.0, change.name))


def histogram(changes: Iterable[Change]) -> list[tuple[int, int]]:
    """(errors b - a, how many clips), ascending: the plot of the change per clip."""
    return sorted(Counter(change.errors_b - change.errors_a for change in changes).items())


# --- tables --------------------------------------------------------------------------------------------------------


def score_table(document: Mapping[str, Any]) -> str:
    """The document of `rehear score` as a short table."""
    counts = ("insertions", "deletions", "substitutions", "reference_units", "rows", "empty_references")
    lines = [f"{document['metric'].upper():<18}{_rate(document['value'])}   ({document['profile']['name']})"]
    lines += [f"{key.replace('_', ' '):<18}{document[key]}" for key in counts]
    odd = {key: n for key, n in document.get("diagnostics", {}).items() if n and key != "length_ratio"}
    lines += [f"{key.replace('_', ' '):<18}{n}" for key, n in odd.items()]
    others = document.get("profiles", [])[1:]
    lines += [f"{one['metric'].upper():<18}{_rate(one['value'])}   ({one['profile']})" for one in others]
    return "\n".join(lines)


def compare_table(document: Mapping[str, Any]) -> str:
    """The document of `rehear compare` as a short table, blocks that changed most at its end."""
    interval = document["interval"]
    span = "no interval" if interval is None else f"95 % interval {_rate(interval[0])} to {_rate(interval[1])}"
    lines = [
        f"{document['metric'].upper():<18}a {_rate(document['a'])}   b {_rate(document['b'])}",
        f"{'delta':<18}{_rate(document['delta'])}   {span}",
        f"{'blocks':<18}{document['blocks']} by {document['block_by']}",
        f"{'verdict':<18}{document['verdict'].replace('_', ' ')}",
    ]
    changed = document.get("by_block", [])
    for one in changed if len(changed) <= 10 else [*changed[:5], *changed[-5:]]:
        lines.append(f"  {one['name']:<16}{one['errors_a']:>6} ->{one['errors_b']:>6} of {one['reference_units']}")
    return "\n".join(lines)


def _rate(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4f}"
