"""The folder of a run: whose it is, and how it ended."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.errors import CheckError, UsageError
from tools.rows import Clip
from tools.train.config import GspoConfig
from tools.train.rollout import Prompts, Reward


@dataclass(frozen=True)
class RunResult:
    """How a run ended. The policy then holds the weights of `last_good`.

    `reason`: "finished", "no_contrast" (nothing left to learn from), "trust_region", "non_finite"; `detail` says more.
    `checkpoints`: `[{update, digest, folder}]`, those to select from. `last_good`: the update whose weights the policy
    holds, 0 for the seed model. `gspo_claimed`: the method's ratio moved, so its clip could act at all.
    """

    run_id: str
    attempt: int
    reason: str
    detail: str
    updates: int
    last_good: int
    checkpoints: list[dict[str, Any]]
    method: str
    ratio_moved: bool
    gspo_claimed: bool
    distinct_clips: int
    presentations: int
    offered: int
    answers: int
    trained_sha256: str
    frozen_sha256: str
    seconds: float
    cpu_s: float
    diagnosis: list[str] = field(default_factory=list)
    metrics_sha256: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check_reward(reward: Reward) -> None:
    """The reward audit, before anything is sampled. Raises CheckError with the first break of the order it must give."""
    from tools.reward.audit import audit_reward
    from tools.reward.make import Reward as Named

    if not isinstance(reward, Named):
        return
    audit = audit_reward(reward)
    if not audit.ok:
        raise CheckError(
            f"the reward {reward.name!r} breaks the order it must give, so the run does not start: {audit.violations[0]}"
        )


def check_targets(
    policy: Any, pool: Sequence[Clip], targets: Callable[[Clip], tuple[int, ...]], prompts: Prompts
) -> None:
    """Every reference must be an answer that the model can give. Raises UsageError with a clip and how many are like it."""
    due = {c.id: targets(c) for c in pool}
    long = [c.id for c in pool if len(prompts(c)) + len(due[c.id]) > policy.max_target]
    if long:
        raise UsageError(
            f"{len(long)} of {len(pool)} references do not fit the model's {policy.max_target} tokens with their prompt, "
            f"{long[0]} among them: cut the clip, or leave it out"
        )
    for name, tokens in due.items():
        special, last = policy.vocabulary.special, len(tokens) - 1
        barred = [
            t
            for i, t in enumerate(tokens)
            if not policy.vocabulary.allowed(t, first=i == 0) or (t in special and i < last)
        ]
        if barred:
            what = f"holds {policy.text(barred[:1]) or 'a special token'!r}, which no answer holds"
            raise UsageError(f"the reference of clip {name} {what}: write it without, or leave the clip out")
        if not tokens or tokens[-1] != policy.vocabulary.stop:
            raise UsageError(
                f"the target of clip {name} does not end in the stop token: the model would not learn to end"
            )


def check_limit(policy: Any, pool: Sequence[Clip], config: GspoConfig, prompts: Prompts) -> None:
    """Prompt and answer must fit the model (F32). Raises UsageError naming the clip with the longest prompt."""
    longest, name = max((len(prompts(clip)), clip.id) for clip in pool)
    if longest + config.answer_limit > policy.max_target:
        raise UsageError(
            f"the prompt of clip {name} has {longest} tokens and answer_limit is {config.answer_limit}: the model has room "
            f"for {policy.max_target} together"
        )


def pool_digest(pool: Sequence[Clip]) -> str:
    """sha256 over id, audio identity, text and language of every clip, in order of id."""
    rows = sorted([c.id, c.audio_sha256, c.text, c.lang] for c in pool)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=True).encode()).hexdigest()


def check_pool(pool: Sequence[Clip], config: GspoConfig) -> None:
    if len(pool) < config.groups:
        raise UsageError(
            f"the training pool has {len(pool)} clips and an update needs {config.groups} groups: add clips, or lower "
            "groups"
        )
    if len({c.id for c in pool}) < len(pool):
        raise UsageError("a clip id comes twice in the training pool: ids must be unique")
    for clip in pool:
        if clip.text is None:
            raise UsageError(f"clip {clip.id} has no reference text: it cannot be rewarded")


def run_identity(
    policy: Any, pool: Sequence[Clip], reward: Reward, config: GspoConfig, prompts: Prompts
) -> dict[str, str]:
    """What makes two runs the same run, as digests."""
    ids = json.dumps(sorted([c.id, list(prompts(c))] for c in pool))
    return {
        "settings": config.digest,
        "training pool": pool_digest(pool),
        "seed model": policy.digest,
        "reward": str(getattr(reward, "digest", getattr(reward, "__name__", ""))),
        "prompts": hashlib.sha256(ids.encode()).hexdigest(),
    }


def claim_folder(run_dir: Path, config: GspoConfig, identity: Mapping[str, str]) -> None:
    """Write config.json for a new run; refuse a folder that is another run's (F46)."""
    path = run_dir / "config.json"
    if path.is_file():
        try:
            known = dict(json.loads(path.read_text(encoding="utf-8"))["identity"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckError(
                f"{path} cannot be read as a run's settings: it was changed by hand, restore it"
            ) from error
        other = [name for name in identity if known.get(name) != identity[name]]
        if other:
            raise UsageError(
                f"{run_dir} holds a run with another {' and another '.join(other)}: resume it with its own, or start a "
                "new run folder"
            )
        return
    body = {
        "v": 1,
        "config": config.model_dump(mode="json"),
        "config_sha256": config.digest,
        "identity": dict(identity),
        "exposure": config.exposure(),
    }
    part = path.with_suffix(".tmp")
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise UsageError(f"the run folder {run_dir} cannot be written: {error.strerror}") from error


@contextmanager
def lock_folder(run_dir: Path) -> Iterator[None]:
    """Keep other processes out of the run meanwhile; a kill leaves no lock behind.

    Raises UsageError where another process is training in it, which would mix both their metrics and checkpoints. A file
    system that cannot lock a folder goes without.
    """
    handle = os.open(run_dir, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another process is training in {run_dir}: wait for it, or stop it first") from error
        except OSError:
            pass
        yield
    finally:
        os.close(handle)
