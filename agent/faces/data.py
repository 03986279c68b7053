"""What `rehear check` and `rehear registry` do with their options: run the check, write what was asked for, print it."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tools.errors import RehearError, UsageError

if TYPE_CHECKING:
    from tools.data.report import CheckReport
    from tools.rows import Clip

WIDEST = 400  # characters of such a line
SHOWN = 20  # rows set aside, or collisions, that are printed for a person; --json has all of them

registry = typer.Typer(no_args_is_help=True, help="Publish, or check against, the fingerprints of a private test set.")

Json = Annotated[bool, typer.Option("--json", help="Exactly one JSON document on stdout, on every way out.")]
Manifests = Annotated[list[Path], typer.Argument(metavar="MANIFEST...", help="Manifests of any known format.")]


@dataclass(frozen=True)
class Outputs:
    """What a check writes of the rows it kept: NeMo manifests and Lhotse cuts (a file a split), rows with digests."""

    nemo: Path | None = None
    lhotse: Path | None = None
    rows: Path | None = None
    drop_leaks: bool = False

    def write(self, report: CheckReport, manifests: Sequence[Path]) -> list[str]:
        """The paths written. Raises UsageError where one would replace a manifest that was checked."""
        from tools.data.checks import leaks
        from tools.data.write import write_lhotse, write_nemo, write_rows

        drop = leaks(report).drop if self.drop_leaks else {}

        def rows(split: str | None = None) -> Iterator[Clip]:
            kept = (c for c in report.kept if split is None or c.split == split)
            return (c for c in kept if (c.manifest, c.row) not in drop)

        jobs: list[tuple[Path, Callable[[Path, Iterable[Clip]], None], Iterable[Clip]]] = []
        for split in sorted({clip.split for clip in report.kept}) if self.nemo or self.lhotse else ():
            name = split.replace("/", "_") or manifests[0].name.split(".")[0]
            jobs += [(self.nemo / f"{name}.json", write_nemo, rows(split))] if self.nemo else []
            jobs += [(self.lhotse / f"{name}.jsonl", write_lhotse, rows(split))] if self.lhotse else []
        jobs += [(self.rows, write_rows, rows())] if self.rows else []
        for path, _, _ in jobs:
            refuse_replacing(path, manifests)
        for path, write, part in jobs:
            write(path, part)
        return [str(path) for path, _, _ in jobs]


def refuse_replacing(path: Path, manifests: Sequence[Path]) -> None:
    """Raises UsageError where `path` is one of the manifests: what was given is never changed."""
    if path.resolve() in {manifest.resolve() for manifest in manifests}:
        raise UsageError(f"{path} is one of the manifests that were given: write to another path, nothing is replaced")


class _Signal(BaseException):
    """A signal on its way out of whatever was running."""


class Stopped(RehearError):
    """Stopped by SIGINT or SIGTERM: exit 130 or 143, nothing half written."""

    kind = "interrupted"


@contextmanager
def stoppable() -> Iterator[None]:
    """While the block runs, SIGINT and SIGTERM end it with one sentence. Raises Stopped."""

    def heard(signum: int, _: Any) -> None:
        raise _Signal(signum)

    before = {s: signal.signal(s, heard) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _Signal as stop:
        stopped = Stopped("stopped: nothing that was given has been changed, run it again")
        stopped.exit_code = 128 + int(stop.args[0])
        raise stopped from None
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def run_check(manifests: list[Path], options: dict[str, Any], outputs: Outputs, json_: bool) -> int:
    """Checks, writes, prints; the exit code is 5 where something blocks."""
    from tools.data.checks import check_paths

    given = {name: value for name, value in options.items() if value is not None}
    with stoppable():
        report = check_paths(manifests, progress=_progress(json_), **given)
        written = outputs.write(report, manifests)
    document = report.to_json() | {"heard": report.heard} | ({"written": written} if written else {})
    if json_:
        print(json.dumps(document, ensure_ascii=False))
    else:
        _print_check(document)
        if given.get("cache"):
            print(f"heard {report.heard} stretches of audio; the others were remembered from {given['cache']}")
    return 0 if report.ok else 5


def _progress(json_: bool) -> Callable[[str, int, int], None]:
    from agent.events import Progress
    from agent.faces.headless import Plain

    plain = Plain()
    return lambda what, done, total: None if json_ else plain(Progress(what=f"checking {what}", done=done, total=total))


def _print_check(document: dict[str, Any]) -> None:
    print(f"{document['rows_in']} rows in, {document['kept']} kept, {len(document['quarantined'])} set aside")
    _print_aside(document)
    for finding in document["findings"]:
        print(_printable(f"  {finding['severity']:<5} {finding['check']}: {finding['text']}"))
    for path in document.get("written", ()):
        print(f"wrote {path}")


def _place(row: dict[str, Any]) -> str:
    return f"{row['manifest']}:{row['row']}" + (f" {row['id']}" if row["id"] else "")


def _print_aside(document: dict[str, Any]) -> None:
    """Rows set aside; many with one reason are one line."""
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for row in document["quarantined"]:
        by_reason.setdefault(row["reason"], []).append(row)
    lines = []
    for reason, rows in by_reason.items():
        if len(rows) > 3:
            lines.append(f"{len(rows)} rows, the first {_place(rows[0])}: {reason}")
        else:
            lines += [f"{_place(row)}: {reason}" for row in rows]
    _print_some(lines, "rows set aside")


def _printable(line: str) -> str:
    """The line with control characters written out: names of a customer's files reach a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _print_some(lines: Sequence[str], what: str) -> None:
    for line in lines[:SHOWN]:
        print(_printable(f"  {line}" if len(line) <= WIDEST else f"  {line[:WIDEST]}…"))
    if len(lines) > SHOWN:
        print(f"  and {len(lines) - SHOWN} more {what}: --json names them all")


