"""The memory plan: counts from headers, sizes from the training code run without memory, checked against real runs."""

from __future__ import annotations

import json
import math
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from tests.tools.policy.tiny import noise, tiny_whisper
from tests.tools.policy.tiny_transcribe import tiny_transcribe
from tools.errors import UsageError
from tools.policy.adapters import AdapterSpec, add_adapters
from tools.policy.dry_run import saved_bytes, vocabulary_bytes
from tools.policy.headers import stored
from tools.policy.memory import GIB, memory_plan, memory_text
from tools.policy.transcribe import TranscribePolicy
from tools.policy.whisper import WhisperPolicy


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    return memory_plan("nemotron-3.5-transcribe", "all", seconds=(5.0, 30.0), answers=(8,))


def test_the_published_shape_is_counted(full: dict[str, Any]) -> None:
    """transformers 5.24's default configuration on the meta device: 1,392 tensors, 32,361,750,159 scalars."""
    assert (full["tensors"], full["scalars"]) == (1392, 32_361_750_159)
    assert full["stored"] is None
    assert (full["surface"]["tensors"], full["surface"]["scalars"]) == (862, 2_124_906_064)
    assert any("269 tensors of 1,074,318,400" in note for note in full["notes"])


def test_parts_add_up_and_are_shared_out(full: dict[str, Any]) -> None:
    one, node, four = full["layouts"]
    scalars = full["surface"]["scalars"]
    for layout, gpus in ((one, 1), (node, 8), (four, 32)):
        assert layout["gpus"] == gpus
        assert layout["masters_gib"] == pytest.approx(4 * scalars / gpus / GIB)
        assert layout["optimiser_gib"] == pytest.approx(8 * scalars / gpus / GIB)
        parts = [v for k, v in layout.items() if k.endswith("_gib") and k != "fixed_gib"]
        assert layout["fixed_gib"] == pytest.approx(sum(parts))
    experts = 2 * 23 * 128 * 1856 * 2688 * 2
    assert node["frozen_gib"] - four["frozen_gib"] == pytest.approx(
        (one["frozen_gib"] - experts / GIB) * (1 / 8 - 1 / 32), rel=1e-6
    )
    assert one["fits"] == [], (
        "the float32 masters and moments of 2.1 billion scalars leave no room on one GPU of 80 GiB"
    )
    assert "5 s x 8" in node["fits"]


def test_activations_grow_with_audio_and_answers() -> None:
    rows = memory_plan("nemotron-3.5-transcribe", seconds=(5.0, 10.0), answers=(4, 8))["activations"]
    size = {(r["seconds"], r["answers"]): r for r in rows}
    for key in ("gib", "gib_with_kernels"):
        assert size[5, 4][key] < size[5, 8][key] < size[10, 8][key]
    assert all(r["gib_with_kernels"] < r["gib"] for r in rows)


@pytest.mark.parametrize("surface", ["decoder", "all"])
def test_a_whisper_keeps_what_the_plan_says(tmp_path: Path, surface: str) -> None:
    folder = tiny_whisper(tmp_path / "tiny", multilingual=False)
    row = memory_plan(str(folder), surface, precision="float32", seconds=(2.0,), answers=(6,))["activations"][0]
    policy = WhisperPolicy.load(folder)
    policy.trainable(surface)
    answers = [[tuple(range(40, 40 + row["answer_tokens"]))] * 6]
    prompt = policy.prompt_ids("th")[-4:]

    def run() -> Any:
        return policy.logprobs(policy.encode([noise(0, 2.0)]), [(prompt * 4)[:4]], answers)

    real = saved_bytes(policy.model, run)
    plan = row["gib"] * GIB - vocabulary_bytes(6 * row["answer_tokens"], policy.model.config.vocab_size)
    assert plan == pytest.approx(real, rel=0.1)


@pytest.mark.parametrize("surface", ["decoder", "all"])
def test_a_transcribe_keeps_what_the_plan_says(tmp_path: Path, surface: str) -> None:
    folder = tiny_transcribe(tmp_path / "tiny")
    row = memory_plan(str(folder), surface, seconds=(3.2,), answers=(6,))["activations"][0]
    policy = TranscribePolicy.load(folder, precision="bf16")
    policy.trainable(surface)
    request = (*(*(t for t in policy.prompt_ids() if t != policy.audio_token),)[:32], policy.audio_token)
    answers = [[tuple(range(40, 40 + row["answer_tokens"]))] * 6]

    def run() -> Any:
        return policy.logprobs(policy.encode([noise(0, 3.2)]), [request], answers)

    real = saved_bytes(policy.model, run)
    plan = row["gib"] * GIB - vocabulary_bytes(6 * row["answer_tokens"], policy.vocabulary.width)
    assert plan == pytest.approx(real, rel=0.3)  # the experts of a CPU run go one by one; autocast copies the masters


