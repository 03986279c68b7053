"""The agent's own share of a run's wall time, and the size of its checkpoint file: under 2 % and under 5 MB.

    python tests/bench/bench_agent.py [BRIEF] [--workdir DIR]      (default: the demo's brief)

A real run in this process; every call of the agent's own machinery (ledger, git, pages, checkpoints, gates, budget) is
timed by the outermost of them, so that nothing counts twice. What steps and tools do is not the agent's own.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPENT: Counter[str] = Counter()
CALLS: Counter[str] = Counter()
OPEN: list[str] = []


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, its seconds added up under `name` unless it is called from inside another timed one."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        if OPEN:
            return function(*args, **kwargs)
        OPEN.append(name)
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            SPENT[name] += time.perf_counter() - began
            CALLS[name] += 1
            OPEN.clear()

    return inner


def watch() -> None:
    """Puts a clock on the agent's machinery."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    from agent import act, gates
    from agent.budget import Budget
    from agent.history import History
    from agent.ledger.chain import Ledger
    from agent.session import Session

    for owner, names, what in (
        (Ledger, ("append", "records", "open"), "ledger"),
        (History, ("commit", "init"), "git"),
        (SqliteSaver, ("put", "put_writes", "get_tuple"), "checkpoints"),
        (Budget, ("reserve", "settle", "lines"), "budget"),
        (Session, ("missing", "assume_defaults", "_take"), "brief"),
    ):
        for name in names:
            found = owner.__dict__[name]
            plain = found.__func__ if isinstance(found, classmethod) else found
            made: Any = timed(what, plain)
            setattr(owner, name, classmethod(made) if isinstance(found, classmethod) else made)
    act.render_pages = timed("pages", act.render_pages)
    gates.GATES.update({name: timed("gates", gate) for name, gate in gates.GATES.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("brief", nargs="?", type=Path)
    parser.add_argument("--workdir", type=Path)
    args = parser.parse_args()
    watch()
    from agent.brief import Brief
    from agent.driver import run
    from tools.embedded.demo import demo_brief

    brief = Brief.load(args.brief or demo_brief(0))
    workdir = args.workdir or Path(tempfile.mkdtemp()) / "run"
    began = time.perf_counter()
    document = run(brief, workdir, emit=lambda event: None)
    wall = time.perf_counter() - began
    own = sum(SPENT.values())
    for name, seconds in SPENT.most_common():
        print(f"{name:<12} {seconds:8.2f} s  {CALLS[name]:6d} calls")
    size = sum(p.stat().st_size for p in (workdir / ".rehear").glob("graph.sqlite*"))
    print(f"ended as {document['termination_reason']} after {wall:.0f} s, {document['ledger']['records']} records")
    print(f"agent's own share: {own:.2f} s of {wall:.0f} s = {own / wall:.2%} (limit 2 %)")
    print(f"SQLite checkpoints: {size / 1e6:.2f} MB (limit 5 MB)")


if __name__ == "__main__":
    main()