@registry.command("build")
def registry_build(
    manifests: Manifests,
    out: Annotated[Path, typer.Option(help="Where the registry goes.")],
    name: Annotated[str, typer.Option(help="A name for the set, published with it.")] = "",
    json_: Json = False,
) -> None:
    """Write what the owner of a private test set can publish: no text, no audio, no ids."""
    from tools.data.registry import build

    refuse_replacing(out, manifests)
    with stoppable():
        built = build(manifests, out, name=name)
    document = built.to_json()
    if json_:
        print(json.dumps(document, ensure_ascii=False))
    else:
        print(f"{out}: {built.clips} clips, {built.texts} sentences ({built.texts_left_out} too short to publish)")
        print("What it gives away:")
        _print_some(document["statement"], "sentences")
        _print_aside(document)
    if built.quarantined:
        print(f"rehear: {len(built.quarantined)} rows could not be heard and are not in {out}", file=sys.stderr)
    raise typer.Exit(5 if built.quarantined else 0)


@registry.command("check")
def registry_check(
    manifests: Manifests,
    registry: Annotated[Path, typer.Option(help="The registry that was published.")],
    write_clean: Annotated[Path | None, typer.Option(help="NeMo manifest of the rows without a collision.")] = None,
    drop_text: Annotated[
        bool, typer.Option("--drop-text", help="Leave out rows that share only a sentence too.")
    ] = False,
    json_: Json = False,
) -> None:
    """Name the rows that collide with a registry; exit 5 where audio collides or a row cannot be cleared."""
    from tools.data.registry import check as collide

    if write_clean:
        refuse_replacing(write_clean, [*manifests, registry])
    with stoppable():
        report = collide(manifests, registry, write_clean, drop_text)
    document = report.to_json() | ({"written": [str(write_clean)]} if write_clean else {})
    if json_:
        print(json.dumps(document, ensure_ascii=False))
    else:
        print(f"{report.rows_in} rows in, {len(report.collisions)} collisions, {report.kept} rows without one")
        lines = [f"{_place(c)}: {c['kind']} ({c['score']:.2f})" for c in document["collisions"]]
        _print_some(lines, "collisions")
        _print_aside(document)
        print(f"Covered: {document['covered']}.")
        print(f"wrote {write_clean}" if write_clean else "--write-clean PATH writes the rows without a collision")
    raise typer.Exit(0 if report.ok else 5)
