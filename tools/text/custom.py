"""A customer's own normaliser as a profile, so that the numbers match their dashboard.

A command reads one text a line on standard input and writes one normalised text a line, in the same order. A Python
callable takes `(text)` or `(text, lang)` and returns the text. Its digest covers the program's own bytes and what it
does to the probe texts; both must stay the same for scores to be compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tools.errors import UsageError
from tools.text.probes import PROBES
from tools.text.profile import Profile, Rule

TIMEOUT_S = 600
_CACHE = 200_000


class Command:
    """Runs the customer's program over batches of texts and remembers the answers."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.known: dict[str, str] = {}

    def prime(self, texts: Iterable[str]) -> None:
        """Normalise many texts in one run of the program."""
        every = list(dict.fromkeys(map(_one_line, texts)))
        wanted = [text for text in every if text not in self.known]
        if not wanted:
            return
        if len(self.known) + len(wanted) > _CACHE:
            self.known.clear()
            wanted = every
        self.known.update(zip(wanted, self._run(wanted)))

    def __call__(self, text: str, lang: str | None = None) -> str:
        key = _one_line(text)
        if key not in self.known:
            self.prime([key])
        return _one_line(self.known[key])

    def _run(self, texts: list[str]) -> list[str]:
        name = shlex.join(self.argv)
        try:
            done = subprocess.run(
                self.argv, input="\n".join(texts) + "\n", capture_output=True, encoding="utf-8", timeout=TIMEOUT_S
            )
        except (OSError, UnicodeError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"The normaliser `{name}` could not be run ({error}): check the command.") from error
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1:] or ["no message"]
            raise UsageError(f"The normaliser `{name}` ended with code {done.returncode} ({why[0]}).")
        out = done.stdout.removesuffix("\n").split("\n") if done.stdout else []
        if len(out) != len(texts):
            raise UsageError(f"The normaliser `{name}` gave {len(out)} lines for {len(texts)} texts: one each is due.")
        return [line.rstrip("\r") for line in out]


def split_command(command: str) -> list[str]:
    """The words of a command line, as a shell would cut them. Raises UsageError for a quote that never ends."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(f"The command `{command}` cannot be read ({error}): correct its quotes.") from error


def _one_line(text: str) -> str:
    return " ".join(text.split())


def from_command(spec: str) -> Profile:
    """The profile of `command: PROGRAM ARGUMENTS` (no shell). Raises UsageError where it cannot be run."""
    argv = split_command(spec.removeprefix("command:"))
    if not argv:
        raise UsageError("The profile 'command:' names no program: write `command: PROGRAM ARGUMENTS`.")
    command = Command(argv)
    command.prime([text for text, _ in PROBES])
    # again in another order: what it says of a text must not depend on the texts around it
    _must_repeat(lambda: Command(argv)._run([*command.known][::-1])[::-1], list(command.known.values()), spec)
    files = [Path(part) for part in argv if Path(part).is_file()]
    program = hashlib.sha256(b"\0".join([part.encode() for part in argv] + [f.read_bytes() for f in files])).hexdigest()
    return _profile(spec, command, program)


def from_callable(spec: str) -> Profile:
    """The profile of `module:function` or `path/to/file.py:function`. Raises UsageError where it cannot be used."""
    where, _, name = spec.rpartition(":")
    function = getattr(_module(where, spec), name, None)
    if not callable(function):
        raise UsageError(f"The normaliser {spec!r} names no function {name!r} in {where!r}: correct the name.")
    try:
        source = Path(inspect.getsourcefile(function) or "").read_bytes()
    except (TypeError, OSError):
        source = b""
    takes_lang = _takes_lang(function)

    def apply(text: str, lang: str | None = None) -> str:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                out = function(text, lang) if takes_lang else function(text)
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
            raise UsageError(f"The normaliser {spec!r} failed on a text of {len(text)} characters ({why}).") from error
        if not isinstance(out, str):
            raise UsageError(f"The normaliser {spec!r} returned {type(out).__name__}: a text is due.")
        return _one_line(out)

    first = [apply(text, lang) for text, lang in PROBES]
    _must_repeat(lambda: [apply(text, lang) for text, lang in PROBES[::-1]][::-1], first, spec)
    return _profile(spec, apply, hashlib.sha256(source).hexdigest())


def _profile(spec: str, apply: Callable[[str, str | None], str], program: str) -> Profile:
    facts = json.dumps(["custom", program], ensure_ascii=True)
    return Profile(spec, "custom", (Rule("customer", apply, "the customer's normaliser"),), extra=facts)


def _must_repeat(again: Callable[[], list[str]], first: list[str], spec: str) -> None:
    if again() != first:
        raise UsageError(
            f"The normaliser {spec!r} gives another text the second time or in another order: make it one that depends on the text alone."
        )


def _takes_lang(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return len([p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]) >= 2


def _module(where: str, spec: str) -> Any:
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        found = importlib.util.spec_from_file_location(f"rehear_normaliser_{Path(where).stem}", where)
        if found is None or found.loader is None:
            raise ImportError(f"{where} is no Python file")
        module = importlib.util.module_from_spec(found)
        with contextlib.redirect_stdout(sys.stderr):
            found.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        raise UsageError(f"The normaliser {spec!r} cannot be imported ({error}): check its path.") from error
