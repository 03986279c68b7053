"""Decoding loops on tiny random Whispers: what plain transformers gives, what a seed promises, how answers end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.tools.policy.tiny import noise, tiny_whisper
from tools.decode.local import answer_seed, greedy, sample
from tools.errors import CheckError
from tools.policy.adapters import KINDS, AdapterSpec, add_adapters
from tools.policy.whisper import WhisperPolicy
from tools.rows import Answer
from tools.train.surface import plain_weights

IDS = ["a", "b", "c", "d"]
LANGS = ["en", "de", "es", "fr"]
LIMIT = 24


@pytest.fixture(scope="module", params=["multilingual", "english"])
def policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> WhisperPolicy:
    folder = tmp_path_factory.mktemp("tiny") / request.param
    return WhisperPolicy.load(tiny_whisper(folder, request.param == "multilingual"))


@pytest.fixture(scope="module")
def encoded(policy: WhisperPolicy) -> torch.Tensor:
    with torch.no_grad():
        return policy.encode([noise(seed) for seed in range(len(IDS))])


def prompts_of(policy: WhisperPolicy, texts: Sequence[str] = ("", "", "", "")) -> list[tuple[int, ...]]:
    langs = LANGS if policy.multilingual else ["en"] * len(IDS)
    return [policy.prompt_ids(text, lang) for text, lang in zip(texts, langs)]


def draw(policy: WhisperPolicy, encoded: torch.Tensor, n: int = 6, **more) -> list[list[Answer]]:
    base = more.pop("base", 0)
    seeds = [[answer_seed(base, name, i) for i in range(n)] for name in IDS]
    prompts = more.pop("prompts", prompts_of(policy))
    return sample(
        policy, encoded, prompts, IDS, n, more.pop("temperature", 0.9), more.pop("limit", LIMIT), seeds, **more
    )


def transformers_greedy(policy: WhisperPolicy, encoded: torch.Tensor, prompt: tuple[int, ...], limit: int) -> list[int]:
    """Plain loop over the model's own forward, whole sequence every step."""
    out: list[int] = []
    while len(out) < limit and policy.vocabulary.stop not in out:
        ids = torch.tensor([[*prompt, *out]])
        with torch.no_grad():
            logits = policy.model(decoder_input_ids=ids, encoder_outputs=(encoded,)).logits[0, -1]
        for token in range(len(logits)):
            if not policy.vocabulary.allowed(token, first=not out):
                logits[token] = -torch.inf
        out.append(int(logits.argmax()))
    return out


