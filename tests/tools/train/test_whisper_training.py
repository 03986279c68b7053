"""The trainer on the real seed model and real speech: short, and resumable to the bit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tools.data.manifest import read_manifest
from tools.reward import make_reward
from tools.rows import Clip
from tools.text import profile
from tools.train.checkpoint import load_trained
from tools.train.config import make_config
from tools.train.metrics import final_view
from tools.train.trainer import RunResult, train

pytestmark = [pytest.mark.speech, pytest.mark.seed_model]

SETTINGS = {
    "updates": 2,
    "groups": 2,
    "answers": 4,
    "offer_factor": 3,
    "answer_limit": 12,
    "checkpoint_every": 1,
    "surface": "decoder-layers",
    "lr": 2e-5,
    "warmup_updates": 0,
    "kl_every": 2,
    "truncated": "keep",
}


class Crash(Exception):
    pass


def digits(shared_speech: Path) -> list[Clip]:
    rows = read_manifest(shared_speech / "digits" / "manifest.jsonl").rows
    speaker = sorted({c.speaker for c in rows if c.speaker})[0]
    return [c for c in rows if c.speaker == speaker][:6]


def run(seed_folder: Path, clips: list[Clip], folder: Path, **more: Any) -> tuple[RunResult, Any]:
    from tools.audio.read import read_clip
    from tools.policy.whisper import WhisperPolicy

    policy = WhisperPolicy.load(seed_folder)
    kept: dict[str, torch.Tensor] = {}

    def encode(batch: Sequence[Clip]) -> torch.Tensor:
        with torch.no_grad():
            for c in batch:
                if c.id not in kept:
                    kept[c.id] = policy.encode([read_clip(c)])[0]
        return torch.stack([kept[c.id] for c in batch])

    def prompt(clip: Clip) -> tuple[int, ...]:
        return policy.prompt_ids("", clip.lang, clip_id=clip.id)

    reward = make_reward("cer", profile("english"))
    return train(policy, clips, encode, reward, make_config(SETTINGS), folder, prompts=prompt, **more), policy


def test_whisper_trains_resumes_and_reloads(shared_speech: Path, seed_folder: Path, tmp_path: Path) -> None:
    clips = digits(shared_speech)
    plain, policy = run(seed_folder, clips, tmp_path / "plain")
    rows = final_view(tmp_path / "plain" / "metrics.jsonl")
    assert len(rows) == 2
    assert all(r["logprob_gap"] < 1e-3 for r in rows if r["steps"])
    assert any(r["steps"] for r in rows)
    assert plain.frozen_sha256

    def crash(event: dict[str, Any]) -> None:
        if event["event"] == "update" and event["update"] == 2:
            raise Crash

    with pytest.raises(Crash):
        run(seed_folder, clips, tmp_path / "killed", on_event=crash)
    resumed, _ = run(seed_folder, clips, tmp_path / "killed")
    assert resumed.trained_sha256 == plain.trained_sha256
    assert [c["digest"] for c in resumed.checkpoints] == [c["digest"] for c in plain.checkpoints]
    assert resumed.attempt == 2

    from tools.policy.whisper import WhisperPolicy

    fresh = WhisperPolicy.load(seed_folder)
    seed_digest = fresh.digest
    load_trained(fresh, tmp_path / "plain" / plain.checkpoints[-1]["folder"])
    assert fresh.digest == policy.digest != seed_digest
