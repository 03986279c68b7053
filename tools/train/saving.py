"""Checkpoints of a run as the trainer uses them: save, go back, resume, room on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.errors import CheckError
from tools.train import checkpoint as disk
from tools.train.config import GspoConfig
from tools.train.learner import Learner
from tools.train.order import Position


@dataclass(frozen=True)
class Progress:
    """Where a run stands: the last complete update, the next clip, how often each clip was presented.

    `flat` counts the updates without any contrast up to here.
    """

    update: int = 0
    position: Position = field(default_factory=Position)
    presented: dict[str, int] = field(default_factory=dict)
    flat: int = 0

    def after(self, position: Position, retained: list[str]) -> Progress:
        """One update on: `retained` are the ids of the clips it trained on."""
        presented = dict(self.presented)
        for i in retained:
            presented[i] = presented.get(i, 0) + 1
        return Progress(self.update + 1, position, presented, 0 if retained else self.flat + 1)


class Saver:
    """Writes and reads the checkpoints under `root` for one learner."""

    def __init__(self, root: Path, policy: Any, learner: Learner, config: GspoConfig) -> None:
        self.root, self.policy, self.learner, self.config = root, policy, learner, config
        self.threads: int | None = None  # those that the checkpoint resumed from was computed with

    def save(self, progress: Progress, candidate: bool = True) -> disk.Checkpoint:
        """Write a checkpoint and take the optimiser state from old ones. Raises CheckError on a full disk."""
        import torch

        state = {
            "update": progress.update,
            "position": progress.position.to_json(),
            "presented": progress.presented,
            "flat": progress.flat,
            "threads": torch.get_num_threads(),
        }
        done = disk.write_checkpoint(
            self.root,
            progress.update,
            weights=self.learner.plain_weights(),
            adapter=self.learner.weights() if self.learner.adapted else None,
            optimiser={**self.learner.optimiser_state(), "rng:torch": torch.get_rng_state()},
            state=state,
            digest=self.policy.digest,
            candidate=candidate,
        )
        disk.make_light(self.root, self.config.keep_resumable)
        return done

    def has(self, update: int, candidate: bool = False) -> bool:
        """Whether there is a checkpoint of this update (one to select from, if `candidate`)."""
        return any(c.update == update and (c.candidate or not candidate) for c in disk.find_markers(self.root))

    def candidates(self, run_dir: Path) -> list[dict[str, Any]]:
        """`[{update, digest, folder}]` of the checkpoints to select from, folders relative to `run_dir`."""
        return [
            {"update": c.update, "digest": c.digest, "folder": str(c.folder.relative_to(run_dir))}
            for c in disk.find_markers(self.root)
            if c.candidate
        ]

    def resume(self, found: disk.Found) -> tuple[Progress, bool]:
        """Go back to the newest resumable checkpoint of `found` (or the seed model) and clear the way after it.

        Returns the progress there, and whether it is a checkpoint to select from. What is no whole checkpoint, or lies
        after the one resumed from, is set aside.
        """
        disk.set_aside(self.root, list(found.skipped))
        start, progress = found.resumable, Progress()
        if start is not None:
            progress = self._restore(start)
        disk.set_aside(self.root, [c.folder.name for c in found.complete if c.update > progress.update])
        return progress, start is not None and start.candidate

    def _restore(self, start: disk.Checkpoint) -> Progress:
        import torch

        state, optimiser = disk.read_state(start), disk.read_optimiser(start)
        self.threads = state.get("threads")
        torch.set_rng_state(optimiser.pop("rng:torch"))
        self.learner.restore(disk.read_trained(start), optimiser)
        if self.policy.digest != start.digest:
            raise CheckError(f"checkpoint {start.folder} gives another model than the one it was written from")
        return Progress(state["update"], Position(**state["position"]), dict(state["presented"]), state["flat"])

    def roll_back(self, suspect: int | None = None) -> int:
        """The weights of the last whole candidate, or the seed model's; returns its update, 0 for the seed.

        `suspect` is an update whose weights are known not to be good.
        """
        good = [c for c in disk.find_checkpoints(self.root).complete if c.candidate and c.update != suspect]
        if good:
            self.learner.restore(disk.read_trained(good[-1]), None)
            return good[-1].update
        self.learner.to_start()
        return 0

    def _merged(self) -> int:
        """Bytes that an adapter's merged weights take beside it."""
        learner = self.learner
        return sum(t.numel() * t.element_size() for t in learner.plain_weights().values()) if learner.adapted else 0

    def check_disk(self, update: int) -> None:
        """Room for what is to come: light checkpoints, and full ones for those kept resumable and one in writing."""
        c = self.config
        weights = sum(p.numel() * p.element_size() for p in self.learner.named.values())
        left = -(-(c.updates - update) // c.checkpoint_every)
        need = (weights + self._merged()) * left + 2 * weights * min(left, c.keep_resumable + 1) + 2**20
        disk.check_free(self.root.parent, need, f"run {self.root.parent.name}")
