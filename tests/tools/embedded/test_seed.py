"""The seed model: converted from its wheel, complete, checked by digest, looked up in the stated order."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tools.embedded import seed
from tools.embedded.ct2 import read_container, whisper_tensors
from tools.errors import CheckError, UsageError

pytestmark = pytest.mark.seed_model


def test_snapshot_is_complete_and_loads_in_plain_transformers(seed_folder: Path) -> None:
    from transformers import WhisperForConditionalGeneration, WhisperProcessor

    model, info = WhisperForConditionalGeneration.from_pretrained(seed_folder, output_loading_info=True)
    assert not any(info.values())
    processor = WhisperProcessor.from_pretrained(seed_folder)
    ids = processor.tokenizer("hello world").input_ids
    assert ids == [50257, 50362, 31373, 995, 50256]
    assert len(processor.tokenizer) == model.config.vocab_size == 51864
    assert processor.tokenizer.convert_tokens_to_ids("<|30.00|>") == 51863
    assert model.generation_config.begin_suppress_tokens == [220, 50256]
    assert len(model.generation_config.suppress_tokens) == 90
    assert not model.generation_config.is_multilingual


def test_every_tensor_of_the_wheel_is_carried_over_exactly(seed_folder: Path) -> None:
    from safetensors.numpy import load_file

    source = read_container(seed.wheel_folder() / "model.bin")
    ours = load_file(seed_folder / "model.safetensors")
    weights = [v for k, v in source.items() if v.ndim and v.dtype == np.float16]
    zero_key_biases = 12 * 384  # 4 encoder layers, 4 decoder layers twice: Hugging Face leaves them out
    assert sum(v.size for v in weights) == sum(v.size for v in ours.values()) + zero_key_biases
    key = "decoder/layer_2/attention/linear_1/bias"  # k has no bias: its third of the stack is zero
    assert not source[key][:384].any()
    assert (ours["model.decoder.layers.2.encoder_attn.v_proj.bias"] == source[key][384:].astype(np.float32)).all()
    assert all((v == ours[k]).all() for k, v in whisper_tensors(source).items())


def test_a_damaged_snapshot_is_made_again(tmp_path: Path, seed_folder: Path) -> None:
    folder = seed.seed_model(tmp_path)
    assert folder != seed_folder and seed.is_complete(folder)
    before = (folder / "model.safetensors").read_bytes()
    with open(folder / "model.safetensors", "r+b") as stream:
        stream.seek(5_000_000)
        stream.write(b"\0\1\2\3")
    assert not seed.is_complete(folder)
    assert seed.seed_model(tmp_path) == folder
    assert (folder / "model.safetensors").read_bytes() == before
    assert [p.name for p in (tmp_path / "models").iterdir() if p.name.startswith(".seed-")] == []


def test_a_wheel_with_another_digest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "model"
    shutil.copytree(seed.wheel_folder(), fake)
    with open(fake / "model.bin", "r+b") as stream:
        stream.seek(1_000_000)
        stream.write(b"\xff")
    monkeypatch.setattr(seed, "wheel_folder", lambda: fake)
    with pytest.raises(CheckError, match="not the published file"):
        seed.seed_model(tmp_path / "cache")


def test_a_torn_container_is_named(tmp_path: Path) -> None:
    whole = (seed.wheel_folder() / "model.bin").read_bytes()
    (tmp_path / "model.bin").write_bytes(whole[:100_000])
    with pytest.raises(CheckError, match="not a whole CTranslate2 Whisper file"):
        read_container(tmp_path / "model.bin")
    (tmp_path / "model.bin").write_bytes(b"\x01\x00\x00\x00" + whole[4:100])
    with pytest.raises(CheckError):
        read_container(tmp_path / "model.bin")


def test_resolve_model_takes_embedded_and_a_folder(seed_folder: Path) -> None:
    assert seed.resolve_model("embedded") == seed_folder
    assert seed.resolve_model(str(seed_folder)) == seed_folder


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (None, "is not a folder"),
        ({}, "no readable config.json"),
        ({"config.json": "[1"}, "no readable config.json"),
        ({"config.json": "[]"}, "no readable config.json"),
        ({"config.json": json.dumps({"model_type": "bert"})}, "of type 'bert'"),
        ({"config.json": json.dumps({"model_type": "whisper"})}, "holds no weights"),
        ({"config.json": json.dumps({"model_type": "whisper"}), "model.safetensors": ""}, "holds no tokenizer"),
    ],
)
def test_a_folder_that_is_no_whisper_is_one_clear_sentence(tmp_path: Path, files: dict | None, words: str) -> None:
    folder = tmp_path / "model"
    if files is not None:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    with pytest.raises(UsageError, match=words) as error:
        seed.resolve_model(str(folder))
    assert "\n" not in str(error.value) and str(folder) in str(error.value)


def test_a_hub_name_offline_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot be reached"):
        seed.resolve_model("nobody/no-such-whisper")