@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_an_adapter_s_counts_are_those_that_train(tmp_path: Path, kind: str) -> None:
    folder = tiny_transcribe(tmp_path / "tiny")
    surface = memory_plan(str(folder), "all", adapter=kind, rank=3, seconds=(1.0,), answers=(2,))["surface"]
    policy = TranscribePolicy.load(folder)
    named = add_adapters(policy.model, [n for n, _ in policy.trainable("all")], AdapterSpec(kind, 3, 6.0))
    assert (surface["tensors"], surface["scalars"]) == (len(named), sum(p.numel() for _, p in named))


def test_headers_are_read_without_weights(tmp_path: Path) -> None:
    folder = tiny_whisper(tmp_path / "tiny")
    facts = stored(folder)
    model = WhisperPolicy.load(folder).model
    assert facts is not None
    assert facts.scalars == sum(p.numel() for p in model.parameters())
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) - facts.bytes])  # the header alone
    plan = memory_plan(str(folder / "config.json"), seconds=(1.0,), answers=(2,))
    assert plan["stored"]["scalars"] == plan["scalars"] == facts.scalars
    for bad in (b"\x00" * 20, head([1]), head({"a": {"dtype": "F32"}}), head({"a": "x"})):
        weights.write_bytes(bad)
        with pytest.raises(UsageError, match="not a safetensors file"):
            memory_plan(str(folder))


def head(body: Any) -> bytes:
    text = json.dumps(body).encode()
    return struct.pack("<Q", len(text)) + text


def test_what_the_folder_lacks_or_keeps_beside_is_said(tmp_path: Path) -> None:
    folder = tiny_whisper(tmp_path / "tiny")
    one = {"seconds": (1.0,), "answers": (2,)}
    plain = memory_plan(str(folder), **one)
    shutil.copyfile(folder / "model.safetensors", folder / "consolidated.safetensors")  # the same weights twice
    assert memory_plan(str(folder), **one)["stored"] == plain["stored"]
    (folder / "consolidated.safetensors").unlink()
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    assert "lacks model.safetensors.index.json" in " ".join(memory_plan(str(folder), **one)["notes"])
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    assert "lacks model-00002-of-00002.safetensors" in " ".join(memory_plan(str(folder), **one)["notes"])
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": "gptq"}}))
    assert "quantised" in " ".join(memory_plan(str(folder), **one)["notes"])
    with pytest.raises(UsageError, match="does not fit the window of 30 s"):
        memory_plan(str(folder), seconds=(45.0,), answers=(2,))
    (folder / "config.json").write_text(json.dumps({**config, "d_model": 33}))
    with pytest.raises(UsageError, match="no model can be made"):
        memory_plan(str(folder), **one)


def test_it_is_a_face_of_plan(tmp_path: Path) -> None:
    from agent.faces.cli import app

    folder = str(tiny_whisper(tmp_path / "tiny"))
    text = CliRunner().invoke(app, ["plan", "--memory", folder, "--precision", "float32"])
    assert "masters" in text.output and "kept for the backward pass" in text.output and text.exit_code == 0
    document = json.loads(CliRunner().invoke(app, ["plan", "--memory", folder, "--json"]).output)
    assert memory_text(document).splitlines()[0].startswith(folder)
    assert isinstance(CliRunner().invoke(app, ["plan"]).exception, UsageError)


@pytest.mark.parametrize(
    ("model", "more", "says"),
    [
        ("whisper-huge", {}, "neither a folder"),
        ("nemotron-3.5-transcribe", {"surface": "everything"}, "none of decoder"),
        ("nemotron-3.5-transcribe", {"adapter": "mora"}, "no adapter 'mora'"),
        ("nemotron-3.5-transcribe", {"precision": "int4"}, "no precision"),
        ("nemotron-3.5-transcribe", {"gpu_gib": math.nan}, "gpu_gib is nan"),
        ("nemotron-3.5-transcribe", {"adapter": "lora", "rank": -4}, "rank is -4"),
        ("nemotron-3.5-transcribe", {"seconds": (-1.0,)}, "seconds is -1"),
        ("nemotron-3.5-transcribe", {"answers": (0,)}, "answers is 0"),
        ("x" * 5000, {}, "neither a folder"),
        ("a\0b", {}, "neither a folder"),
    ],
)
def test_what_is_not_known_is_refused(model: str, more: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        memory_plan(model, **more)


def test_another_family_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UsageError, match="memory is planned for"):
        memory_plan(str(tmp_path))
    assert torch.get_default_device().type == "cpu"
