"""References and hypotheses of any number of systems joined by id, in a private temporary database.

Files come in any order and of any size: what does not fit into the cache goes to a temporary file that vanishes with the
process, so that memory does not grow with the number of clips. Rows come out sorted by id (code point order).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.errors import CheckError
from tools.rows import ScoredRow
from tools.score.formats import HYP_KEYS, REF_KEYS, each_text, kind_of
from tools.score.lines import Text
from tools.score.sclite import IGNORED, read_ctm, words_in_segments

CACHE_KIB = 16_384
_REF = 0
_JOIN = """SELECT {columns} FROM texts r {joins} WHERE r.side = 0 AND NOT r.ignored ORDER BY r.id"""


class RowStore:
    """The texts of `ref` (side 0) and of each of `hyps` (sides 1, 2, ...), checked to hold the same ids.

    `lang` fills in where the reference's row names none. Raises CheckError for a missing, doubled or foreign id (with
    file and line), UsageError for a file that cannot be read.
    """

    def __init__(
        self,
        ref: Path | str,
        hyps: Sequence[Path | str],
        lang: str | None = None,
        ref_keys: tuple[str, ...] = REF_KEYS,
    ) -> None:
        self.lang = lang
        self._db = sqlite3.connect("")
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute(
            "CREATE TABLE texts (side INTEGER, id BLOB, line INTEGER, ignored INTEGER, speaker INTEGER, "
            "recording INTEGER, body TEXT, PRIMARY KEY (side, id)) WITHOUT ROWID"
        )
        self.paths = [Path(ref), *map(Path, hyps)]
        self._load(_REF, each_text(self.paths[0], ref_keys))
        if not self._count():
            raise CheckError(f"{ref} holds no reference: there is nothing to score.")
        for side, path in enumerate(self.paths[1:], 1):
            self._load(side, self._hypotheses(path))
            self._same_ids(side)

    def _hypotheses(self, path: Path) -> Iterable[Text]:
        if kind_of(path) == "ctm" and kind_of(self.paths[0]) == "stm":
            segments = {text.id: text for text in each_text(self.paths[0], REF_KEYS)}
            return words_in_segments(read_ctm(path), segments, path).values()
        return each_text(path, HYP_KEYS)

    def _load(self, side: int, texts: Iterable[Text]) -> None:
        insert = "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?)"
        for t in texts:
            row = [getattr(t, name) for name in Text.__slots__]
            ignored = side == _REF and t.text == IGNORED
            try:
                self._db.execute(
                    insert, (side, _key(t.id), t.line, ignored, bool(t.speaker), bool(t.recording), json.dumps(row))
                )
            except sqlite3.IntegrityError:
                raise CheckError(
                    f"{self.paths[side]}, line {t.line} repeats the id {t.id!r}: each clip counts once."
                ) from None

    def _count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM texts").fetchone()[0])

    def _same_ids(self, side: int) -> None:
        ref, hyp = self.paths[0], self.paths[side]
        lacks = "SELECT id, line FROM texts WHERE side = ? AND id NOT IN (SELECT id FROM texts WHERE side = ?) LIMIT 1"
        if found := self._db.execute(lacks, (_REF, side)).fetchone():
            raise CheckError(
                f"{hyp} has no text for the id {_name(found[0])!r} ({ref}, line {found[1]}): decode every clip."
            )
        if found := self._db.execute(lacks, (side, _REF)).fetchone():
            raise CheckError(
                f"{hyp}, line {found[1]} has the id {_name(found[0])!r}, which {ref} does not have: remove it."
            )

    def rows_without(self, field: str) -> int:
        """How many rows have no `speaker` or `recording`, neither in the reference nor in the first system's file."""
        missing = f"SELECT count(*) FROM texts r JOIN texts h ON h.side = 1 AND h.id = r.id WHERE r.side = 0 AND NOT r.ignored AND NOT (r.{field} OR h.{field})"
        return int(self._db.execute(missing).fetchone()[0])

    def rows(self, system: int = 1) -> Iterator[ScoredRow]:
        """Scored rows of one system, sorted by id."""
        for bodies in self._bodies([system]):
            yield self._row(*bodies)

    def pairs(self, a: int = 1, b: int = 2) -> Iterator[tuple[ScoredRow, ScoredRow]]:
        """Rows of two systems on the same clips, sorted by id. Blocks are those of `a`."""
        for ref, one, two in self._bodies([a, b]):
            yield self._row(ref, one), self._row(ref, two)

    def notes(self, field: str) -> dict[str, str]:
        """Id -> `domain` or `audio`, for the rows that have one."""
        out = {}
        for ref, hyp in self._bodies([1]):
            if value := getattr(ref, field) or getattr(hyp, field):
                out[ref.id] = value
        return out

    def _bodies(self, sides: Sequence[int]) -> Iterator[list[Text]]:
        joins = " ".join(f"JOIN texts h{s} ON h{s}.side = {s} AND h{s}.id = r.id" for s in sides)
        columns = ", ".join(["r.body", *(f"h{s}.body" for s in sides)])
        for bodies in self._db.execute(_JOIN.format(columns=columns, joins=joins)):
            yield [Text(*json.loads(body)) for body in bodies]

    def _row(self, ref: Text, hyp: Text) -> ScoredRow:
        return ScoredRow(
            id=ref.id,
            ref=ref.text,
            hyp=hyp.text,
            speaker=ref.speaker or hyp.speaker,
            recording=ref.recording or hyp.recording,
            lang=ref.lang or self.lang or hyp.lang,
            finish=hyp.finish,
            tokens=hyp.tokens,
            duration_s=ref.duration_s or hyp.duration_s,
        )


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _name(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")