def test_greedy_is_what_transformers_forward_gives(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    prompts = prompts_of(policy, ["", "the inn", "and then the inn", ""])  # lengths differ within one call
    answers = greedy(policy, encoded, prompts, LIMIT, IDS)
    assert [a.clip_id for a in answers] == IDS
    for b, answer in enumerate(answers):
        assert list(answer.tokens) == transformers_greedy(policy, encoded[b : b + 1], prompts[b], LIMIT)
        assert (answer.index, answer.seed, answer.temperature, answer.logprobs) == (-1, None, 0.0, None)
        assert answer.text == policy.text(answer.tokens)


def test_greedy_does_not_depend_on_the_batch(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    prompts = prompts_of(policy)
    together = greedy(policy, encoded, prompts, LIMIT, IDS)
    assert together == greedy(policy, encoded, prompts, LIMIT, IDS, batch=1)
    assert together[2:] == greedy(policy, encoded[2:], prompts[2:], LIMIT, IDS[2:])


def test_the_same_seed_gives_the_same_answer_bit_for_bit(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    first, again = draw(policy, encoded), draw(policy, encoded)
    assert first == again
    assert first != draw(policy, encoded, base=1)
    assert len({answer.tokens for group in first for answer in group}) > len(IDS)
    for b, group in enumerate(first):
        assert [(a.clip_id, a.index, a.seed) for a in group] == [
            (IDS[b], i, answer_seed(0, IDS[b], i)) for i in range(6)
        ]


def test_an_answer_does_not_depend_on_its_neighbours(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    """More answers, another batch, clips one by one: the same tokens, the same log-probs to rounding."""
    first = draw(policy, encoded)
    for other in (draw(policy, encoded, n=2), draw(policy, encoded, batch=1), draw(policy, encoded, n=12, batch=3)):
        for mine, theirs in zip(first, other):
            for a, b in zip(mine, theirs):
                assert a.tokens == b.tokens
                assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)


def test_equal_seeds_give_equal_answers_within_one_call(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    prompts = prompts_of(policy)
    groups = sample(policy, encoded, prompts, IDS, 3, 0.9, LIMIT, [[7, 8, 7]] * len(IDS))
    assert all(group[0].tokens == group[2].tokens and group[0].logprobs == group[2].logprobs for group in groups)


def test_a_low_temperature_comes_to_the_greedy_answer(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    cold = draw(policy, encoded, temperature=1e-4)
    best = greedy(policy, encoded, prompts_of(policy), LIMIT, IDS)
    assert all(answer.tokens == best[b].tokens for b, group in enumerate(cold) for answer in group)


def test_answers_end_by_stop_or_by_length(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    stop = policy.vocabulary.stop
    answers = [a for group in draw(policy, encoded, n=16, temperature=1.5) for a in group]
    answers += [a for group in draw(policy, encoded, n=4, limit=3) for a in group]
    assert {a.finish for a in answers} == {"stop", "length"}
    for answer in answers:
        assert stop not in answer.tokens[:-1]
        assert (answer.tokens[-1] == stop) == (answer.finish == "stop")
        assert len(answer.logprobs or ()) == len(answer.tokens)
    assert all(len(a.tokens) == 3 for a in answers[-16:] if a.finish == "length")


def test_the_models_last_position_is_a_limit_too(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    prompts = prompts_of(policy, ["the inn " * 40] * 4)
    room = policy.max_target - len(prompts[0])
    answers = greedy(policy, encoded, prompts, 10_000, IDS)
    assert all(len(a.tokens) <= room for a in answers)
    assert all(len(a.tokens) == room for a in answers if a.finish == "length")


def test_forbidden_tokens_never_appear(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    for group in draw(policy, encoded, n=32, temperature=5.0):
        for answer in group:
            assert all(policy.vocabulary.allowed(t, first=i == 0) for i, t in enumerate(answer.tokens))


def test_what_does_not_match_is_refused(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    prompts = prompts_of(policy)
    with pytest.raises(CheckError, match="do not match"):
        greedy(policy, encoded, prompts[:2], LIMIT, IDS)
    with pytest.raises(CheckError, match="temperature above 0"):
        sample(policy, encoded, prompts, IDS, 1, 0.0, LIMIT, [[1]] * 4)
    with pytest.raises(CheckError, match="needs 2 seeds"):
        sample(policy, encoded, prompts, IDS, 2, 1.0, LIMIT, [[1]] * 4)
    with pytest.raises(CheckError, match="the model has 64"):
        greedy(policy, encoded, [(1,) * 64] * 4, LIMIT, IDS)


@torch.inference_mode()
def test_forking_rows_moves_as_few_as_it_must(policy: WhisperPolicy, encoded: torch.Tensor) -> None:
    state, _ = policy.begin(encoded, prompts_of(policy), 4, 10)
    before = state.cache[:, :, :4, :, : state.length].clone()
    clip = list(state.clip)
    parents = [3, 1, 1, 3, 3, 0]
    order = state.fork(parents)
    assert sorted(order) == list(range(6))
    assert [state.clip[r] for r in range(6)] == [clip[parents[e]] for e in order]
    for r, entry in enumerate(order):
        assert torch.equal(state.cache[:, :, r, :, : state.length], before[:, :, parents[entry]])
    assert [parents[order[r]] for r in (0, 1, 3)] == [0, 1, 3]  # these stayed
    state.fork([5])
    assert state.rows == 1 and torch.equal(state.cache[:, :, 0, :, : state.length], before[:, :, parents[order[5]]])


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_are_part_of_the_model_that_decodes(tmp_path: Path, kind: str) -> None:
    """Adapted layers decode and export as their merged weights do, under the plain model's names."""
    adapted, plain = (WhisperPolicy.load(tiny_whisper(tmp_path / name)) for name in ("adapted", "plain"))
    surface = [name for name, _ in adapted.trainable("decoder-layers")]
    named = add_adapters(adapted.model, surface, AdapterSpec(kind, 2, 4.0, ("attn",)))
    assert adapted.digest == plain.digest
    torch.manual_seed(3)
    with torch.no_grad():
        for _, parameter in named:
            parameter += torch.randn_like(parameter) * 0.2
        for name, weight in plain_weights(adapted, dict(named)).items():
            plain.model.get_parameter(name).copy_(weight)
        encoded = adapted.encode([noise(0), noise(1)])
    assert adapted.digest == plain.digest
    prompts = [adapted.prompt_ids("", "en")] * 2
    expected = greedy(plain, encoded, prompts, LIMIT, IDS[:2])
    assert greedy(adapted, encoded, prompts, LIMIT, IDS[:2]) == expected
    values = [policy.logprobs(encoded, prompts, [[a.tokens] for a in expected])[0] for policy in (adapted, plain)]
    torch.testing.assert_close(values[0], values[1], rtol=1e-5, atol=1e-5)
    adapted.export(tmp_path / "export", {})
    exported = WhisperPolicy.load(tmp_path / "export")
    assert set(exported.model.state_dict()) == set(plain.model.state_dict())
    assert exported.digest == plain.digest
