"""Weights on disk: checkpoints as recorded, frozen tensors unmoved, trained ones moved; absent weights are named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.ledger.evidence import Evidence, Finding, NotChecked, Violation

MARKER, TRAINED = "COMPLETE", "trainable.safetensors"
FROZEN_ALWAYS = "embed_positions"


def checkpoints(e: Evidence) -> Iterator[Finding]:
    """Each checkpoint on record that is on disk has its digest, and files of the sizes and digests in its marker."""
    absent = 0
    for end in e.of("run_end"):
        run = end.payload["run_id"]
        if end is not next(r for r in reversed(e.of("run_end")) if r.payload["run_id"] == run):
            continue
        for point in end.payload["checkpoints"]:
            name = f"runs/{run}/checkpoints/u{point['update']:04d}"
            if not e.path(name).is_dir():
                absent += 1
                continue
            yield from _marker(e, name, point["digest"], end.seq)
    if absent:
        yield NotChecked(f"{absent} checkpoint(s) on record are not on this disk")


def _marker(e: Evidence, name: str, digest: str, seq: int) -> Iterator[Finding]:
    marker = e.json(f"{name}/{MARKER}")
    if not isinstance(marker, dict):
        yield Violation(f"{name} has no readable {MARKER}", (seq,), ((f"{name}/{MARKER}", None),))
        return
    if marker.get("digest") != digest:
        yield Violation(f"{name} is another checkpoint than the one on record", (seq,), ((f"{name}/{MARKER}", None),))
    for file, facts in (marker.get("files") or {}).items():
        found = e.sha256(f"{name}/{file}")
        if found != facts["sha256"]:
            how = "missing" if found is None else "not as it was written"
            yield Violation(f"{name}/{file} is {how}", (seq,), ((f"{name}/{file}", None),))


def surface(e: Evidence) -> Iterator[Finding]:
    """Byte comparison of the export (else of the trained tensors) with the seed model, where both are on disk."""
    for record in e.of("register"):
        run = record.payload["run_id"]
        config = record.payload["details"].get("config") or (e.json(f"runs/{run}/config.json") or {}).get("config")
        end = next((r for r in reversed(e.of("run_end")) if r.payload["run_id"] == run), None)
        if not isinstance(config, dict) or "surface" not in config or end is None or not end.payload["checkpoints"]:
            continue
        seed = _seed_weights(e)
        if seed is None:
            yield NotChecked(f"the seed model is not on this disk: what {run} moved was not compared")
            continue
        yield from _compared(e, run, config, seed, record.seq)


def _compared(e: Evidence, run: str, config: dict[str, Any], seed: Path, seq: int) -> Iterator[Finding]:
    before = tensor_digests(seed)
    export = e.path(f"runs/{run}/export/model.safetensors")
    newest = sorted(e.path(f"runs/{run}/checkpoints").glob(f"u*/{TRAINED}"))
    whole = export.is_file()
    if not whole and not newest:
        yield NotChecked(f"no weights of {run} are on this disk: what it moved was not compared")
        return
    path = export if whole else newest[-1]
    name = path.relative_to(e.workdir).as_posix()
    after = tensor_digests(path)
    moved = {t for t, sha in after.items() if before.get(t) != sha}
    for tensor in sorted(moved)[:5]:
        if not _trains(tensor, config):
            yield Violation(f"{tensor} is outside the training surface and moved in {run}", (seq,), ((name, None),))
    due = {t for t in before if _trains(t, config)}
    if due and not moved & due and _learned(e, run):
        yield Violation(f"no tensor of the training surface moved in {run}", (seq,), ((name, None),))
    elif due and whole and len(moved & due) < len(due) / 2 and _learned(e, run):
        still = len(due) - len(moved & due)
        yield Violation(f"{still} of {len(due)} trainable tensors did not move in {run}", (seq,), ((name, None),))


def _learned(e: Evidence, run: str) -> bool:
    """Whether the metrics tell of a step with a gradient."""
    return any((line.get("grad_norm") or 0) > 0 for line in e.jsonl(f"runs/{run}/metrics.jsonl") or [])


def _trains(name: str, config: dict[str, Any]) -> bool:
    """The surface of the settings over Hugging Face names; the output head is tied to a tensor of the decoder."""
    chosen = config["surface"]
    if isinstance(chosen, str):
        inside = {
            "decoder": name.startswith(("model.decoder.", "proj_out.")),
            "decoder-layers": name.startswith(("model.decoder.layers.", "model.decoder.layer_norm.")),
            "all": True,
        }.get(chosen, True)
    else:
        inside = name in chosen
    frozen = [FROZEN_ALWAYS, *(config.get("freeze") or [])]
    return inside and not any(part in name for part in frozen)


def tensor_digests(path: Path) -> dict[str, str]:
    """name -> sha256 of dtype, shape and bytes of every tensor of a safetensors file, read without a framework."""
    with path.open("rb") as handle:
        size = int.from_bytes(handle.read(8), "little")
        header = json.loads(handle.read(size))
        out = {}
        for name, facts in header.items():
            if name == "__metadata__":
                continue
            begin, end = facts["data_offsets"]
            handle.seek(8 + size + begin)
            sha = hashlib.sha256(f"{facts['dtype']} {facts['shape']}".encode())
            sha.update(handle.read(end - begin))
            out[name] = sha.hexdigest()
    return out


def _seed_weights(e: Evidence) -> Path | None:
    """The seed model's weights where they are on this disk; nothing is fetched."""
    if e.contract is None:
        return None
    named = str(e.contract["seed_model"]["path_name"])
    if named == "embedded":
        from tools.embedded.seed import WHEEL_SHA256, cache_folder

        folder = cache_folder() / "models" / f"whisper-tiny.en-{WHEEL_SHA256['model.bin'][:12]}"
    else:
        folder = Path(named).expanduser()
    path = folder / "model.safetensors"
    return path if path.is_file() else None
