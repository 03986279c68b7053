"""Files of answers that somebody else decoded: several hypotheses a clip, in the forms they come in.

Read: JSONL with one hypothesis a line or several (NeMo manifests with `pred_text` and an n-best list among them), the TSV
that NeMo's beam search scripts write (`text<TAB>score`, so many lines a clip in the manifest's order), results of
CTranslate2 (`sequences`, `scores`), JSON files of Whisper (one file a clip and decode), and our own rollouts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tools.errors import UsageError

MANY = (
    "answers", "hypotheses", "nbest", "n_best", "n_best_hypotheses", "samples", "beams", "alternatives", "candidates",
    "sequences",
)  # fmt: skip
TEXT = ("pred_text", "hypothesis", "hyp", "transcript", "transcription", "sentence", "text")
SCORE = ("score", "log_prob", "logprob", "avg_logprob", "cumulative_logprob", "logscore")
NAME = ("id", "clip_id", "utt_id", "utterance_id", "key", "audio_filepath", "audio", "audio_file", "path", "wav")


@dataclass(frozen=True, slots=True)
class Heard:
    """One hypothesis of a file. `name` is the clip's id or audio path as written, or "#<n>" for the n-th clip of the
    manifest; `temperature` None where the file does not say; `where` is file and line."""

    name: str
    text: str
    where: str
    score: float | None = None
    temperature: float | None = None
    seed: int | None = None
    finish: str = "stop"
    greedy: bool = False
    logprobs: tuple[float, ...] | None = None
    tokens: tuple[int, ...] = ()


def read_files(path: Path, clips: int) -> list[Heard]:
    """Every hypothesis of a file, or of the files of a folder. Raises UsageError naming file and line."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in (".json", ".jsonl") and p.is_file())
        if not files:
            raise UsageError(f"{path} holds no .json or .jsonl file of answers")
        return [h for file in files for h in read_files(file, clips)]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        raise UsageError(f"the answers {path} cannot be read: {err}") from err
    if path.suffix.lower() in (".tsv", ".txt"):
        return list(_beams(path, text, clips))
    if path.suffix.lower() == ".json":
        return list(_document(path, text))
    return list(_lines(path, text))


def _lines(path: Path, text: str) -> Iterator[Heard]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield from _row(_json(line, f"{path.name}:{number}"), f"{path.name}:{number}")


def _document(path: Path, text: str) -> Iterator[Heard]:
    """A .json file: one clip (Whisper), a list of clips, or a mapping of clip -> result."""
    value = _json(text, path.name)
    if isinstance(value, list):
        for i, row in enumerate(value):
            yield from _row(row, f"{path.name}[{i}]")
    elif isinstance(value, Mapping) and not (set(value) & {*TEXT, *MANY}):
        for name, row in value.items():
            whole = row if isinstance(row, Mapping) else {"answers": row} if isinstance(row, list) else {"text": row}
            yield from _row({"id": name, **whole}, f"{path.name}:{name}")
    else:
        name = {} if any(value.get(k) for k in NAME) else {"id": path.stem}
        yield from _row({**name, **value}, path.name)


def _beams(path: Path, text: str, clips: int) -> Iterator[Heard]:
    """NeMo's beam file: the same number of lines for every clip of the manifest, best first."""
    rows = [line for line in text.split("\n") if line.strip()]
    if not clips or len(rows) % clips:
        raise UsageError(
            f"{path} has {len(rows)} lines for {clips} clips: every clip needs as many, in the manifest's order"
        )
    width = len(rows) // clips
    for i, line in enumerate(rows):
        words, tab, score = line.rpartition("\t")
        value = _number(score) if tab else None
        yield Heard(f"#{i // width}", (words if tab else line).strip(), f"{path.name}:{i + 1}", score=value)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as err:
        raise UsageError(f"{where} is not JSON: {err}") from err


