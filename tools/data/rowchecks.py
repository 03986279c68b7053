"""The map over rows: each row's own fields are looked at once, and the row is packed into columns of numbers.

A row that cannot be used is set aside with its reason; what is only doubtful becomes a mark that the reduce step
counts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import regex

from tools.data.languages import language_code, other_language, script_share
from tools.data.reading import Quarantined
from tools.data.table import RowsPart, hash64
from tools.rows import Clip

SCRIPT_FLOOR = 0.5

# marks of a row
LANG_UNKNOWN, LANG_UNDECLARED, SCRIPT, OTHER_LANGUAGE = 1, 2, 4, 8
EMPTY_TEXT, MARKER, NOT_TEXT, LABEL_FORM = 16, 32, 64, 128
# marks of its sound
CLIPPED, QUIET, SLOW, FAST, LENGTH, RATE_DECLARED, SHORT = 256, 512, 1024, 2048, 4096, 8192, 16384

_SPECIAL = regex.compile(
    r"<\|[^|<>\s][^|<>]{0,40}\|>|<spk:\d+>|</?s>|<(?:pad|bos|eos|blank|mask|audio|think|/think)>"
    r"|\[(?:PAD|UNK|CLS|SEP|MASK|INST|/INST)\]"
)
_UNSCORED = regex.compile(r"IGNORE[_ ]TIME[_ ]SEGMENT[_ ]IN[_ ]SCORING|INTER[_ ]SEGMENT[_ ]GAP", regex.IGNORECASE)
_MARKER = regex.compile(
    r"<unk>|<[A-Za-z_/-]{2,20}>|\[[A-Za-z_ -]{2,20}\]|\((?:laugh\w*|noise|inaudible|cough\w*)\)|%\w+"
)
_NOT_TEXT = regex.compile(
    "\ufffd|[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]|&(?:amp|lt|gt|quot|nbsp|#\\d{1,5});"
    "|[\u00c3\u00c2\u00e2][\u0080-\u00bf\u20ac\u2122\u0153\u201a-\u203a]|https?://"
)


@dataclass(frozen=True)
class Options:
    """What the checks hold rows to.

    `task`: asr (a reference text is needed) or label (a label is). `languages`: codes the brief declares, empty: any.
    `max_quarantine`: share of rows a split may lose before it blocks, by split name or for all; the default is 5
    %, 0 for dev and test. `near`: look for near copies too. `fold_labels`: labels that differ in case only are one.
    """

    task: str = "asr"
    languages: tuple[str, ...] = ()
    max_duration_s: float = 30.0
    max_quarantine: float | Mapping[str, float] | None = None
    near: bool = True
    fold_labels: bool = False


def aside(clip: Clip, reason: str, kind: str, counts: bool = True) -> Quarantined:
    return Quarantined(clip.manifest, clip.row, clip.id, reason, clip.split, kind, counts)


def map_rows(items: Iterable[Clip | Quarantined], options: Options) -> tuple[RowsPart, list[Quarantined]]:
    """Rows as read -> columns, and the rows set aside (those that reading set aside among them)."""
    part = RowsPart()
    out: list[Quarantined] = []
    for item in items:
        checked = check_row(item, options) if isinstance(item, Clip) else item
        if isinstance(checked, Clip):
            part.add(checked, _numbers(checked, options))
        else:
            out.append(checked)
    return part, out


def check_row(clip: Clip, options: Options) -> Clip | Quarantined:
    """The row's own fields: reference, label, language. Returns the row (a sole declared language filled in) or sets it
    aside.
    """
    if options.task == "label" and clip.label is None:
        return aside(clip, "no label in the row", "label")
    if options.task == "asr" and clip.text is None:
        return aside(clip, "no reference text in the row (silence is written as an empty text)", "reference")
    if clip.text and _UNSCORED.search(clip.text):
        return aside(clip, "skipped: its text says that it is not to be scored", "unscored", counts=False)
    if clip.text and (found := _SPECIAL.search(clip.text)):
        return aside(clip, f"the reference holds a control token ({found.group()!r}): take it out", "special_token")
    if options.fold_labels and clip.label:
        clip = replace(clip, label=clip.label.casefold())
    if clip.lang is None and len(options.languages) == 1:
        return replace(clip, lang=options.languages[0])
    return clip


def _numbers(clip: Clip, options: Options) -> dict[str, int]:
    text = clip.text or ""
    return {
        "marks": _marks(clip, text, options),
        "letters": len(text.strip()),
        "id": hash64(clip.id),
        "loose_id": hash64(loose(clip.id)),
        "file": hash64(str(clip.audio)),
        "speaker": hash64(speaker_key(clip.speaker)),
        "recording": hash64(clip.recording),
        "label": hash64(clip.label),
        "sentence": hash64(sentence_key(text)),
    }


def _marks(clip: Clip, text: str, options: Options) -> int:
    marks = 0 if text.strip() else EMPTY_TEXT
    if clip.lang is not None:
        code = language_code(clip.lang)
        if code is None:
            marks |= LANG_UNKNOWN
        elif options.languages and code not in options.languages:
            marks |= LANG_UNDECLARED
        share = script_share(text, clip.lang)
        if share is not None and share < SCRIPT_FLOOR:
            marks |= SCRIPT
        elif other_language(text, clip.lang):
            marks |= OTHER_LANGUAGE
    if _MARKER.search(text):
        marks |= MARKER
    if _NOT_TEXT.search(text):
        marks |= NOT_TEXT
    if clip.extras.get("label_as_written"):
        marks |= LABEL_FORM
    return marks


_PUNCTUATION = regex.compile(r"[\p{P}\p{S}]+")


def sentence_key(text: str) -> str:
    """A reference as a sentence: Unicode form, case, punctuation and spacing aside."""
    folded = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(_PUNCTUATION.sub(" ", folded.casefold()).split())


def speaker_key(name: str | None) -> str | None:
    """Speakers whose names differ only in Unicode form, case or spacing are one."""
    return None if name is None else " ".join(unicodedata.normalize("NFC", name).casefold().split())


def loose(name: str) -> str:
    """An id with case, width and spacing aside."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())
