"""Nemotron Transcribe through the trainer that the demo uses: a tiny random model of that architecture, real speech."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch

from tests.tools.policy.tiny_transcribe import tiny_transcribe
from tests.tools.train.toy import LOOSE
from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.decode.encoder_cache import EncoderCache, training_encode
from tools.decode.local import greedy
from tools.decode.offline import offline_check
from tools.policy.load import load_policy
from tools.policy.transcribe import TranscribePolicy
from tools.reward import make_reward
from tools.rows import Clip
from tools.text import profile
from tools.train.checkpoint import load_trained
from tools.train.config import GspoConfig, make_config
from tools.train.metrics import final_view
from tools.train.trainer import RunResult, train

pytestmark = [pytest.mark.speech, pytest.mark.usefixtures("one_thread")]

FROZEN = ("mixer.gate.", "mixer.experts.", "lm_head.", "word_timestamp_", "diarization_model.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_transcribe(tmp_path_factory.mktemp("tiny") / "transcribe")


@pytest.fixture(scope="module")
def clips(shared_speech: Path) -> list[Clip]:
    rows = read_manifest(shared_speech / "digits" / "manifest.jsonl").rows[:8]
    return [Clip(c.id, c.audio, c.text, lang=c.lang, audio_sha256=clip_digest(read_clip(c))) for c in rows]


def settings(**more: Any) -> GspoConfig:
    base = {"updates": 20, "groups": 8, "answers": 8, "offer_factor": 1, "answer_limit": 10, "checkpoint_every": 10}
    base |= {"surface": "all", "lr": 1e-3, "temperature": 1.0, "truncated": "keep", "kl_every": 5, "chunk_clips": 4}
    return make_config({**base, **LOOSE, **more})


def run(
    folder: Path, clips: list[Clip], out: Path, config: GspoConfig, **more: Any
) -> tuple[RunResult, TranscribePolicy]:
    policy = load_policy(folder)
    assert isinstance(policy, TranscribePolicy)
    encode = training_encode(policy, EncoderCache(load_policy(folder), out.parent / "cache"))
    reward = make_reward("cer", profile("english"))
    return train(policy, clips, encode, reward, config, out, prompts=lambda c: policy.prompt_ids(), **more), policy


def test_twenty_updates_raise_the_reward_and_leave_what_is_frozen(
    folder: Path, clips: list[Clip], tmp_path: Path
) -> None:
    result, policy = run(folder, clips, tmp_path / "r", settings())
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    rewards = [row["offered_reward"] for row in rows]
    assert (result.reason, result.updates) == ("finished", 20)
    assert fmean(rewards[-5:]) > fmean(rewards[:5]) + 0.2, rewards
    assert result.gspo_claimed
    assert all(row["logprob_gap"] < 1e-3 for row in rows)
    assert rows[0]["logprob_gap"] < 1e-5
    before, after = TranscribePolicy.load(folder).model.state_dict(), policy.model.state_dict()
    frozen = [name for name in before if any(part in name for part in FROZEN)]
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    assert {part for part in FROZEN if any(part in name for name in frozen)} == set(FROZEN)
    surface = {name for name, _ in policy.trainable("all")}
    assert {name for name in before if not torch.equal(before[name], after[name])} == surface

    with torch.no_grad():
        encoded = policy.encode([read_clip(c) for c in clips])
    ours = [a.text for a in greedy(policy, encoded, [policy.prompt_ids()] * 8, 10, [c.id for c in clips])]
    assert offline_check(policy.export(tmp_path / "export", {}), clips, "", 10) == ours


@pytest.mark.parametrize("more", [{}, {"surface": "decoder"}, {"surface": "decoder", "adapter": "lora"}])
def test_resumed_to_the_bit(folder: Path, clips: list[Clip], tmp_path: Path, more: dict[str, Any]) -> None:
    config = settings(updates=4, checkpoint_every=2, answers=4, groups=4, **more)
    plain, policy = run(folder, clips, tmp_path / "plain", config)

    def crash(event: dict[str, Any]) -> None:
        if event["event"] == "update" and event["update"] == 3:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        run(folder, clips, tmp_path / "r", config, on_event=crash)
    again, _ = run(folder, clips, tmp_path / "r", config)
    assert again.trained_sha256 == plain.trained_sha256
    assert [c["digest"] for c in again.checkpoints] == [c["digest"] for c in plain.checkpoints]
    fresh = load_policy(folder)
    load_trained(fresh, tmp_path / "plain" / plain.checkpoints[-1]["folder"])
    assert fresh.digest == policy.digest


def test_supervised_training_goes_the_same_way(folder: Path, clips: list[Clip], tmp_path: Path) -> None:
    policy = load_policy(folder)
    run(folder, clips, tmp_path / "r", settings(method="sft"), targets=lambda c: policy.answer_tokens(c.text or ""))
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    assert rows[-1]["loss"] < rows[0]["loss"] / 2
