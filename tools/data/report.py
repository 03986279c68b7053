"""What a data check says: findings, rows set aside, rows kept, and the JSON form of house §6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.data.reading import Quarantined
from tools.rows import Clip

Place = tuple[str, int]  # manifest and physical line

BLOCK, WARN, INFO = "block", "warn", "info"
SHOWN_ROWS = 1_000  # rows named in one finding of the JSON; the text always has the full count


@dataclass(frozen=True, slots=True)
class RowRef:
    """A row by place: manifest, physical line from 1, id; `split` where it was put."""

    manifest: str
    row: int
    id: str
    split: str = ""

    @classmethod
    def of(cls, clip: Clip | Quarantined) -> RowRef:
        return cls(clip.manifest, clip.row, clip.id, clip.split)

    def to_json(self) -> dict[str, Any]:
        return {"manifest": self.manifest, "row": self.row, "id": self.id}


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of one check. `rows` names all rows concerned (read when looked at); the JSON shows the first
    1,000.
    """

    check: str
    severity: str
    text: str
    rows: Sequence[RowRef] = ()
    splits: tuple[str, ...] = ()  # for a finding across splits: the two it stands between

    def to_json(self) -> dict[str, Any]:
        shown = [row.to_json() for row in self.rows[:SHOWN_ROWS]]
        return {"check": self.check, "severity": self.severity, "text": self.text, "rows": shown}


@dataclass(frozen=True)
class CheckReport:
    """The outcome of all checks.

    `kept` are the usable rows, with audio_sha256, duration_s and split resolved. `same_audio` are pairs of kept
    rows, by place, that are the same sound (exactly or nearly): what `make_splits` must not part. `near_checked`
    says whether near copies were looked for; `heard` counts the stretches of audio that were decoded (with a cache only
    what is new or has changed).
    """

    rows_in: int
    kept: Sequence[Clip]
    quarantined: list[Quarantined]
    findings: list[Finding]
    same_audio: list[tuple[Place, Place]] = field(default_factory=list)
    near_checked: bool = False
    heard: int = 0

    @property
    def blocks(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == BLOCK]

    @property
    def ok(self) -> bool:
        """Nothing blocks: exit 0; else exit 5."""
        return not self.blocks

    def split(self, name: str) -> list[Clip]:
        return [clip for clip in self.kept if clip.split == name]

    def to_json(self) -> dict[str, Any]:
        return {
            "rows_in": self.rows_in,
            "kept": len(self.kept),
            "quarantined": [row.to_json() for row in self.quarantined],
            "findings": [finding.to_json() for finding in self.findings],
        }
