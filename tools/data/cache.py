"""What was heard before: facts of stretches whose files have not changed, so that a second check takes only the rest.

One SQLite file. A stretch is known by its file (path, size, time, inode), offset, duration and channel. For near
identity the stored clips' words, who was compared with whom, and the pairs found are kept as well.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tools.audio.facts import Facts
from tools.audio.fingerprint import Fingerprint
from tools.audio.inside import inside_of
from tools.audio.near import Match
from tools.errors import UsageError
from tools.rows import Clip

VERSION = "1"  # of facts, words and matches: another one starts anew

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, facts TEXT);
CREATE TABLE IF NOT EXISTS prints (key TEXT, channel INTEGER, samples INTEGER, words BLOB, sure BLOB,
    PRIMARY KEY (key, channel));
CREATE TABLE IF NOT EXISTS part (key TEXT PRIMARY KEY, stored INTEGER);
CREATE TABLE IF NOT EXISTS pairs (a TEXT, b TEXT, match TEXT, PRIMARY KEY (a, b));
"""


@dataclass(frozen=True)
class Print:
    """The stored fingerprint of one channel of a stretch; `samples` at 8 kHz."""

    channel: int
    samples: int
    words: Fingerprint


class FactsCache:
    """Facts by stretch. Raises UsageError where the file is no such cache."""

    def __init__(self, path: Path | str) -> None:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=2.0)
            self._db.executescript(_TABLES)
            self._db.execute("BEGIN IMMEDIATE")  # held to the end of the check: a second one is told, not mixed in
            self._renew()
        except (sqlite3.Error, OSError) as error:
            raise UsageError(
                f"{path} cannot be used as a cache of audio facts ({error}): end the check that uses it, delete it, or name another"
            ) from error

    def _renew(self) -> None:
        """Empty a cache of another version."""
        found = self._db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        if found != (VERSION,):
            for table in ("facts", "prints", "part", "pairs", "meta"):
                self._db.execute(f"DELETE FROM {table}")
            self._db.execute("INSERT INTO meta VALUES ('version', ?)", (VERSION,))

    def facts(self, key: str) -> Facts | None:
        found = self._db.execute("SELECT facts FROM facts WHERE key = ?", (key,)).fetchone()
        if found is None:
            return None
        values = json.loads(found[0])
        values["error"] = tuple(values["error"]) if values["error"] else None
        values["others"] = tuple((channel, digest) for channel, digest in values["others"])
        return Facts(**values)

    def put(self, key: str, facts: Facts, prints: Iterable[Print] = ()) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, json.dumps(asdict(facts))))
        for one in prints:
            words = one.words.words[0, 0].astype("<u4").tobytes()
            sure = np.packbits(one.words.sure).tobytes()
            self._db.execute(
                "INSERT OR REPLACE INTO prints VALUES (?, ?, ?, ?, ?)", (key, one.channel, one.samples, words, sure)
            )

    def prints(self, key: str) -> list[Print]:
        """The stored fingerprints of a stretch, by channel; empty where it was not stored before."""
        out = []
        rows = self._db.execute(
            "SELECT channel, samples, words, sure FROM prints WHERE key = ? ORDER BY channel", (key,)
        )
        for channel, samples, words, sure in rows:
            line = np.frombuffer(words, "<u4").astype(np.uint32)
            bits = np.unpackbits(np.frombuffer(sure, np.uint8), count=len(line)).astype(bool)
            out.append(Print(channel, samples, Fingerprint(line[None, None, :], bits)))
        return out

    def took_part(self) -> dict[str, bool]:
        """Stretches of the last complete search: whether each was stored (all of them asked)."""
        return {key: bool(stored) for key, stored in self._db.execute("SELECT key, stored FROM part")}

    def threshold(self) -> float | None:
        found = self._db.execute("SELECT value FROM meta WHERE name = 'threshold'").fetchone()
        return float(found[0]) if found else None

    def pairs(self) -> dict[tuple[str, str], Match]:
        rows = self._db.execute("SELECT a, b, match FROM pairs")
        return {(a, b): Match(**json.loads(match)) for a, b, match in rows}

    def finish(self, part: dict[str, bool], pairs: dict[tuple[str, str], Match], threshold: float | None) -> None:
        """Write down a complete search (a threshold of None: there was none) and commit everything."""
        if threshold is not None:
            self._db.execute("DELETE FROM part")
            self._db.execute("DELETE FROM pairs")
            self._db.executemany("INSERT INTO part VALUES (?, ?)", part.items())
            rows = ((a, b, json.dumps(asdict(match))) for (a, b), match in pairs.items())
            self._db.executemany("INSERT INTO pairs VALUES (?, ?, ?)", rows)
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('threshold', ?)", (repr(threshold),))
        self._db.commit()


def stretch_key(clip: Clip) -> str | None:
    """What a stretch is known by; None where its file cannot be seen."""
    inside = inside_of(clip.audio)
    try:
        stat = os.stat(inside[0] if inside else clip.audio)
    except (OSError, ValueError):
        return None
    place = (os.path.abspath(clip.audio), stat.st_size, stat.st_mtime_ns, stat.st_ino)
    return json.dumps([*place, clip.offset_s, clip.duration_s, clip.channel])
