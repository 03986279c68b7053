"""Checks of one row at a time: its text and language first, then its audio. A row that fails is set aside with the
reason.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tools.audio.identity import clip_digest
from tools.audio.read import RATE, AudioError, read_clip
from tools.data.languages import language_code, script_share
from tools.data.manifest import Quarantined
from tools.rows import Clip

WINDOW_SLACK_S = 1e-6
SCRIPT_FLOOR = 0.5


@dataclass(frozen=True)
class Options:
    """What the checks hold rows to.

    `task`: asr (a reference text is needed) or label (a label is). `languages`: codes the brief declares, empty: any.
    `max_quarantine`: share of rows a split may lose before it blocks, by split name; the default is 5 %, 0 for dev
    and test.
    """

    task: str = "asr"
    languages: tuple[str, ...] = ()
    max_duration_s: float = 30.0
    max_quarantine: float | Mapping[str, float] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


def aside(clip: Clip, reason: str, kind: str, counts: bool = True) -> Quarantined:
    return Quarantined(clip.manifest, clip.row, clip.id, reason, clip.split, kind, counts)


def check_row(clip: Clip, options: Options) -> Clip | Quarantined:
    """The row's own fields: reference, label, language. Returns the row (its language filled in) or sets it aside."""
    if options.task == "label" and clip.label is None:
        return aside(clip, "no label in the row", "label")
    if options.task == "asr" and clip.text is None:
        return aside(clip, "no reference text in the row (silence is written as an empty text)", "reference")
    if clip.lang is None and len(options.languages) == 1:
        return replace(clip, lang=options.languages[0])
    return clip


def language_fault(clip: Clip, options: Options) -> str:
    """Why the row's language cannot be right, or an empty string."""
    if clip.lang is None:
        return ""
    code = language_code(clip.lang)
    if code is None:
        return f"language {clip.lang!r} is not a known name or code"
    if options.languages and code not in options.languages:
        return f"language {code} is not among the declared {', '.join(options.languages)}"
    return ""


def script_fault(clip: Clip) -> str:
    """Why the reference's script does not fit the row's language, or an empty string."""
    if clip.lang is None or not clip.text:
        return ""
    share = script_share(clip.text, clip.lang)
    if share is None or share >= SCRIPT_FLOOR:
        return ""
    return f"{1 - share:.0%} of the letters are in another script than {clip.lang}'s"


def check_audio(clip: Clip, options: Options) -> Clip | Quarantined:
    """The row's audio, decoded. Returns the row with digest and duration, or sets it aside."""
    try:
        wave = read_clip(clip)
    except AudioError as error:
        hint = other_form(clip.audio) if error.reason == "missing" else ""
        return aside(clip, f"{error.reason}: {error}{hint}", error.reason)
    duration = wave.size / RATE
    if duration > options.max_duration_s + WINDOW_SLACK_S:
        why = f"longer than the model's window: {duration:.2f} s, over {options.max_duration_s:.1f} s"
        return aside(clip, why, "window", counts=False)
    if not np.any(wave) and clip.text != "":
        return aside(clip, f"silent: {clip.audio} is all zeros there and the reference is not empty", "silent")
    return replace(clip, audio_sha256=clip_digest(wave), duration_s=clip.duration_s or duration)


def other_form(path: Path) -> str:
    """A hint where the missing name exists in the other Unicode form (NFC or NFD), else an empty string."""
    for form in ("NFC", "NFD"):
        other = path.parent / unicodedata.normalize(form, path.name)
        if other.name != path.name and other.exists():
            return f"; a file of that name exists in Unicode form {form}: {other!s}"
    return ""
