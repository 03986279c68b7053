"""text -> score -> reward: arrows one way, and nothing but the standard library, regex, numpy and rapidfuzz (house.md §1).

These rooms also run inside NeMo-RL, whose environment has other versions of everything else.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import tools

ROOT = Path(tools.__file__).parent
LIBRARIES = {"regex", "numpy", "rapidfuzz"}
ROOMS = {"text": {"text"}, "score": {"text", "score"}, "reward": {"text", "score", "reward"}}
SHARED = {"errors", "rows"}
MODULES = [(room, path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """Names of the modules that a file imports, at any depth of the code."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize(("room", "path"), MODULES, ids=lambda v: v if isinstance(v, str) else v.stem)
def test_imports(room: str, path: Path) -> None:
    for name in imported(path):
        top, *rest = name.split(".")
        if top == "tools":
            assert rest[0] in ROOMS[room] | SHARED, f"{path} imports {name}"
        else:
            assert top in sys.stdlib_module_names | LIBRARIES, f"{path} imports {name}"
