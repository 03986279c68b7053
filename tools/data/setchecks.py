"""Checks over the rows together: what is shared between splits, repeated inside one, or missing from training."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations

import regex

from tools.data.report import BLOCK, INFO, WARN, Finding, RowRef
from tools.data.rowchecks import Options, language_fault, script_fault
from tools.data.splits import role
from tools.rows import Clip

_PUNCTUATION = regex.compile(r"[\p{P}\p{S}]+")
EPSILON_S = 1e-6


def all_set_checks(clips: Sequence[Clip], options: Options) -> list[Finding]:
    """Every check over the kept rows, in a fixed order."""
    return [
        *languages(clips, options),
        *audio_twice(clips),
        *shared_audio(clips),
        *overlaps(clips),
        *speakers(clips),
        *shared_recordings(clips),
        *shared_ids(clips),
        *shared_sentences(clips),
        *coverage(clips, options),
    ]


def sentence_key(text: str) -> str:
    """A reference as a sentence: NFC, case and punctuation and spacing aside."""
    folded = unicodedata.normalize("NFC", text).casefold()
    return " ".join(_PUNCTUATION.sub(" ", folded).split())


def languages(clips: Sequence[Clip], options: Options) -> list[Finding]:
    out = []
    faulty = [(clip, why) for clip in clips if (why := language_fault(clip, options))]
    for why in sorted({why for _, why in faulty}):
        rows = _refs(clip for clip, other in faulty if other == why)
        out.append(Finding("language", BLOCK, f"{why} ({_count(rows)})", rows))
    missing = [clip for clip in clips if clip.lang is None]
    if missing and len(missing) < len(clips):
        codes = sorted({clip.lang for clip in clips if clip.lang})
        severity = BLOCK if len(codes) > 1 else WARN
        text = f"{_count(missing)} without a language among rows in {', '.join(codes)}: name it"
        out.append(Finding("language_missing", severity, text, _refs(missing)))
    elif missing:
        out.append(Finding("language_missing", INFO, f"no row names its language ({_count(missing)})"))
    wrong = [clip for clip in clips if script_fault(clip)]
    if wrong:
        text = f"{_count(wrong)} written in another script than their language's (first: {script_fault(wrong[0])})"
        out.append(Finding("script", WARN, text, _refs(wrong)))
    return out


def audio_twice(clips: Sequence[Clip]) -> list[Finding]:
    """The same decoded audio in several rows of one split: a warning with the count."""
    groups = _groups(clips, lambda c: (c.split, c.audio_sha256) if c.audio_sha256 else None)
    same = [rows for rows in groups.values() if len(rows) > 1]
    if not same:
        return []
    rows = [clip for group in same for clip in group]
    text = f"{len(same)} clip(s) of audio occur more than once inside a split ({_count(rows)})"
    return [Finding("audio_duplicate", WARN, text, _refs(rows))]


def shared_audio(clips: Sequence[Clip]) -> list[Finding]:
    """The same decoded audio in two splits: blocks, one finding an identity."""
    out = []
    for digest, rows in _groups(clips, lambda c: c.audio_sha256 or None).items():
        for left, right in _split_pairs(rows):
            a = [clip for clip in rows if clip.split == left]
            b = [clip for clip in rows if clip.split == right]
            texts = sorted({clip.text or "" for clip in [*a, *b]})
            differ = f"; their texts differ: {texts[0]!r:.80} / {texts[1]!r:.80}" if len(texts) > 1 else ""
            text = (
                f"the same audio is in {left} ({_named(a)}) and {right} ({_named(b)}): "
                f"decoded sha256 {str(digest)[:16]}{differ}"
            )
            out.append(Finding("audio_shared", BLOCK, text, _refs([*a, *b]), (left, right)))
    return out


def overlaps(clips: Sequence[Clip]) -> list[Finding]:
    """Stretches of one recording that overlap: across splits they block, inside a split they are told."""
    out: list[Finding] = []
    inside: list[Clip] = []
    for rows in _groups(clips, lambda c: str(c.audio)).values():
        for a, b, shared_s in overlapping(rows):
            if a.split == b.split:
                inside += [a, b]
                continue
            if a.audio_sha256 == b.audio_sha256:
                continue  # told as shared audio
            text = f"{a.id} ({a.split}) and {b.id} ({b.split}) overlap by {shared_s:.3f} s in {a.audio}"
            out.append(Finding("interval_overlap", BLOCK, text, _refs([a, b]), _pair(a.split, b.split)))
    if inside:
        rows_inside = _refs({(c.manifest, c.row): c for c in inside}.values())
        out.append(
            Finding("interval_overlap_inside", WARN, f"{_count(rows_inside)} overlap inside a split", rows_inside)
        )
    return out


def overlapping(rows: Sequence[Clip]) -> Iterable[tuple[Clip, Clip, float]]:
    """Pairs of rows of one file whose half-open intervals meet on a channel both use, with the seconds they share."""
    spans = sorted(((c.offset_s, c.offset_s + (c.duration_s or float("inf")), c) for c in rows), key=lambda s: s[:2])
    for i, (_, end, a) in enumerate(spans):
        for start, other_end, b in spans[i + 1 :]:
            if start >= end - EPSILON_S:
                break
            if a.channel is None or b.channel is None or a.channel == b.channel:
                yield a, b, min(end, other_end) - start


def speakers(clips: Sequence[Clip]) -> list[Finding]:
    out: list[Finding] = []
    missing = [clip for clip in clips if clip.speaker is None]
    if missing:
        text = (
            f"speaker separation cannot be certified: {_count(missing)} of {len(clips)} without speaker; "
            "blocks become recordings there"
        )
        out.append(Finding("speaker_missing", WARN, text, _refs(missing)))
    named = _groups(clips, lambda c: speaker_key(c.speaker) if c.speaker else None)
    return out + _shared("speaker_shared", "speaker", named, len(named), BLOCK)


def speaker_key(name: str) -> str:
    """Speakers whose names differ only in Unicode form, case or spacing are one."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def shared_recordings(clips: Sequence[Clip]) -> list[Finding]:
    """A recording named in two splits blocks; one file used by two splits without overlap is a warning."""
    named = _groups(clips, lambda c: c.recording)
    files = _groups(clips, lambda c: str(c.audio) if c.recording is None and (c.offset_s or c.duration_s) else None)
    parts = {name: rows for name, rows in files.items() if len({(r.offset_s, r.duration_s) for r in rows}) > 1}
    out = _shared("recording_shared", "recording", named, len(named), BLOCK)
    return out + _shared("file_shared", "audio file", parts, len(files), WARN)


