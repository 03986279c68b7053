"""Files of answers that somebody else decoded: several hypotheses a clip, in the forms they come in.

A file is told by its content, gzipped or not. Read: JSONL with one hypothesis a line or several (NeMo manifests with `pred_text` and an n-best list among them), the TSV
that NeMo's beam search scripts write (`text<TAB>score`, so many lines a clip in the manifest's order), results of
CTranslate2 (`sequences`, `scores`), JSON files of Whisper (one file a clip and decode), and our own rollouts.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tools.data.lines import read_text
from tools.errors import UsageError

MANY = (
    "answers", "hypotheses", "nbest", "n_best", "n_best_hypotheses", "samples", "beams", "alternatives", "candidates",
    "sequences",
)  # fmt: skip
HEARD = ("pred_text", "hypothesis", "hyp")  # never a reference
TEXT = (*HEARD, "transcript", "transcription", "sentence", "text")  # the others are references in many a manifest
SCORE = ("score", "log_prob", "logprob", "avg_logprob", "cumulative_logprob", "logscore")
NAME = ("id", "clip_id", "utt_id", "utterance_id", "key", "audio_filepath", "audio", "audio_file", "path", "wav")


@dataclass(frozen=True, slots=True)
class Heard:
    """One hypothesis of a file. `names` are the clip's id and audio path as written, most telling first, or "#<n>" for the
    n-th clip of the manifest; `temperature` None where the file does not say; `where` is file and line."""

    names: tuple[str, ...]
    text: str
    where: str
    score: float | None = None
    temperature: float | None = None
    seed: int | None = None
    finish: str = "stop"
    greedy: bool = False
    logprobs: tuple[float, ...] | None = None
    tokens: tuple[int, ...] = ()
    index: int | None = None


def read_files(path: Path, clips: int, known: Collection[str] = ()) -> list[Heard]:
    """Every hypothesis of a file, or of the files of a folder. `clips`: how many the manifests have, for a file that goes by
    their order; `known`: what they are called. Raises UsageError naming file and line."""
    if path.is_dir():
        return [h for file in answer_files(path) for h in read_files(file, clips, known)]
    text = _read(answer_files(path)[0]).replace("\r\n", "\n")
    if not text.strip():
        raise UsageError(f"the answers {path} are empty")
    if Path(path.name.removesuffix(".gz")).suffix.lower() in (".tsv", ".txt") and text.lstrip()[0] != "{":
        return list(_beams(path, text, clips, known))
    return list(_lines(path, text) if _one_a_line(path, text) else _document(path, text))


def answer_files(path: Path) -> list[Path]:
    """The file itself, or a folder's files of answers. Raises UsageError where there is none."""
    files = sorted(p for p in path.rglob("*") if _KIND.search(p.name) and p.is_file()) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path} holds no .json or .jsonl file of answers")
    if not all(file.is_file() for file in files):
        raise UsageError(f"the answers {path} are not there: give a file, or a folder of files")
    return files


_KIND = re.compile(r"\.jsonl?(\.gz)?$", re.IGNORECASE)


def _read(path: Path) -> str:
    try:
        return read_text(path, 4 << 30)
    except (OSError, EOFError, zlib.error, UnicodeError) as err:
        raise UsageError(f"the answers {path} cannot be read: {err}") from err


def _one_a_line(path: Path, text: str) -> bool:
    """Whether it is JSON lines (NeMo calls them .json too): the first line is a whole object and not all there is."""
    if ".jsonl" in path.name.lower():
        return True
    first, _, rest = text.lstrip().partition("\n")
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return bool(rest.strip()) and rest.lstrip()[0] in "[{" and first.startswith('{"')
    return isinstance(row, Mapping) and (bool(rest.strip()) or any(k in row for k in NAME))


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
    elif not isinstance(value, Mapping):
        raise UsageError(f"{path.name}: an object or a list of answers is needed")
    else:
        name = {} if any(value.get(k) for k in NAME) else {"id": Path(path.name.removesuffix(".gz")).stem}
        yield from _row({**name, **value}, path.name)


