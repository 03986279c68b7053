"""Checkpoints of a run: whole or not there, checked by size and digest, resumable to the bit.

    checkpoints/u0010/
        trainable.safetensors    the trained tensors by the plain model's names; of an adapter, what its layers amount to
    adapter.safetensors      the adapter's own tensors, where one trains
        optimiser.safetensors    AdamW's moments and torch's random state (removed from older checkpoints to save disk)
        state.json               update, data position, counters
        COMPLETE                 sizes and sha256 of the files above; written last

A checkpoint is written to `.tmp-u0010`, flushed to disk, and renamed. A folder without a COMPLETE marker that fits is
never read: resume takes the last that does and says why the others were skipped (F51).
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.errors import CheckError
from tools.files import file_sha256

if TYPE_CHECKING:
    from torch import Tensor

MARKER = "COMPLETE"
WEIGHTS, OPTIMISER, STATE = "trainable.safetensors", "optimiser.safetensors", "state.json"
ADAPTER = "adapter.safetensors"
TEMPORARY, ASIDE = ".tmp-", "aside-"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint. `digest` is the policy's digest at that update; `candidate` says it is one to select from.

    `resumable` is False once its optimiser state was removed to save disk.
    """

    folder: Path
    update: int
    digest: str
    candidate: bool
    resumable: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Complete checkpoints in order of update, and why every other folder was skipped."""

    complete: tuple[Checkpoint, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def resumable(self) -> Checkpoint | None:
        return next((c for c in reversed(self.complete) if c.resumable), None)


def folder_name(update: int) -> str:
    return f"u{update:04d}"


def write_checkpoint(
    root: Path,
    update: int,
    *,
    weights: Mapping[str, Tensor],
    optimiser: Mapping[str, Tensor],
    state: Mapping[str, Any],
    digest: str,
    candidate: bool = True,
    adapter: Mapping[str, Tensor] | None = None,
) -> Checkpoint:
    """Write `root/u<update>` atomically and return it. Raises CheckError on a full disk; older ones stay whole."""
    final, work = root / folder_name(update), root / f"{TEMPORARY}{folder_name(update)}"
    tensors = {WEIGHTS: weights, OPTIMISER: optimiser} | ({ADAPTER: adapter} if adapter else {})
    need = sum(t.numel() * t.element_size() for named in tensors.values() for t in named.values()) + 65536
    try:
        root.mkdir(parents=True, exist_ok=True)
        remove_temporary(root)
        check_free(root, need, f"checkpoint {final.name}")
        work.mkdir()
        _write_files(work, tensors, state)
        marker = {"v": 1, "update": update, "digest": digest, "candidate": candidate, "files": _inventory(work)}
        _write_text(work / MARKER, json.dumps(marker, indent=1, sort_keys=True) + "\n")
        _sync_folder(work)
        if final.exists():
            shutil.rmtree(final)
        os.replace(work, final)
        _sync_folder(root)
    except OSError as error:
        shutil.rmtree(work, ignore_errors=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full_disk(root, need, f"checkpoint {final.name}") from error
        raise CheckError(f"checkpoint {final.name} cannot be written in {root}: {error.strerror}") from error
    return Checkpoint(final, update, digest, candidate, True)


def _write_files(work: Path, files: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
    from safetensors.torch import save

    for name, tensors in files.items():
        plain = {k: t.detach().cpu().contiguous() for k, t in tensors.items()}
        _write_bytes(work / name, save(plain))
    _write_text(work / STATE, json.dumps(dict(state), sort_keys=True) + "\n")


def _inventory(work: Path) -> dict[str, Any]:
    return {p.name: {"size": p.stat().st_size, "sha256": file_sha256(p)} for p in sorted(work.iterdir())}


def find_checkpoints(root: Path) -> Found:
    """Every complete checkpoint under `root`, and by folder name why another was skipped. Nothing is changed."""
    complete: list[Checkpoint] = []
    skipped: dict[str, str] = {}
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if not folder.is_dir() or folder.name.startswith(ASIDE):
            continue
        if folder.name.startswith(TEMPORARY):
            skipped[folder.name] = "it was being written when the run stopped"
            continue
        why, marker = _check(folder)
        if why:
            skipped[folder.name] = why
        else:
            complete.append(
                Checkpoint(
                    folder, marker["update"], marker["digest"], marker["candidate"], OPTIMISER in marker["files"]
                )
            )
    return Found(tuple(sorted(complete, key=lambda c: c.update)), skipped)


def _check(folder: Path) -> tuple[str, dict[str, Any]]:
    """("", marker) for a complete checkpoint, else (why it is not, {})."""
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        files, name = marker["files"], folder_name(marker["update"])
        known = {"digest", "candidate"} <= marker.keys() and all({"size", "sha256"} <= f.keys() for f in files.values())
        if not known:
            raise ValueError("no marker of ours")
    except FileNotFoundError:
        return f"it has no {MARKER} marker", {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"its {MARKER} marker cannot be read", {}
    if name != folder.name or WEIGHTS not in files or STATE not in files:
        return f"its {MARKER} marker belongs to {name}" if name != folder.name else "its marker lists no weights", {}
    for file, facts in files.items():
        path = folder / file
        if not path.is_file():
            return f"{file} is missing", {}
        if path.stat().st_size != facts["size"]:
            return f"{file} has {path.stat().st_size} bytes where {facts['size']} were written", {}
        if file_sha256(path) != facts["sha256"]:
            return f"{file} does not have the sha256 it was written with", {}
    return "", marker


def read_state(checkpoint: Checkpoint) -> dict[str, Any]:
    return json.loads((checkpoint.folder / STATE).read_text(encoding="utf-8"))


def read_weights(checkpoint: Checkpoint) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return load_file(checkpoint.folder / WEIGHTS)


def read_trained(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The tensors that trained, by the names they train under: an adapter's own where there is one."""
    from safetensors.torch import load_file

    adapter = checkpoint.folder / ADAPTER
    return load_file(adapter) if adapter.is_file() else read_weights(checkpoint)


