"""Every surface through the trainer on a tiny Whisper: what is asked for moves, all else stays byte-equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.tools.policy.tiny import noise, tiny_whisper
from tests.tools.train.toy import LOOSE
from tools.decode.encoder_cache import EncoderCache, training_encode
from tools.errors import CheckError, UsageError
from tools.policy.whisper import WhisperPolicy
from tools.rows import Clip
from tools.train.checkpoint import ADAPTER, load_trained
from tools.train.config import GspoConfig, make_config
from tools.train.metrics import final_view
from tools.train.trainer import RunResult, train
from tools.verbs.recogniser import Recogniser

LISTED = ("model.decoder.layers.0.fc1.weight", "model.decoder.layers.1.self_attn.q_proj.weight")
SURFACES: dict[str, dict[str, Any]] = {
    "decoder": {"surface": "decoder"},
    "decoder-layers": {"surface": "decoder-layers"},
    "all": {"surface": "all"},
    "listed": {"surface": LISTED, "surface_tensors": 2, "surface_scalars": 32 * 64 + 32 * 32},
    **{kind: {"surface": "decoder-layers", "adapter": kind} for kind in ("lora", "rslora", "dora", "rsdora")},
    "lora-encoder": {"surface": "all", "adapter": "lora", "adapter_layers": ["self_attn", "fc"]},
}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_whisper(tmp_path_factory.mktemp("tiny") / "english", multilingual=False)


def read(clip: Clip) -> np.ndarray:
    return noise(int(clip.id[1:]))


def pool() -> list[Clip]:
    from tools.audio.identity import clip_digest

    clips = [Clip(f"c{i}", Path("none.wav"), "e" * (i + 3)) for i in range(6)]
    return [Clip(c.id, c.audio, c.text, audio_sha256=clip_digest(read(c))) for c in clips]


def reward(hyp: str, ref: str, lang: str | None = None) -> float:
    """Letters that the reference asks for, less what is written too much: any random answer can be better or worse."""
    return min(sum(map(hyp.count, "aeiou")), 4) - abs(len(hyp) - 10) / 10


def settings(**more: Any) -> GspoConfig:
    base = {"updates": 3, "groups": 3, "answers": 4, "lr": 1e-3, "answer_limit": 10, "checkpoint_every": 2}
    more = {"truncated": "keep", "kl_every": 2, "adapter_rank": 4, **LOOSE, **base, **more}
    return make_config(more)


def run(folder: Path, out: Path, config: GspoConfig, **more: Any) -> tuple[RunResult, WhisperPolicy]:
    policy = WhisperPolicy.load(folder)
    cache = EncoderCache(WhisperPolicy.load(folder), out.parent / "cache", read=read)
    encode = training_encode(policy, cache)
    return train(policy, pool(), encode, reward, config, out, prompts=lambda c: policy.prompt_ids(), **more), policy


@pytest.mark.parametrize("name", SURFACES)
def test_what_is_asked_for_moves_and_all_else_stays_byte_equal(folder: Path, tmp_path: Path, name: str) -> None:
    from tools.policy.weights import plain_state

    result, policy = run(folder, tmp_path / "r", settings(**SURFACES[name]))
    assert result.reason == "finished" and result.ratio_moved
    seed = WhisperPolicy.load(folder)
    before, after = plain_state(seed.model), plain_state(policy.model)
    assert set(before) == set(after)
    moved = {k for k in before if not torch.equal(before[k], after[k])}
    layers = {k for k in before if k.startswith(("model.decoder.layers", "model.decoder.layer_norm"))}
    matrices = {k for k in layers if before[k].ndim == 2}
    everything = {k for k in before if "embed_positions" not in k}
    encoder = {k for k in everything if k.startswith("model.encoder") and before[k].ndim == 2}
    expected = {
        "decoder": layers | {"model.decoder.embed_tokens.weight"},
        "decoder-layers": layers,
        "all": everything,
        "listed": set(LISTED),
        "lora-encoder": {k for k in encoder | matrices if "encoder_attn" not in k},
    }.get(name, matrices)
    assert moved == expected
    checkpoint = tmp_path / "r" / result.checkpoints[-1]["folder"]
    assert (checkpoint / ADAPTER).is_file() == ("adapter" in SURFACES[name])
    load_trained(seed, checkpoint)
    assert seed.digest == policy.digest == result.checkpoints[-1]["digest"]
    worn = Recogniser(seed, EncoderCache(seed, tmp_path / "worn", read=read))
    cached = worn.cache.folder
    worn.wear(tmp_path / "r" / result.checkpoints[0]["folder"] / "trainable.safetensors")
    assert (worn.cache.folder != cached) == (name in ("all", "lora-encoder"))


def test_rounding_is_no_ratio_that_moves(folder: Path, tmp_path: Path) -> None:
    """bfloat16 against log-probs sampled in float32: the ratio leaves 1 though nothing is learnt, and GSPO is not claimed."""
    rounded = {"precision": "bf16", "logprob_gap_max": 9}
    for lr, claimed in ((1e-12, False), (1e-2, True)):
        result, _ = run(folder, tmp_path / f"{claimed}" / "r", settings(updates=2, lr=lr, warmup_updates=0, **rounded))
        rows = final_view(tmp_path / f"{claimed}" / "r" / "metrics.jsonl")
        assert max(row["ratio_moved"] for row in rows) > 1e-6
        assert result.gspo_claimed is result.ratio_moved is claimed


@pytest.mark.parametrize("name", ["lora", "rsdora", "all"])
def test_resumed_to_the_bit(folder: Path, tmp_path: Path, name: str) -> None:
    config = settings(**SURFACES[name], updates=4)
    plain, _ = run(folder, tmp_path / "plain", config)

    def crash(event: dict[str, Any]) -> None:
        if event["event"] == "update" and event["update"] == 3:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        run(folder, tmp_path / "r", config, on_event=crash)
    again, policy = run(folder, tmp_path / "r", config)
    assert again.trained_sha256 == plain.trained_sha256
    assert policy.digest == plain.checkpoints[-1]["digest"] == again.checkpoints[-1]["digest"]


def test_the_seed_is_what_a_new_adapter_computes(folder: Path, tmp_path: Path) -> None:
    """The first update's answers are the seed's own, so an adapter's run starts as the full surface's does."""
    firsts = []
    for name in ("decoder-layers", "lora", "dora"):
        run(folder, tmp_path / name, settings(**SURFACES[name], updates=1))
        firsts.append(final_view(tmp_path / name / "metrics.jsonl")[0])
    assert len({row["offered_reward"] for row in firsts}) == 1
    assert all(row["logprob_gap"] < 1e-4 for row in firsts)


def test_rollback_of_an_adapter_gives_the_seed_back(folder: Path, tmp_path: Path) -> None:
    config = settings(**SURFACES["dora"], kl_every=1, kl_max=1e-9, lr=1e-2)
    result, policy = run(folder, tmp_path / "r", config)
    assert (result.reason, result.last_good) == ("trust_region", 0)
    assert policy.digest == WhisperPolicy.load(folder).digest


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"surface": LISTED}, UsageError, "this one has 2 and 3072"),
        ({"surface": LISTED, "surface_tensors": 2, "surface_scalars": 3000}, CheckError, "3,072 scalars where"),
        ({"surface": LISTED, "surface_tensors": 3, "surface_scalars": 3072}, CheckError, "2 tensors where"),
        (
            {"surface": "decoder", "adapter": "lora", "adapter_layers": ["nothing"]},
            UsageError,
            "has 'nothing' in its name",
        ),
        ({"surface": "decoder", "adapter": "lora", "adapter_layers": ["embed"]}, UsageError, "no linear layer"),
        ({"surface": "decoder", "freeze": ["fc1", "fc9"]}, UsageError, "freeze: .* has 'fc9' in its name"),
        ({"surface": "decoder", "freeze": ["model"]}, UsageError, "nothing is left to train"),
    ],
)
def test_counts_are_asserted_before_step_one(
    folder: Path, tmp_path: Path, more: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(folder, tmp_path / "r", settings(**more))
    assert not (tmp_path / "r" / "metrics.jsonl").exists()


@pytest.mark.parametrize("name", ["decoder", "all", "rsdora"])
def test_bfloat16_arithmetic_keeps_float32_masters(folder: Path, tmp_path: Path, name: str) -> None:
    """What a GPU run does, on the CPU: autocast in the training forward, everything that is kept in float32."""
    config = settings(**SURFACES[name], precision="bf16", old_logprobs="recomputed", logprob_gap_max=2.0)
    result, policy = run(folder, tmp_path / "r", config)
    assert result.reason == "finished" and result.ratio_moved
    assert {p.dtype for p in policy.model.parameters()} == {torch.float32}
    rows = final_view(tmp_path / "r" / "metrics.jsonl")
    assert all(1e-6 < row["logprob_gap"] < 1.0 for row in rows)
    assert all(row["ratio_moved"] < 0.5 for row in rows)


def test_settings_of_adapters_do_not_rename_other_runs() -> None:
    assert settings(adapter_rank=3).digest == settings(adapter_rank=4).digest
    assert settings(adapter="lora", adapter_rank=3).digest != settings(adapter="lora", adapter_rank=4).digest


def test_without_peft_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from tools.policy.adapters import AdapterSpec, add_adapters

    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UsageError, match=r"rehear\[adapters\]"):
        add_adapters(WhisperPolicy.load(folder).model, [], AdapterSpec("lora", 2, 4.0))
