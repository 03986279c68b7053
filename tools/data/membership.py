"""Who is in which split: one canonical JSON line a row, and the digest that freezes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.errors import CheckError, UsageError
from tools.rows import Clip


def membership_row(clip: Clip) -> dict[str, Any]:
    """One membership row: place, speaker, recording, audio and text by digest. Raises CheckError without an audio
    digest.
    """
    if not clip.audio_sha256:
        raise CheckError(f"row {clip.row} of {clip.manifest} ({clip.id}) has no audio digest: check the data first")
    return {
        "id": clip.id,
        "split": clip.split,
        "speaker": clip.speaker,
        "recording": clip.recording,
        "lang": clip.lang,
        "audio": str(clip.audio),
        "offset_s": clip.offset_s,
        "duration_s": clip.duration_s,
        "channel": clip.channel,
        "audio_sha256": clip.audio_sha256,
        "text_sha256": text_digest(clip.text),
    }


def text_digest(text: str | None) -> str | None:
    """sha256 (hex) of the reference's UTF-8 bytes as written; None without one."""
    return None if text is None else hashlib.sha256(text.encode("utf-8")).hexdigest()


def membership_lines(clips: Iterable[Clip]) -> list[str]:
    """Canonical lines, ordered by split and id, whatever the order of the clips."""
    rows = sorted((membership_row(clip) for clip in clips), key=lambda r: (r["split"], r["id"]))
    return [json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":")) for row in rows]


def membership_digest(clips: Iterable[Clip]) -> str:
    """sha256 (hex) of the membership file's bytes."""
    return hashlib.sha256(_bytes(membership_lines(clips))).hexdigest()


def write_membership(path: Path | str, clips: Iterable[Clip]) -> str:
    """Write the membership file atomically; returns its sha256 (= `membership_digest`)."""
    path = Path(path)
    data = _bytes(membership_lines(clips))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)
    return hashlib.sha256(data).hexdigest()


def read_membership(path: Path | str) -> list[dict[str, Any]]:
    """The rows of a membership file. Raises UsageError where it cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]
    except (OSError, ValueError) as error:
        raise UsageError(f"membership file {path} cannot be read: {error}") from error


def _bytes(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode("utf-8")