def read_optimiser(checkpoint: Checkpoint) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return load_file(checkpoint.folder / OPTIMISER)


def load_trained(policy: Any, checkpoint: Checkpoint | Path) -> Checkpoint:
    """Put a checkpoint's tensors into `policy` (the seed model's), in place. Raises CheckError unless all fit.

    For evaluation and export: afterwards `policy.digest` is the checkpoint's digest, which is checked.
    """
    import torch

    if isinstance(checkpoint, Path):
        why, marker = _check(checkpoint)
        if why:
            raise CheckError(f"checkpoint {checkpoint} cannot be used: {why}")
        checkpoint = Checkpoint(checkpoint, marker["update"], marker["digest"], marker["candidate"], False)
    tensors = read_weights(checkpoint)
    own = dict(policy.trainable(sorted(tensors)))
    with torch.no_grad():
        for name, tensor in tensors.items():
            if own[name].shape != tensor.shape:
                raise CheckError(f"checkpoint {checkpoint.folder} holds {name} in another shape than the model")
            own[name].copy_(tensor)
    if checkpoint.digest and policy.digest != checkpoint.digest:
        raise CheckError(f"checkpoint {checkpoint.folder} on this model gives another digest than it was written with")
    return checkpoint


def make_light(root: Path, keep: int) -> None:
    """Take the optimiser state from all but the newest `keep` checkpoints; drop older ones nobody selects from."""
    resumable = [c for c in find_markers(root) if c.resumable]
    for old in resumable[: max(0, len(resumable) - keep)]:
        if not old.candidate:
            shutil.rmtree(old.folder)
            continue
        marker = json.loads((old.folder / MARKER).read_text(encoding="utf-8"))
        del marker["files"][OPTIMISER]
        part = old.folder / f"{MARKER}.tmp"
        _write_text(part, json.dumps(marker, indent=1, sort_keys=True) + "\n")
        os.replace(part, old.folder / MARKER)
        (old.folder / OPTIMISER).unlink()
        _sync_folder(old.folder)


def find_markers(root: Path) -> list[Checkpoint]:
    """Checkpoints by their markers alone, without hashing their files; in order of update."""
    out = []
    for folder in root.glob("u*"):
        if (folder / MARKER).is_file():
            m = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            out.append(Checkpoint(folder, m["update"], m["digest"], m["candidate"], OPTIMISER in m["files"]))
    return sorted(out, key=lambda c: c.update)


def remove_temporary(root: Path) -> None:
    for folder in root.glob(f"{TEMPORARY}*"):
        shutil.rmtree(folder, ignore_errors=True)


def set_aside(root: Path, names: Sequence[str]) -> None:
    """Rename folders that are no checkpoints so that a repeated update can take their place; nothing is thrown away."""
    for name in names:
        if name.startswith(TEMPORARY):
            shutil.rmtree(root / name, ignore_errors=True)
            continue
        n = 1
        while (target := root / f"{ASIDE}{n}-{name}").exists():
            n += 1
        os.replace(root / name, target)


def check_free(folder: Path, need: int, what: str) -> None:
    """Raise CheckError where `folder` has less than `need` bytes free."""
    if shutil.disk_usage(folder).free < need:
        raise full_disk(folder, need, what)


def full_disk(folder: Path, need: int, what: str) -> CheckError:
    """What to raise where the disk is full: what was to be written, the bytes it needs, and those that are free."""
    free = shutil.disk_usage(folder).free
    return CheckError(
        f"{what} needs {need:,} bytes in {folder} and {free:,} are free: make room and run again, nothing is lost"
    )


def _write_bytes(path: Path, body: bytes) -> None:
    with path.open("wb") as handle:
        handle.write(body)
        handle.flush()
        os.fsync(handle.fileno())


def _write_text(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
