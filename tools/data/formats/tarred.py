"""NeMo tarred sets: manifest shards beside audio shards, by number, by `_OP_0..3_CL_` or by `{0..3}`."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.data.fields import Source
from tools.data.formats.json_rows import item, json_line_values
from tools.data.reading import Item, Quarantined
from tools.errors import UsageError

_RANGE = re.compile(r"(?:_OP_|\{)(\d+)\.\.(\d+)(?:_CL_|\})")
_NUMBER = re.compile(r"_(\d+)\.(?:json|jsonl|tar)$")
_SUB = re.compile(r"-sub\d+(?=\.[^.]*$|$)")


def expanded(path: Path) -> list[Path]:
    """The files a brace range stands for, in order; the path itself without one. Raises UsageError for a range too
    long.
    """
    found = _RANGE.search(path.name)
    if not found:
        return [path]
    first, last = int(found.group(1)), int(found.group(2))
    if not 0 <= last - first < 1_000_000:
        raise UsageError(f"{path} stands for no files: {first}..{last}")
    width = len(found.group(1)) if found.group(1).startswith("0") and len(found.group(1)) > 1 else 1
    head, tail = path.name[: found.start()], path.name[found.end() :]
    return [path.with_name(f"{head}{number:0{width}d}{tail}") for number in range(first, last + 1)]


def shard_tar(manifest: Path) -> Path | None:
    """The audio shard that belongs to a manifest shard by its number, or None."""
    number = _NUMBER.search(manifest.name)
    if not number:
        return None
    return next(iter(sorted(manifest.parent.glob(f"audio*_{number.group(1)}.tar"))), None)


def is_tarred(path: Path) -> bool:
    """Whether a path is a range of manifests, or a manifest shard with its audio shard beside it."""
    return _RANGE.search(path.name) is not None or (path.is_file() and shard_tar(path) is not None)


def read(path: Path, source: Source) -> Iterator[Item]:
    """Rows of every shard; rows without a member and members without a row are set aside, never dropped."""
    shards = expanded(path)
    missing = [shard for shard in shards if not shard.is_file()]
    if missing:
        raise UsageError(f"manifest shard not found: {missing[0]} ({len(missing)} of {len(shards)} missing)")
    for shard in shards:
        yield from _shard(shard, shard_tar(shard), replace(source, manifest=str(shard), folder=shard.parent))


def _shard(manifest: Path, tar: Path | None, source: Source) -> Iterator[Item]:
    members, fault = _members(tar) if tar else (set(), f"no audio shard beside {manifest.name}")
    unused = set(members)
    for number, value in json_line_values(manifest, source):
        if isinstance(value, Item):
            yield value
            continue
        member = _member(value, members)
        unused.discard(member or "")
        if member is None:
            name = str(value.get("audio_filepath", "")) if isinstance(value, dict) else ""
            why = fault or f"{name} is no member of {tar.name if tar else ''}"
            yield Quarantined(source.manifest, number, name, why, source.split, "missing")
        else:
            yield item({**_named(value), "audio_filepath": f"{tar}::{member}"}, source, number)
    for at, member in enumerate(sorted(unused), start=1):
        yield Quarantined(str(tar), at, member, f"an audio member without a row in {manifest.name}", source.split)


def _members(tar: Path) -> tuple[set[str], str]:
    try:
        with tarfile.open(tar) as opened:
            return {m.name for m in opened if m.isfile()}, ""
    except (OSError, tarfile.TarError) as error:
        return set(), f"{tar.name} cannot be read ({error})"


def _member(value: Any, members: set[str]) -> str | None:
    """The member a row means: its name, its base name, or that without the -subN of a file cut up."""
    if not isinstance(value, dict) or not isinstance(value.get("audio_filepath"), str):
        return None
    name = value["audio_filepath"]
    plain = _SUB.sub("", name)
    return next((n for n in (name, Path(name).name, plain, Path(plain).name) if n in members), None)


def _named(value: dict[str, Any]) -> dict[str, Any]:
    """The row with an id, so that the member's place does not become one."""
    if any(value.get(key) for key in ("id", "utt_id", "utterance_id")):
        return value
    return {**value, "id": f"{value['audio_filepath']}#{float(value.get('offset') or 0.0)}"}
