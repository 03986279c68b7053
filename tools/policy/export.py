"""Write a policy as a Hugging Face folder that plain transformers loads offline.

Everything but the weights is the base folder's own file, so that tokenizer and suppress lists cannot drift;
`provenance.json` says what the weights are: base and its digest, step, licence, and the sha256 of every file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from tools.embedded.snapshot import MARKER
from tools.errors import UsageError
from tools.files import file_sha256
from tools.policy.weights import plain_state

COPIED = (
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "normalizer.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
PROVENANCE = "provenance.json"


def base_provenance(folder: Path, digest: str) -> dict[str, Any]:
    """What is known of the base: name, source, licence and origin from its marker where it carries one."""
    known: dict[str, Any] = {"name": folder.name, "digest": digest, "licence": _card_licence(folder)}
    for name in (MARKER, PROVENANCE):
        if (folder / name).is_file():
            fields = json.loads((folder / name).read_text(encoding="utf-8"))
            fields = {**fields.get("base", {}), **fields}
            known |= {k: fields[k] for k in ("name", "source", "source_sha256", "licence", "origin") if k in fields}
    return known


def _card_licence(folder: Path) -> str:
    """The licence in the front matter of the folder's model card, or "not stated"."""
    card = folder / "README.md"
    found = re.search(r"^license:\s*(\S+)", card.read_text("utf-8", "replace"), re.M) if card.is_file() else None
    return found[1] if found else "not stated"


def write_export(policy: Any, folder: Path, provenance: dict[str, Any]) -> Path:
    """Export a Whisper to `folder`, whole or not at all. Frozen tensors keep their float32 bytes."""
    return write_folder(policy, folder, provenance, _write_files)


def write_folder(
    policy: Any, folder: Path, provenance: dict[str, Any], write_files: Callable[[Any, Path], None]
) -> Path:
    """What `write_files(policy, work)` writes, with its provenance, renamed to `folder` when it is complete."""
    if folder.exists() and not (folder / PROVENANCE).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there and is no earlier export: give an export a folder of its own")
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write_files(policy, work)
        files = {str(p.relative_to(work)): file_sha256(p) for p in sorted(work.rglob("*")) if p.is_file()}
        base = base_provenance(policy.folder, policy.base_digest)
        record = {"v": 1, "base": base, **provenance, "digest": policy.digest, "files": files}
        (work / PROVENANCE).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        work.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _write_files(policy: Any, work: Path) -> None:
    state = {name: tensor.contiguous().cpu() for name, tensor in plain_state(policy.model).items()}
    save_file(state, work / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((policy.folder / "config.json").read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)
    config["dtype"] = "float32"
    (work / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in COPIED:
        if (policy.folder / name).is_file():
            shutil.copyfile(policy.folder / name, work / name)
    if not (work / "generation_config.json").is_file():
        policy.model.generation_config.save_pretrained(work)
    if not (work / "preprocessor_config.json").is_file():
        policy.extractor.save_pretrained(work)