def _beams(path: Path, text: str, clips: int, known: Collection[str]) -> Iterator[Heard]:
    """NeMo's beam file: the same number of lines for every clip of the manifest, best first; or id, tab, text."""
    # an empty line is an empty answer: left out, it would shift all that follow
    rows = (text.rstrip("\n") if "\t" in text else text.removesuffix("\n")).split("\n")
    cells = [row.split("\t") for row in rows]
    odd = next((i for i, row in enumerate(cells) if len(row) != len(cells[0])), None)
    if len(cells[0]) > 2 or (odd is not None and len(cells[odd]) > 2):
        raise UsageError(
            f"{path.name}:{1 + (odd or 0)} has {len(cells[odd or 0])} columns: a beam file has text and score, another file id "
            f"and text; for more, give JSONL"
        )
    named = not any(_number(row[-1]) is not None for row in cells) or all(row[0].strip() in known for row in cells)
    if len(cells[0]) == 2 and odd is None and named:
        for i, (name, said) in enumerate(cells):
            yield Heard((name.strip(),), said.strip(), f"{path.name}:{i + 1}")
        return
    scored = any(_number(row[1]) is not None for row in cells if len(row) == 2)
    bad = next((i for i, row in enumerate(cells) if scored and (len(row) < 2 or _number(row[1]) is None)), None)
    if bad is not None:
        raise UsageError(f"{path.name}:{bad + 1} has no score after a tab, other lines have one: mend the file")
    if not clips or len(rows) % clips:
        raise UsageError(
            f"{path} has {len(rows)} lines for {clips} clips: every clip needs as many, in the manifest's order"
        )
    width = len(rows) // clips
    for i, row in enumerate(cells):
        yield Heard(
            (f"#{i // width}",), row[0].strip(), f"{path.name}:{i + 1}", score=_number(row[1]) if scored else None
        )


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as err:
        raise UsageError(f"{where} is not JSON: {err}") from err


def _row(row: Any, where: str) -> Iterator[Heard]:
    """The hypotheses of one object: those of its list, and its own text, which is greedy where there is a list."""
    if not isinstance(row, Mapping):
        raise UsageError(f"{where}: an object with a clip's id and its answers is needed")
    name = tuple(str(row[k]) for k in NAME if row.get(k) not in (None, ""))
    if not name:
        raise UsageError(f"{where}: no clip is named (one of {', '.join(NAME)})")
    many = next((k for k in MANY if isinstance(row.get(k), list)), None)
    if many is None:
        if empty := next((k for k in MANY if k in row), None):
            raise UsageError(f"{where}: {empty} is no list of answers: mend the row, or leave it out")
        yield _one(name, row, where)
        return
    own = next((row[k] for k in ("greedy", *HEARD) if isinstance(row.get(k), str)), None)
    if own is not None:
        yield Heard(name, own.strip(), where, temperature=0.0, greedy=True)
    scores = row.get("scores")
    for i, item in enumerate(row[many]):
        score = scores[i] if isinstance(scores, list) and i < len(scores) else None
        yield _item(name, item, f"{where}[{i}]", _number(score), many)


def _item(name: tuple[str, ...], item: Any, where: str, score: float | None, many: str) -> Heard:
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


def _one(name: tuple[str, ...], row: Mapping[str, Any], where: str) -> Heard:
    """One object with one text. Whisper's segments say at which temperature they were decoded."""
    text = _text(row, where)
    segments = row.get("segments")
    told = [s.get("temperature") for s in segments if isinstance(s, Mapping)] if isinstance(segments, list) else []
    heat = row.get("temperature", max((t for t in told if isinstance(t, int | float)), default=None))
    finish = str(row.get("finish") or row.get("finish_reason") or "stop")
    logprobs = row.get("logprobs")
    tokens = row.get("token_ids", row.get("tokens"))
    index = row["index"] if isinstance(row.get("index"), int) else None
    heat = _number(heat)
    return Heard(
        name,
        text.strip(),
        where,
        score=next((v for k in SCORE if (v := _number(row.get(k))) is not None), None),
        temperature=heat,
        seed=row["seed"] if isinstance(row.get("seed"), int) else None,
        finish="length" if finish in ("length", "max_tokens") else "stop",
        greedy=row.get("greedy") in (True, "true", "True") or index == -1 or heat == 0,
        logprobs=tuple(float(v) for v in _numbers(logprobs)) or None,
        tokens=tuple(int(t) for t in _numbers(tokens)),
        index=index,
    )


def _text(row: Mapping[str, Any], where: str) -> str:
    """The hypothesis of a row. Raises UsageError where there is none: a reference that stands beside it is no answer."""
    said = [k for k in HEARD if k in row] or [k for k in TEXT if isinstance(row.get(k), str)]
    texts = list(dict.fromkeys(row[k] for k in said if isinstance(row[k], str)))
    if said and not texts:
        raise UsageError(f"{where}: {said[0]} holds no text: give the answer (empty if it was), or leave the row out")
    if not said:
        raise UsageError(f"{where}: no text (one of {', '.join(TEXT)})")
    if said[0] not in HEARD and len(texts) > 1:
        raise UsageError(f"{where}: {' and '.join(said[:2])} differ: call the model's answer pred_text")
    return str(texts[0])


def _numbers(value: Any) -> list[int | float]:
    """The value where it is a list of numbers, else nothing."""
    numbers = isinstance(value, list) and all(isinstance(v, int | float) and math.isfinite(v) for v in value)
    return value if numbers else []


def _number(value: Any) -> float | None:
    """A finite number, written as one or as a string; else None."""
    try:
        found = None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found is not None and math.isfinite(found) else None


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