def _row(row: Any, where: str) -> Iterator[Heard]:
    """The hypotheses of one object: those of its list, and its own text, which is greedy where there is a list."""
    if not isinstance(row, Mapping):
        raise UsageError(f"{where}: an object with a clip's id and its answers is needed")
    name = next((str(row[k]) for k in NAME if row.get(k) not in (None, "")), "")
    if not name:
        raise UsageError(f"{where}: no clip is named (one of {', '.join(NAME)})")
    many = next((k for k in MANY if isinstance(row.get(k), list)), None)
    if many is None:
        yield _one(name, row, where)
        return
    own = next((row[k] for k in ("greedy", *TEXT[:-1]) if isinstance(row.get(k), str)), None)
    if own is not None:
        yield Heard(name, own.strip(), where, temperature=0.0, greedy=True)
    scores = row.get("scores")
    for i, item in enumerate(row[many]):
        score = scores[i] if isinstance(scores, list) and i < len(scores) else None
        yield _item(name, item, f"{where}[{i}]", _number(score), many)


def _item(name: str, item: Any, where: str, score: float | None, many: str) -> Heard:
    if isinstance(item, str):
        return Heard(name, item.strip(), where, score=score)
    if isinstance(item, Mapping):
        return _one(name, {"score": score, **item}, where)
    if isinstance(item, list) and many == "sequences" and all(isinstance(t, str) for t in item):
        return Heard(name, join_tokens(item), where, score=score)
    if isinstance(item, list) and len(item) == 2:
        text, value = item if isinstance(item[0], str) else (item[1], item[0])
        if isinstance(text, str):
            return Heard(name, text.strip(), where, score=_number(value))
    raise UsageError(f"{where}: an answer must be a text, an object with a text, or a pair of text and score")


def _one(name: str, row: Mapping[str, Any], where: str) -> Heard:
    """One object with one text. Whisper's segments say at which temperature they were decoded."""
    text = next((row[k] for k in TEXT if isinstance(row.get(k), str)), None)
    if text is None:
        raise UsageError(f"{where}: no text (one of {', '.join(TEXT)})")
    segments = row.get("segments")
    told = [s.get("temperature") for s in segments if isinstance(s, Mapping)] if isinstance(segments, list) else []
    heat = row.get("temperature", max((t for t in told if isinstance(t, int | float)), default=None))
    finish = str(row.get("finish") or row.get("finish_reason") or "stop")
    logprobs = row.get("logprobs")
    tokens = row.get("token_ids", row.get("tokens"))
    index = row.get("index")
    return Heard(
        name,
        text.strip(),
        where,
        score=next((v for k in SCORE if (v := _number(row.get(k))) is not None), None),
        temperature=_number(heat),
        seed=row["seed"] if isinstance(row.get("seed"), int) else None,
        finish="length" if finish in ("length", "max_tokens") else "stop",
        greedy=bool(row.get("greedy")) or index == -1 or heat == 0,
        logprobs=tuple(float(v) for v in _numbers(logprobs)) or None,
        tokens=tuple(int(t) for t in _numbers(tokens)),
    )


def _numbers(value: Any) -> list[int | float]:
    """The value where it is a list of numbers, else nothing."""
    return value if isinstance(value, list) and all(isinstance(v, int | float) for v in value) else []


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


@cache
def _bytes() -> dict[str, int]:
    """GPT-2's printable stand-ins for bytes, as Whisper's tokens are written."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in kept}
    return table | {chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in kept)}


def join_tokens(tokens: Sequence[str]) -> str:
    """Token strings of a byte-level vocabulary -> text; special tokens (`<|...|>`) are left out."""
    plain = "".join(t for t in tokens if not (t.startswith("<|") and t.endswith("|>")))
    table = _bytes()
    if not all(c in table for c in plain):
        return plain.replace("\u2581", " ").strip()  # a sentencepiece vocabulary
    return bytes(table[c] for c in plain).decode("utf-8", "replace").strip()
