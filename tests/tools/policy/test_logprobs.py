"""Teacher-forced log-probs: what was sampled, differentiable, masked by length, the audio reaching them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.tools.policy.tiny import noise
from tools.decode.local import answer_seed, sample
from tools.errors import CheckError
from tools.policy import token_logprobs as module
from tools.policy.token_logprobs import token_logprobs
from tools.policy.whisper import WhisperPolicy
from tools.rows import Answer

IDS = ["a", "b", "c"]
PROMPTS = [("", "en"), ("the inn and then", "de"), ("x", "fr")]


def draw(
    policy: WhisperPolicy, encoded: torch.Tensor, temperature: float, n: int = 4
) -> tuple[list, list[list[Answer]]]:
    prompts = [policy.prompt_ids(*prompt) for prompt in PROMPTS]
    seeds = [[answer_seed(0, name, i) for i in range(n)] for name in IDS]
    return prompts, sample(policy, encoded, prompts, IDS, n, temperature, 24, seeds)


def tokens(groups: list[list[Answer]]) -> list[list[tuple[int, ...]]]:
    return [[answer.tokens for answer in group] for group in groups]


@pytest.mark.parametrize("temperature", [0.3, 0.8, 1.0, 1.7])
def test_sampled_and_teacher_forced_log_probs_agree(
    tiny: WhisperPolicy, tiny_encoded: torch.Tensor, temperature: float
) -> None:
    prompts, groups = draw(tiny, tiny_encoded, temperature)
    values, mask = tiny.logprobs(tiny_encoded, prompts, tokens(groups), temperature)
    rows = [answer for group in groups for answer in group]
    assert mask.sum(1).tolist() == [len(answer.tokens) for answer in rows]
    for r, answer in enumerate(rows):
        np.testing.assert_allclose(values[r, mask[r]].detach(), answer.logprobs, rtol=1e-5, atol=1e-5)
    assert not values[~mask].any()


def test_in_double_precision_they_agree_to_twelve_places(tiny: WhisperPolicy, tiny_encoded: torch.Tensor) -> None:
    tiny.model.double()
    encoded = tiny_encoded.double()
    prompts, groups = draw(tiny, encoded, 0.8)
    values = reference(tiny, encoded, prompts, tokens(groups), 0.8)
    sampled = np.concatenate([answer.logprobs for group in groups for answer in group])
    np.testing.assert_allclose(np.concatenate(values), sampled, rtol=1e-11, atol=1e-12)


def reference(policy: WhisperPolicy, encoded: torch.Tensor, prompts: list, groups: list, temperature: float) -> list:
    """Plain transformers, one row at a time: whole softmax over allowed tokens."""
    out = []
    for b, group in enumerate(groups):
        for answer in group:
            ids = torch.tensor([[*prompts[b], *answer[:-1]]])
            with torch.no_grad():
                logits = policy.model(decoder_input_ids=ids, encoder_outputs=(encoded[b : b + 1],)).logits[0]
            rows = []
            for i, token in enumerate(answer):
                z = logits[len(prompts[b]) - 1 + i] / temperature
                allowed = [t for t in range(len(z)) if policy.vocabulary.allowed(t, first=i == 0)]
                rows.append(float(z[token] - torch.logsumexp(z[allowed], 0)))
            out.append(rows)
    return out


def test_they_are_what_plain_transformers_gives(tiny: WhisperPolicy, tiny_encoded: torch.Tensor) -> None:
    prompts, groups = draw(tiny, tiny_encoded, 0.8)
    want = reference(tiny, tiny_encoded, prompts, tokens(groups), 0.8)
    values, mask = tiny.logprobs(tiny_encoded, prompts, tokens(groups), 0.8)
    for row, keep, expected in zip(values, mask, want):
        np.testing.assert_allclose(row[keep].detach(), expected, rtol=1e-5, atol=1e-5)


def test_masks_come_from_lengths_and_every_stop_token_trains(tiny: WhisperPolicy, tiny_encoded: torch.Tensor) -> None:
    """Field case F37: [5, 6, 2] and [7, 2] with pad = eos: masks [1, 1, 1], [1, 1, 0]."""
    stop = tiny.vocabulary.stop
    answers = [[(40, 41, stop), (42, stop)]]
    prompt = [tiny.prompt_ids("", "en")]
    tiny.trainable("decoder")
    values, mask = tiny.logprobs(tiny_encoded[:1], prompt, answers)
    assert mask.tolist() == [[True, True, True], [True, True, False]]
    for row in range(2):
        last = int(mask[row].sum()) - 1
        (grad,) = torch.autograd.grad(values[row, last], tiny.decoder.embed_tokens.weight, retain_graph=True)
        assert grad[stop].abs().max() > 0
    assert values[1, 2] == 0


def test_ragged_groups_and_a_row_alone_give_the_same(tiny: WhisperPolicy, tiny_encoded: torch.Tensor) -> None:
    prompts, groups = draw(tiny, tiny_encoded, 1.0)
    ragged = [tokens(groups)[0][:1], tokens(groups)[1][:3], tokens(groups)[2][:2]]
    values, mask = tiny.logprobs(tiny_encoded, prompts, ragged)
    at = 0
    for b, group in enumerate(ragged):
        for answer in group:
            alone, _ = tiny.logprobs(tiny_encoded[b : b + 1], [prompts[b]], [[answer]])
            torch.testing.assert_close(values[at, mask[at]], alone[0], rtol=1e-5, atol=1e-5)
            at += 1


def test_other_audio_gives_other_log_probs(tiny: WhisperPolicy, tiny_encoded: torch.Tensor) -> None:
    prompts, groups = draw(tiny, tiny_encoded, 1.0)
    own, _ = tiny.logprobs(tiny_encoded, prompts, tokens(groups))
    other, _ = tiny.logprobs(tiny_encoded.roll(1, 0), prompts, tokens(groups))
    assert ((own - other).abs().amax(1) > 1e-4).all()


def test_encoding_once_or_once_an_answer_is_the_same(tiny: WhisperPolicy) -> None:
    waves = [noise(seed) for seed in range(2)]
    with torch.no_grad():
        shared, repeated = tiny.encode(waves), tiny.encode([wave for wave in waves for _ in range(3)])
    answers = [[(40, 41, 42), (43,), (44, 45)], [(46, 47), (48, 40), (49,)]]
    prompts = [tiny.prompt_ids("", "en"), tiny.prompt_ids("", "de")]
    together, _ = tiny.logprobs(shared, prompts, answers)
    apart, _ = tiny.logprobs(
        repeated, [p for p in prompts for _ in range(3)], [[answer] for group in answers for answer in group]
    )
    torch.testing.assert_close(together, apart, rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_a_plain_softmax(tiny: WhisperPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    vocabulary = tiny.vocabulary
    x0, w0 = torch.randn(37, 8), torch.randn(vocabulary.width + 3, 8)
    targets = torch.tensor([t for t in range(500) if vocabulary.allowed(t, first=True)][:37])
    first = torch.arange(37) % 5 == 0
    scale = torch.randn(37)

    def plain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        z = vocabulary.mask_((x / 0.7) @ w[: vocabulary.width].T, first=False)
        z = torch.where(first[:, None], vocabulary.mask_(z.clone(), first=True), z)
        return z.log_softmax(-1).gather(1, targets[:, None])[:, 0]

    def grads(function) -> list[torch.Tensor]:
        x, w = x0.clone().requires_grad_(), w0.clone().requires_grad_()
        out = function(x, w)
        (out * scale).sum().backward()
        return [out.detach(), x.grad, w.grad]

    want = grads(plain)
    monkeypatch.setattr(module, "CHUNK_ROWS", 10)
    for keep in (0, 2**30):
        monkeypatch.setattr(module, "KEEP_BYTES", keep)
        got = grads(lambda x, w: token_logprobs(x, w, targets, first, vocabulary, 0.7))
        for a, b in zip(got, want):
            torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-6)


def test_what_cannot_have_been_sampled_is_refused(tiny: WhisperPolicy, tiny_encoded: torch.Tensor) -> None:
    prompt = [tiny.prompt_ids("", "en")]
    for answer in ((1, 40), (40, tiny.tokenizer.convert_tokens_to_ids("<|0.00|>")), (tiny.vocabulary.stop,), (5, 40)):
        with pytest.raises(CheckError, match="never be sampled"):
            tiny.logprobs(tiny_encoded[:1], prompt, [[answer]])
    with pytest.raises(CheckError, match="no tokens"):
        tiny.logprobs(tiny_encoded[:1], prompt, [[()]])


@pytest.mark.seed_model
@pytest.mark.speech
def test_the_seed_model_on_real_speech(seed_folder: Path, shared_speech: Path) -> None:
    import soundfile

    policy = WhisperPolicy.load(seed_folder)
    waves = [soundfile.read(shared_speech / "read" / "cards" / f"00{i}.wav", dtype="float32")[0] for i in (1, 2)]
    with torch.no_grad():
        encoded = policy.encode(waves)
    prompts = [policy.prompt_ids()] * 2
    seeds = [[answer_seed(0, str(b), i) for i in range(4)] for b in range(2)]
    groups = sample(policy, encoded, prompts, ["0", "1"], 4, 0.8, 40, seeds)
    with torch.no_grad():
        values, mask = policy.logprobs(encoded, prompts, tokens(groups), 0.8)
    for r, answer in enumerate(answer for group in groups for answer in group):
        gaps = np.abs(values[r, mask[r]].numpy() - answer.logprobs)
        # float32's own noise: either side is up to 2e-5 from double precision on single tokens of this model
        assert gaps.max() < 5e-5 and abs(float(values[r, mask[r]].mean()) - np.mean(answer.logprobs)) < 1e-5
