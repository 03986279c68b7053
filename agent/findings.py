"""Looks for what need not be asked: the languages and labels in the manifests, and whether the model is English-only.

Only text is read, no audio; what cannot be read here is left to the step that needs it, which says what is wrong.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tools.errors import RehearError

if TYPE_CHECKING:
    from agent.brief import Brief

ENGLISH_VOCABULARY = 51864  # Whisper's English-only tokenizer; the multilingual ones are larger
MOST_LABELS = 1000


def look(brief: Brief) -> dict[str, Any]:
    """{languages, labels, texts, english_only}: keys are absent where nothing was found."""
    found: dict[str, Any] = {}
    _look_at_rows(brief, found)
    folder = brief.seed_folder
    config = folder / "config.json" if folder else None
    if config is not None and config.is_file():
        try:
            found["english_only"] = (
                json.loads(config.read_text(encoding="utf-8")).get("vocab_size") == ENGLISH_VOCABULARY
            )
        except (OSError, ValueError, AttributeError):
            return found
    return found


def _look_at_rows(brief: Brief, found: dict[str, Any]) -> None:
    from tools.data.manifest import read_manifest

    languages: set[str] = set()
    labels: set[str] = set()
    texts = unnamed = 0
    for paths in brief.manifests().values():
        for path in paths:
            try:
                rows = read_manifest(path).rows
            except (RehearError, OSError, ValueError):
                continue
            languages |= {row.lang for row in rows if row.lang}
            labels |= {row.label for row in rows if row.label}
            texts += sum(row.text is not None for row in rows)
            unnamed += sum(not row.lang for row in rows)
    if languages and not unnamed:
        found["languages"] = sorted(languages)
    if labels and len(labels) <= MOST_LABELS:
        found["labels"] = sorted(labels)
    found["texts"] = texts
