"""Nemotron Transcribe's adapter on a tiny random model of that very architecture and on real clips."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from tests.tools.policy.tiny import noise
from tests.tools.policy.tiny_transcribe import tiny_transcribe
from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.decode.local import answer_seed, greedy, sample
from tools.decode.offline import offline_check
from tools.errors import CheckError, UsageError
from tools.policy.load import load_policy
from tools.policy.transcribe import TranscribePolicy
from tools.rows import Clip

LIMIT = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_transcribe(tmp_path_factory.mktemp("tiny") / "transcribe")


@pytest.fixture
def policy(folder: Path) -> TranscribePolicy:
    loaded = load_policy(folder)
    assert isinstance(loaded, TranscribePolicy)
    return loaded


@pytest.fixture(scope="module")
def clips(shared_speech: Path) -> list[Clip]:
    rows = read_manifest(shared_speech / "digits" / "manifest.jsonl").rows
    return rows[:3] + read_manifest(shared_speech / "read/languages/transcripts.jsonl").rows[:1]


def drawn(policy: TranscribePolicy, waves: list[np.ndarray], n: int = 5) -> tuple:
    with torch.no_grad():
        encoded = policy.encode(waves)
    ids = [str(i) for i in range(len(waves))]
    prompts = [policy.prompt_ids()] * len(waves)
    seeds = [[answer_seed(0, i, k) for k in range(n)] for i in ids]
    return encoded, prompts, sample(policy, encoded, prompts, ids, n, 0.8, LIMIT, seeds)


@pytest.mark.speech
def test_sampled_and_teacher_forced_log_probs_agree(policy: TranscribePolicy, clips: list[Clip]) -> None:
    encoded, prompts, groups = drawn(policy, [read_clip(c) for c in clips])
    tokens = [[a.tokens for a in group] for group in groups]
    tokens[0][0] = tokens[0][0][:1]  # one token; two: as many as one step feeds
    tokens[1] = [t[:2] for t in tokens[1]]
    with torch.no_grad():
        values, mask = policy.logprobs(encoded, prompts, tokens, 0.8)
        alone, _ = policy.logprobs([encoded[1]], prompts[1:2], [tokens[1]], 0.8)
        short, _ = policy.logprobs([encoded[0]], prompts[:1], [tokens[0][:1]], 0.8)
    rows = [a for group in groups for a in group]
    for r, answer in enumerate(rows):
        got = values[r, mask[r]].numpy()
        assert np.abs(got - answer.logprobs[: len(got)]).max() < 1e-5
    torch.testing.assert_close(values[5:10, :2], alone, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(values[0, :1], short[0], rtol=1e-5, atol=1e-5)
    assert mask.sum(1).tolist() == [len(t) for group in tokens for t in group]


@pytest.mark.speech
def test_greedy_is_that_of_plain_transformers(policy: TranscribePolicy, clips: list[Clip]) -> None:
    """Together, in clips of four lengths; and the request is the processor's own."""
    waves = [read_clip(c) for c in clips]
    with torch.no_grad():
        encoded = policy.encode(waves)
    answers = greedy(policy, encoded, [policy.prompt_ids()] * len(waves), LIMIT, [c.id for c in clips])
    for wave, vectors, answer in zip(waves, encoded, answers):
        inputs = policy.processor.apply_transcription_request(wave)
        length = inputs["input_ids"].shape[1]
        out = policy.model.generate(**inputs, max_new_tokens=LIMIT, do_sample=False)[0, length:]
        assert tuple(out.tolist()) == answer.tokens
        ids = [i for i in policy.prompt_ids() for _ in range(len(vectors) if i == policy.audio_token else 1)]
        assert ids == inputs["input_ids"][0].tolist()


def test_other_audio_gives_other_log_probs(policy: TranscribePolicy) -> None:
    encoded, prompts, groups = drawn(policy, [noise(0), noise(1)])
    tokens = [[a.tokens for a in group] for group in groups]
    own, _ = policy.logprobs(encoded, prompts, tokens)
    other, _ = policy.logprobs(encoded.flip(0), prompts, tokens)
    assert ((own - other).abs().amax(1) > 1e-4).all()


def test_gradients_are_those_of_whole_sequences(policy: TranscribePolicy) -> None:
    """A request read once for all answers gives the gradient of one whole sequence an answer; all that trains has one."""
    named = dict(policy.trainable("all"))
    prompts = [policy.prompt_ids()] * 2
    waves = [noise(0, 0.7), noise(1, 1.3)]
    answers = [[(5, 6, 7), (8,), (9, 10)], [(11, 12), (13, 14, 15, 16)]]

    def gradient(together: bool) -> tuple[float, dict[str, torch.Tensor]]:
        policy.model.zero_grad()
        encoded = policy.encode(waves)
        if together:
            total = policy.logprobs(encoded, prompts, answers)[0].sum()
        else:
            parts = [([encoded[b]], [prompts[b]], [[a]]) for b in range(2) for a in answers[b]]
            total = torch.stack([policy.logprobs(*part)[0].sum() for part in parts]).sum()
        total.backward()
        return float(total.detach()), {k: p.grad.clone() for k, p in named.items()}

    (one, g1), (two, g2) = gradient(True), gradient(False)
    assert one == pytest.approx(two, abs=1e-4)
    for name in named:
        assert g1[name].abs().sum() > 0, name
        torch.testing.assert_close(g1[name], g2[name], rtol=1e-3, atol=1e-4 * float(g2[name].abs().max()) + 1e-6)


