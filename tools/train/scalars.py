"""The figures of a run elsewhere than in metrics.jsonl: TensorBoard always, Weights & Biases where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tools.errors import UsageError
from tools.train.config import GspoConfig

Line = dict[str, Any]


class Sink(Protocol):
    """Takes every update's line; closed once."""

    def add(self, line: Line) -> None: ...

    def close(self) -> None: ...


def numbers(line: Line) -> Iterator[tuple[str, float]]:
    """The numeric figures of an update by name, the update's own number and the attempt left out."""
    for name, value in line.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in ("update", "attempt"):
            yield name, value


class TensorBoard:
    """Scalars `train/<name>`; a resumed attempt hides the updates it repeats. A full disk costs curves, not the run."""

    def __init__(self, folder: Path, done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = None
        with suppress(OSError):
            self.writer = SummaryWriter(str(folder), purge_step=done + 1 if done else None)

    def add(self, line: Line) -> None:
        with suppress(OSError):
            if self.writer is None:
                return
            for name, value in numbers(line):
                self.writer.add_scalar(f"train/{name}", value, line["update"])

    def close(self) -> None:
        with suppress(OSError):
            if self.writer is not None:
                self.writer.close()


class Wandb:
    """One W&B run an attempt, in the run's folder, holding settings and figures: no audio, no texts, no source code.

    Raises UsageError where the package is not installed or the service refuses.
    """

    def __init__(self, run_dir: Path, config: GspoConfig, done: int) -> None:
        try:
            import wandb
        except ImportError as error:
            raise UsageError("Settings ask for W&B and it is not installed: pip install 'rehear[wandb]'.") from error
        (run_dir / "wandb").mkdir(parents=True, exist_ok=True)
        quiet = wandb.Settings(console="off", silent=True, save_code=False, disable_git=True, x_disable_stats=True)
        try:
            self.run = wandb.init(
                project="rehear",
                name=run_dir.name,
                group=run_dir.name,
                dir=str(run_dir),
                mode="offline" if config.wandb == "offline" else "online",
                config={**config.model_dump(mode="json"), "resumed_from": done},
                settings=quiet,
            )
        except wandb.Error as error:
            raise UsageError(
                f"W&B cannot be reached ({str(error).splitlines()[0][:200]}): use wandb: offline."
            ) from error

    def add(self, line: Line) -> None:
        self.run.log({f"train/{name}": value for name, value in numbers(line)}, step=line["update"])

    def close(self) -> None:
        self.run.finish()


class Several:
    """All sinks of a run."""

    def __init__(self, sinks: list[Sink]) -> None:
        self.sinks = sinks

    def add(self, line: Line) -> None:
        for sink in self.sinks:
            sink.add(line)

    def close(self) -> None:
        for sink in self.sinks:
            sink.close()


def open_scalars(run_dir: Path, config: GspoConfig, done: int) -> Sink:
    """TensorBoard under `run_dir/tensorboard`, and W&B under `run_dir/wandb` where the settings say so."""
    sinks: list[Sink] = [TensorBoard(run_dir / "tensorboard", done)]
    if config.wandb != "off":
        sinks.append(Wandb(run_dir, config, done))
    return Several(sinks)
