"""The served client against a vLLM that runs somewhere: opt-in, for no test starts or fetches one.

REHEAR_VLLM_URL (http://host:8000/v1), REHEAR_VLLM_MODEL (its name there), REHEAR_VLLM_API (chat or transcriptions) and
REHEAR_VLLM_SETTINGS (JSON, more keys of seed_model, such as {"placeholder": ""}) say where and how; the clips are the demo's.
"""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.data.manifest import read_manifest
from tools.decode.served import Served, ServedRecogniser, probe
from tools.decode.served.client import Client
from tools.decode.served.wire import chat_messages, chat_settings, wav_bytes
from tools.errors import ProviderError, UsageError

URL, API = os.environ.get("REHEAR_VLLM_URL"), os.environ.get("REHEAR_VLLM_API", "chat")
pytestmark = [
    pytest.mark.voices,
    pytest.mark.skipif(not URL, reason="REHEAR_VLLM_URL is not set: no vLLM to try the client against"),
]
chat_only = pytest.mark.skipif(API != "chat", reason="transcriptions are greedy: nothing is sampled")
PROMPT, LIMIT, N = "Orders and deliveries.", 60, 8
CLOSE = 0.75  # share of answers that must be equal: on some devices a sum depends on what else is in the batch


@pytest.fixture(scope="module")
def clips(voices, tmp_path_factory):
    from tools.embedded.corpus import build_corpus

    rows = read_manifest(build_corpus(tmp_path_factory.mktemp("corpus") / "c", seed=3)["train"], "train").rows[:8]
    return [replace(c, audio_sha256=clip_digest(read_clip(c))) for c in rows]


def served(**more):
    settings = {"endpoints": URL, "model": os.environ["REHEAR_VLLM_MODEL"], "api": API}
    return Served.build({**settings, **json.loads(os.environ.get("REHEAR_VLLM_SETTINGS", "{}")), **more})


def hearing(folder: Path, **more):
    return ServedRecogniser.load(served(**more), folder)


def sampled(heard, clips, **more):
    return heard.sample(clips, PROMPT, LIMIT, temperature=1.0, seed=5, **{"n": N, **more})


def equal(ours, theirs):
    """Share of answers with the same text."""
    pairs = [(a.text, b.text) for g, h in zip(ours, theirs, strict=True) for a, b in zip(g, h, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def test_the_probe_passes_or_says_what_is_wrong(clips, tmp_path):
    found = probe(hearing(tmp_path), clips, PROMPT, LIMIT, n=N, temperature=1.0)
    print(json.dumps(found.to_json(), indent=1))
    assert found.ok, found.text()
    assert found.differing <= (1 - CLOSE) * found.repeated, "greedy answers repeat but for the noise"


def test_greedy_answers_repeat_and_what_is_kept_is_not_asked_for_again(clips, tmp_path):
    heard = hearing(tmp_path / "one")
    first = heard.greedy(clips, PROMPT, LIMIT)
    asked = heard.requests
    assert heard.greedy(clips, PROMPT, LIMIT) == first and heard.requests == asked
    assert [a.clip_id for a in first] == [c.id for c in clips] and any(a.text for a in first)
    assert equal([first], [hearing(tmp_path / "two").greedy(clips, PROMPT, LIMIT)]) >= CLOSE


@chat_only
def test_n_answers_come_each_once_with_seeds_that_give_them_again_one_by_one_and_go_on(clips, tmp_path):
    heard = hearing(tmp_path / "one")
    groups = sampled(heard, clips)
    assert all([a.index for a in g] == list(range(N)) and len({a.seed for a in g}) == N for g in groups)
    assert any(len({a.text for a in g}) > 1 for g in groups), "sampling samples"
    asked = heard.requests
    assert sampled(heard, clips) == groups and heard.requests == asked
    assert equal(groups, sampled(hearing(tmp_path / "again"), clips)) >= CLOSE
    assert equal(groups, sampled(hearing(tmp_path / "single", per_request=1), clips)) >= CLOSE, "answer i has seed + i"
    more = sampled(heard, clips, first=N // 2)
    assert [a.index for a in more[0]] == list(range(N // 2, N // 2 + N))
    assert equal([g[N // 2 :] for g in groups], [g[: N // 2] for g in more]) >= CLOSE, "an extension goes on"


@chat_only
def test_finish_tokens_and_log_probs_are_those_of_the_answer(clips, tmp_path):
    heard = hearing(tmp_path)
    for group in heard.sample(clips[:2], PROMPT, 4, n=2, temperature=1.0, seed=5):
        for answer in group:
            assert answer.finish in ("stop", "length") and len(answer.tokens) <= 4
            assert (len(answer.tokens) == 4) if answer.finish == "length" else True
            assert answer.logprobs is None or len(answer.logprobs) == len(answer.tokens)


@chat_only
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": 2}, r"status 400 \(n must be 1 when using greedy sampling, got 2"),
        ({"n": 0}, r"status 400 \(n must be"),
        ({"temperature": 2.5}, r"status 400 \(temperature must be in \[0, 2\]"),
        ({"max_completion_tokens": 10**6}, r"status 400 \(max_completion_tokens=1000000 cannot be greater"),
        ({"model": "no-such-model"}, r"status 404 \(The model `no-such-model` does not exist"),
    ],
)
def test_a_refusal_is_told_in_the_servers_words_and_not_asked_again(change, said, clips):
    settings = served()

    async def ask():
        body = {**chat_settings(settings, n=1, temperature=0.0, limit=LIMIT, seeds=(), rule="consecutive"), **change}
        async with Client(settings) as client:
            with pytest.raises(ProviderError, match=said):
                await client.chat(chat_messages(settings, PROMPT, wav_bytes(read_clip(clips[0]))), body, "a clip")
            assert client.requests == 1

    asyncio.run(ask())


@pytest.mark.skipif(API != "transcriptions", reason="chat samples")
def test_transcriptions_are_greedy_and_say_so(clips, tmp_path):
    heard = hearing(tmp_path)
    assert not heard.can_sample
    with pytest.raises(UsageError, match="greedy answers only"):
        sampled(heard, clips)