def test_surfaces_and_what_never_trains(policy: TranscribePolicy, folder: Path) -> None:
    """Seed 000: CTC timestamps, routers, experts and the output head remain frozen; the diarization model too."""
    surfaces = {name: {n for n, _ in policy.trainable(name)} for name in ("encoder", "decoder", "all")}
    assert surfaces["encoder"] | surfaces["decoder"] == surfaces["all"]
    never = ("word_timestamp", "mixer.gate", "mixer.experts", "lm_head", "diarization_model", "embeddings")
    assert not any(part in name for name in surfaces["all"] for part in never)
    assert any("shared_experts" in name for name in surfaces["decoder"])
    policy.trainable("decoder")
    assert not policy.encoder_trains
    assert not policy.encode([noise(0)]).requires_grad
    policy.trainable("encoder")
    assert policy.encoder_trains
    assert policy.encode([noise(0)]).requires_grad
    for name in ("lm_head.weight", "model.language_model.layers.1.mixer.gate.weight", "word_timestamp_head.bias"):
        with pytest.raises(UsageError, match="never trains"):
            policy.trainable([name])
    with pytest.raises(UsageError, match="none of decoder, encoder, all"):
        policy.trainable("everything")


@pytest.mark.speech
def test_an_export_gives_the_same_text_offline_and_keeps_frozen_bytes(
    policy: TranscribePolicy, folder: Path, tmp_path: Path, clips: list[Clip]
) -> None:
    moved = policy.trainable("all")
    with torch.no_grad():
        for _, parameter in moved:
            parameter.mul_(1.05)
        encoded = policy.encode([read_clip(c) for c in clips])
    prompts = [policy.prompt_ids("write {language}", c.lang) for c in clips]
    ours = [a.text for a in greedy(policy, encoded, prompts, LIMIT, [c.id for c in clips])]
    out = policy.export(tmp_path / "export", {"update": 3})
    assert offline_check(out, clips, "write {language}", LIMIT) == ours
    again = TranscribePolicy.load(out)
    record = json.loads((out / "provenance.json").read_text())
    assert again.digest == policy.digest == record["digest"] != record["base"]["digest"]
    before, after = load_file(folder / "model.safetensors"), load_file(out / "model.safetensors")
    assert set(before) == set(after)
    still = {name for name in before if before[name].tobytes() == after[name].tobytes()}
    frozen = ("gate", "experts.0", "lm_head", "ctc_timestamp", "embed_tokens", "diarization_model")
    assert all(name in still for name in before if any(part in name for part in frozen) and "shared" not in name)
    assert len(still) < len(before)
    assert (out / "alignment_tokenizer" / "tokenizer.json").is_file()
    assert "alignment_tokenizer/tokenizer.json" in record["files"]


def test_bfloat16_trains_float32_masters_and_exports_the_types_it_came_in(folder: Path, tmp_path: Path) -> None:
    """The arithmetic of a GPU, on the CPU: only that it runs, keeps its types and stays near float32."""
    rough, exact = TranscribePolicy.load(folder, precision="bf16"), TranscribePolicy.load(folder)
    named = rough.trainable("decoder")
    assert {p.dtype for _, p in named} == {torch.float32}
    encoded, prompts, groups = drawn(rough, [noise(0, 0.5)], n=3)
    tokens = [[a.tokens for a in group] for group in groups]
    values, mask = rough.logprobs(encoded, prompts, tokens, 0.8)
    values.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for _, p in named)
    near, _ = exact.logprobs(exact.encode([noise(0, 0.5)]), prompts, tokens, 0.8)
    assert (values - near).detach()[mask].abs().mean() < 0.5
    out = rough.export(tmp_path / "out", {})
    types = {str(t.dtype) for t in TranscribePolicy.load(out, precision="bf16").model.model.language_model.parameters()}
    assert types == {"torch.bfloat16", "torch.float32"} or types == {"torch.bfloat16"}


def test_bad_input_is_one_sentence(policy: TranscribePolicy, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no language"):
        policy.prompt_ids("in {language}", None, clip_id="c1")
    with pytest.raises(UsageError, match="exactly one place for the audio"):
        policy.prompt_ids("<|audio|> twice")
    with pytest.raises(CheckError, match="does not fit"):
        policy.features(np.zeros((2, 9), np.float32))
    with pytest.raises(CheckError, match="no tokens"):
        policy.logprobs(policy.encode([noise(0)]), [policy.prompt_ids()], [[()]])
    with pytest.raises(CheckError, match="never be sampled"):
        policy.logprobs(policy.encode([noise(0)]), [policy.prompt_ids()], [[(policy.audio_token,)]])
    (tmp_path / "config.json").write_text('{"model_type": "nemo_speechlm"}')
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_policy(tmp_path)
