"""Write a trained Nemotron Transcribe as a Hugging Face folder under the names and types of the folder it came from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tools.policy.export import write_folder
from tools.policy.transcribe_files import quiet
from tools.policy.weights import plain_state

OURS = ("model.safetensors", "model-", "config.json", "provenance.json", "README.md")


def write_transcribe(policy: Any, folder: Path, provenance: dict[str, Any]) -> Path:
    """Export whole or not at all. transformers saves the weights, so that checkpoint names are the family's own."""
    return write_folder(policy, folder, provenance, _write_files)


def _write_files(policy: Any, work: Path) -> None:
    config = json.loads((policy.folder / "config.json").read_text(encoding="utf-8"))
    stored = policy.stored_types
    state = {name: t.to(stored.get(name, t.dtype)).contiguous().cpu() for name, t in plain_state(policy.model).items()}
    with quiet():
        policy.model.save_pretrained(work, state_dict=state)
    (work / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for path in policy.folder.iterdir():
        if path.name.startswith(OURS) or (work / path.name).exists():
            continue
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, work / path.name)
