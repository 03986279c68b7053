"""What is frozen before sampling, and its digest: prompt, normaliser, scoring, decoding, reward, selection, references.

Every evaluation after the freeze carries the digest; `explain` says which line of two contracts differs, so that
figures made under different contracts are never compared by accident.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent.disk import write_atomic
from agent.ledger.chain import canonical, digest
from agent.ledger.records import plain
from agent.redact import redact
from tools.errors import CheckError, UsageError

VERSION = 1
CONTRACT = "contract.json"
KEYS: dict[str, tuple[str, ...]] = {
    "seed_model": ("path_name", "digest"),
    "prompt": ("text", "ids"),
    "profile": ("name", "version", "digest"),
    "scoring": ("metric", "unit", "scorer", "version"),
    "decoding": ("kind", "temperature", "limit"),
    "sampling": ("temperature", "n"),
    "reward": ("name", "digest"),
    "selection": ("rule", "metric", "split", "retention_limit"),
    "references": (),
    "membership_sha256": (),
    "languages": (),
    "random_seed": (),
}
SELECTION_RULE = "lowest dev metric with retention within limit; ties: earlier; seed included"
CLASSES_RULE = "lowest dev metric with retention and protected classes within limit; ties: earlier; seed included"


def build_contract(**parts: Any) -> dict[str, Any]:
    """The contract from its parts (keys of house §3; parts may hold more). Raises UsageError naming a missing part."""
    contract = {"v": VERSION, **plain(parts, "contract")}
    for key, inner in KEYS.items():
        if contract.get(key) is None:
            raise UsageError(f"a contract needs {key}")
        for name in inner:
            if name not in contract[key]:
                raise UsageError(f"a contract needs {key}.{name}")
    if redact(contract) != contract:
        raise UsageError("the contract holds what looks like a secret (a token in the prompt?): take it out")
    json.loads(canonical(contract))
    return contract


def contract_digest(contract: Mapping[str, Any]) -> str:
    """sha256 (hex) over the RFC 8785 bytes of the contract."""
    return digest(dict(contract))


def references_digest(pairs: Iterable[tuple[str, str]]) -> str:
    """sha256 over all (row id, reference text) of a split, in the order of the ids; texts exactly as they are."""
    sha = hashlib.sha256()
    for row, text in sorted(pairs):
        sha.update(canonical([row, text]) + b"\n")
    return sha.hexdigest()


def write_contract(workdir: Path, contract: Mapping[str, Any]) -> str:
    """Write contract.json (readable, sorted) and return its digest; a different one already there is CheckError."""
    path = workdir / CONTRACT
    if path.exists():
        changes = explain(read_contract(workdir), contract)
        if changes:
            raise CheckError(
                f"{path} is already frozen and differs: {'; '.join(changes[:3])}; start a new work directory"
            )
    write_atomic(path, json.dumps(contract, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return contract_digest(contract)


def read_contract(workdir: Path) -> dict[str, Any]:
    """The contract of a work directory. Raises CheckError where it is missing or not JSON."""
    path = workdir / CONTRACT
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as err:
        raise CheckError(
            f"{path} cannot be read: {err.strerror}; restore it from the work directory's git history"
        ) from err
    except ValueError as err:
        raise CheckError(f"{path} is not JSON: restore it from the work directory's git history") from err
    if not isinstance(value, dict):
        raise CheckError(f"{path} is not a contract: restore it from the work directory's git history")
    return value


def explain(before: Any, after: Any, where: str = "") -> list[str]:
    """Every difference of two contracts as `key: old -> new`, in the order of the keys; empty when they agree."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        out: list[str] = []
        for key in sorted({*before, *after}):
            inner = f"{where}.{key}" if where else str(key)
            out += explain(before.get(key), after.get(key), inner)
        return out
    if canonical(plain(before)) == canonical(plain(after)):
        return []
    return [f"{where}: {_short(before)} -> {_short(after)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
