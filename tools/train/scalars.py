"""The figures of a run as TensorBoard scalars."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Scalars:
    """Writes every numeric figure of an update under `train/<name>`; a resumed attempt hides the updates it repeats."""

    def __init__(self, folder: Path, done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=done + 1 if done else None)

    def add(self, line: dict[str, Any]) -> None:
        for name, value in line.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and name not in ("update", "attempt"):
                self.writer.add_scalar(f"train/{name}", value, line["update"])

    def close(self) -> None:
        self.writer.close()