def shared_ids(clips: Sequence[Clip]) -> list[Finding]:
    groups = _groups(clips, lambda c: c.id)
    return _shared("id_shared", "row id", groups, len(groups), WARN)


def shared_sentences(clips: Sequence[Clip]) -> list[Finding]:
    """Sentences of one split that occur in another: a number of its own, a warning, never a refusal."""
    keys = {id(clip): sentence_key(clip.text) for clip in clips if clip.text}
    by_split: dict[str, dict[str, list[Clip]]] = defaultdict(lambda: defaultdict(list))
    for clip in clips:
        if keys.get(id(clip)):
            by_split[clip.split][keys[id(clip)]].append(clip)
    out = []
    for left, right in _ordered_pairs(by_split):
        common = by_split[left].keys() & by_split[right].keys()
        if not common:
            continue
        rows = [clip for key in sorted(common) for clip in by_split[right][key]]
        total = sum(len(same) for same in by_split[right].values())
        text = (
            f"{len(common)} of {len(by_split[right])} sentences of {right} ({len(rows)} of {total} rows, "
            f"{len(rows) / total:.2%}) also occur in {left}"
        )
        out.append(Finding("sentence_shared", WARN, text, _refs(rows), (left, right)))
    return out


def coverage(clips: Sequence[Clip], options: Options) -> list[Finding]:
    """Labels and languages of dev and test that training never shows: blocks."""
    train = [clip for clip in clips if role(clip.split) == "train"]
    out = []
    for split in sorted({clip.split for clip in clips if role(clip.split) in {"dev", "test"}}):
        rows = [clip for clip in clips if clip.split == split]
        kinds: list[tuple[str, Callable[[Clip], str | None]]] = [("language", lambda c: c.lang)]
        if options.task == "label":
            kinds.append(("label", lambda c: c.label))
        for what, of in kinds:
            known = {of(clip) for clip in train}
            new = {of(clip) for clip in rows} - known - {None} if train else set()
            if new:
                text = f"{what}(s) of {split} absent from train: {', '.join(sorted(map(str, new)))}"
                out.append(Finding(f"{what}_absent", BLOCK, text, _refs(c for c in rows if of(c) in new)))
    return out


def _shared(check: str, what: str, groups: dict[Hashable, list[Clip]], known: int, severity: str) -> list[Finding]:
    """One finding a pair of splits: how many groups stand in both, and the rows of both concerned."""
    pairs: dict[tuple[str, str], list[list[Clip]]] = defaultdict(list)
    for rows in groups.values():
        for pair in _split_pairs(rows):
            pairs[pair].append(rows)
    out = []
    for (left, right), shared in sorted(pairs.items()):
        a = [clip for rows in shared for clip in rows if clip.split == left]
        b = [clip for rows in shared for clip in rows if clip.split == right]
        names = ", ".join(sorted(str(_label_of(check, rows[0])) for rows in shared)[:5])
        text = (
            f"{len(shared)} of {known} {what}(s) in both {left} ({_count(a)}) and {right} ({_count(b)}): "
            f"{names}{' …' if len(shared) > 5 else ''}"
        )
        out.append(Finding(check, severity, text, _refs([*a, *b]), (left, right)))
    return out


def _label_of(check: str, clip: Clip) -> str | None:
    by = {"speaker_shared": clip.speaker, "recording_shared": clip.recording, "id_shared": clip.id}
    return by.get(check, str(clip.audio))


def _groups(clips: Iterable[Clip], key: Callable[[Clip], Hashable | None]) -> dict[Hashable, list[Clip]]:
    out: dict[Hashable, list[Clip]] = defaultdict(list)
    for clip in clips:
        value = key(clip)
        if value is not None:
            out[value].append(clip)
    return out


def _split_pairs(rows: Sequence[Clip]) -> list[tuple[str, str]]:
    return _ordered_pairs({clip.split for clip in rows})


def _ordered_pairs(splits: Iterable[str]) -> list[tuple[str, str]]:
    order = {"train": 0, "dev": 1, "test": 2}
    return list(combinations(sorted(splits, key=lambda s: (order.get(role(s), 3), s)), 2))


def _pair(a: str, b: str) -> tuple[str, str]:
    return _ordered_pairs({a, b})[0]


def _refs(clips: Iterable[Clip]) -> tuple[RowRef, ...]:
    return tuple(clip if isinstance(clip, RowRef) else RowRef.of(clip) for clip in clips)


def _named(rows: Sequence[Clip]) -> str:
    shown = ", ".join(f"{clip.id} = {clip.audio}" for clip in rows[:2])
    return shown + (f" and {len(rows) - 2} more" if len(rows) > 2 else "")


def _count(rows: Sequence[object]) -> str:
    return f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
