"""Export: a folder that plain transformers loads, frozen tensors byte-equal, provenance inside, digests that follow."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from tests.tools.policy.tiny import noise, tiny_whisper
from tools.errors import CheckError, UsageError
from tools.policy.whisper import WhisperPolicy


def train_a_little(policy: WhisperPolicy, surface: str | list[str]) -> list[str]:
    names = policy.trainable(surface)
    optimiser = torch.optim.AdamW([p for _, p in names], lr=1e-2)
    encoded = policy.encode([noise(0)])
    values, _ = policy.logprobs(encoded, [policy.prompt_ids("", "en")], [[(40, 41, 42), (43, 44, 45)]])
    (-values.sum()).backward()
    optimiser.step()
    return [name for name, _ in names]


@pytest.mark.parametrize("surface", ["decoder", "decoder-layers", ["model.decoder.layers.1.fc1.weight"]])
def test_frozen_tensors_stay_byte_equal(
    tiny: WhisperPolicy, multilingual_folder: Path, tmp_path: Path, surface: str | list[str]
) -> None:
    chosen = train_a_little(tiny, surface)
    before = load_file(multilingual_folder / "model.safetensors")
    after = load_file(tiny.export(tmp_path / "out", {"step": 3}) / "model.safetensors")
    assert set(before) == set(after)
    changed = {name for name in before if before[name].tobytes() != after[name].tobytes()}
    assert changed and changed <= set(chosen)
    if surface == "decoder":
        assert "model.decoder.embed_tokens.weight" in changed
    assert not any(p.requires_grad for name, p in tiny.model.named_parameters() if name not in chosen)


def test_it_loads_in_plain_transformers_and_says_what_it_is(tiny: WhisperPolicy, tmp_path: Path) -> None:
    from transformers import AutoModelForSpeechSeq2Seq, AutoProcessor

    base = tiny.digest
    train_a_little(tiny, "decoder")
    folder = tiny.export(tmp_path / "out", {"step": 7, "run": "run1", "licence": "MIT"})
    model, info = AutoModelForSpeechSeq2Seq.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()) and model.dtype == torch.float32
    assert model.generation_config.suppress_tokens == tiny.model.generation_config.suppress_tokens
    processor = AutoProcessor.from_pretrained(folder)
    assert processor.tokenizer(" the inn").input_ids == tiny.tokenizer(" the inn").input_ids
    record = json.loads((folder / "provenance.json").read_text())
    assert record["base"]["digest"] == base != record["digest"] == tiny.digest == WhisperPolicy.load(folder).digest
    assert (record["step"], record["run"], record["licence"]) == (7, "run1", "MIT")
    files = {p.name for p in folder.iterdir()} - {"provenance.json"}
    assert files == set(record["files"])
    for name, digest in record["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert {"config.json", "generation_config.json", "tokenizer.json", "preprocessor_config.json"} <= files


def test_an_export_replaces_the_former_whole(tiny: WhisperPolicy, tmp_path: Path) -> None:
    tiny.export(tmp_path / "out", {"step": 1})
    (tmp_path / "out" / "stray").write_text("old")
    tiny.export(tmp_path / "out", {"step": 2})
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["step"] == 2
    assert not (tmp_path / "out" / "stray").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    mine = tmp_path / "mine"
    mine.mkdir()
    tiny.export(mine, {})  # an empty folder is free to use
    (mine / "provenance.json").unlink()
    with pytest.raises(UsageError, match="no earlier export"):
        tiny.export(mine, {})
    assert (mine / "model.safetensors").is_file()


def test_a_half_precision_folder_trains_and_exports_in_float32(tmp_path: Path) -> None:
    folder = tiny_whisper(tmp_path / "half", dtype=torch.float16)
    policy = WhisperPolicy.load(folder)
    assert {p.dtype for p in policy.model.parameters()} == {torch.float32}
    before = load_file(folder / "model.safetensors")
    out = policy.export(tmp_path / "out", {})
    after = load_file(out / "model.safetensors")
    assert all(after[n].dtype == np.float32 and (after[n] == v.astype(np.float32)).all() for n, v in before.items())
    assert json.loads((out / "config.json").read_text())["dtype"] == "float32"


def test_digests_follow_the_weights(tiny: WhisperPolicy) -> None:
    whole, encoder = tiny.digest, tiny.encoder_digest
    train_a_little(tiny, "decoder")
    assert tiny.digest != whole and tiny.encoder_digest == encoder
    train_a_little(tiny, "all")
    assert tiny.encoder_digest != encoder


def test_the_encoder_trains_only_when_asked(tiny: WhisperPolicy) -> None:
    tiny.trainable("decoder")
    assert not tiny.encode([noise(0)]).requires_grad
    tiny.trainable("all")
    assert tiny.encode([noise(0)]).requires_grad
    with torch.no_grad():
        assert not tiny.encode([noise(0)]).requires_grad


def test_an_encoding_never_depends_on_the_batch(tiny: WhisperPolicy) -> None:
    waves = [noise(seed, seconds) for seed, seconds in enumerate((0.5, 1.0, 2.0))]
    with torch.no_grad():
        together, apart = tiny.encode(waves), [tiny.encode([wave]) for wave in waves]
    assert torch.equal(together, torch.cat(apart))


def test_the_window_is_thirty_seconds_to_the_sample(tiny: WhisperPolicy) -> None:
    """Field case F35: 30.00 s passes, 30.01 s does not."""
    assert tiny.window_s == 30.0
    assert tiny.features(np.zeros(480_000, np.float32)).shape == (80, 3000)
    for bad in (
        np.zeros(480_160, np.float32),
        np.zeros(480_001, np.float32),
        np.zeros(0, np.float32),
        np.zeros((2, 9)),
    ):
        with pytest.raises(CheckError, match="does not fit"):
            tiny.features(bad)


@pytest.mark.parametrize(("surface", "words"), [("encoderr", "none of"), (["x.y"], "not in the model"), ([], "empty")])
def test_an_unknown_surface_is_refused(tiny: WhisperPolicy, surface: str | list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tiny.trainable(surface)


@pytest.mark.parametrize("damage", ["weights", "tensors", "tokenizer"])
def test_a_folder_that_does_not_load_is_one_sentence(tmp_path: Path, damage: str) -> None:
    from safetensors.numpy import save_file

    folder = tiny_whisper(tmp_path / "tiny")
    if damage == "weights":
        (folder / "model.safetensors").write_bytes(b"not safetensors")
    elif damage == "tokenizer":
        (folder / "tokenizer.json").write_text("{}")
    else:
        state = load_file(folder / "model.safetensors")
        del state["model.decoder.layers.1.fc1.weight"]
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError) as error:
        WhisperPolicy.load(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)
