"""`rehear serve` over HTTP: the answers of in-process decoding, and refusals where vLLM refuses."""

import base64
import io
import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile

from tools.decode.served import Served, ServedRecogniser, probe
from tools.decode.served.wire import wav_bytes
from tools.errors import ProviderError
from tools.verbs.recogniser import Recogniser

pytestmark = [pytest.mark.seed_model, pytest.mark.voices]
LIMIT = 60


@pytest.fixture(scope="module")
def local(seed_folder, tmp_path_factory):
    return Recogniser.load(seed_folder, tmp_path_factory.mktemp("encoder"), threads=1)


def hearing(address, folder, **more):
    return ServedRecogniser.load(Served.build({"endpoints": address, "model": "tiny", **more}), folder)


def texts(groups):
    return [[a.text for a in group] for group in groups]


def test_served_and_in_process_decoding_give_the_same_texts_for_the_same_seeds(address, spoken, local, tmp_path):
    heard = hearing(address, tmp_path)
    assert heard.policy.digest == local.policy.digest and heard.policy.weights_known
    prompt = "Orders and deliveries."
    assert [a.text for a in heard.greedy(spoken, prompt, LIMIT)] == [
        a.text for a in local.greedy(spoken, prompt, LIMIT)
    ]
    options = {"n": 8, "temperature": 0.8, "seed": 11}
    ours, theirs = local.sample(spoken, prompt, LIMIT, **options), heard.sample(spoken, prompt, LIMIT, **options)
    assert texts(ours) == texts(theirs)
    for a, b in zip((a for g in ours for a in g), (b for g in theirs for b in g), strict=True):
        assert (a.tokens, a.seed, a.index, a.finish) == (b.tokens, b.seed, b.index, b.finish)
        assert np.allclose(a.logprobs, b.logprobs, atol=1e-3), "of the distribution sampled from, as it says of itself"
    more = {**options, "first": 8}
    assert texts(local.sample(spoken[:2], prompt, LIMIT, **more)) == texts(
        heard.sample(spoken[:2], prompt, LIMIT, **more)
    )


def test_child_i_of_a_request_has_seed_plus_i_as_in_vllm(address, spoken, local, tmp_path):
    from tools.decode.local import sample

    heard = hearing(address, tmp_path, seeds="consecutive")
    (group,) = heard.sample(spoken[:1], "", LIMIT, n=4, temperature=0.8, seed=2)
    seeds = [a.seed for a in group]
    assert seeds == [seeds[0] + i for i in range(4)]
    encoded, prompts = local.cache.get(spoken[:1]), local.prompts(spoken[:1], "")
    (own,) = sample(local.policy, encoded, prompts, ["x"], 4, 0.8, LIMIT, [seeds])
    assert [a.text for a in own] == [a.text for a in group]


def test_the_probe_finds_nothing_wrong_with_it(address, spoken, tmp_path):
    found = probe(hearing(address, tmp_path), spoken[:4], "Orders and deliveries.", LIMIT)
    assert found.ok, found.to_json()
    assert next(f for f in found.findings if f.check == "order").text == "instruction before audio"


def test_transcriptions_are_the_greedy_answers(address, spoken, local, tmp_path):
    heard = hearing(address, tmp_path, api="transcriptions")
    for limit in (LIMIT, 3):
        ours = [a.text for a in local.greedy(spoken[:3], "", limit)]
        assert [a.text for a in heard.greedy(spoken[:3], "", limit)] == ours, "its limit holds as well"
    with pytest.raises(ProviderError, match=r"repetition_penalty='1\.2' is not supported"):
        hearing(address, tmp_path, api="transcriptions", options={"repetition_penalty": 1.2}).greedy(spoken, "", LIMIT)


# -- refusals -------------------------------------------------------------------------------------------------------


def ask(address, body, path="/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def body(spoken, **more):
    from tools.audio.read import read_clip

    data = base64.b64encode(wav_bytes(read_clip(spoken[0]))).decode()
    audio = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    content = [{"type": "text", "text": "Orders. <|audio|>"}, audio]
    return {"model": "tiny", "messages": [{"role": "user", "content": content}], "temperature": 0, **more}


def wav(seconds, rate=16_000):
    out = io.BytesIO()
    soundfile.write(out, np.zeros(int(seconds * rate)), rate, format="WAV")
    return {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "input_audio", "input_audio": {"data": base64.b64encode(out.getvalue()).decode()}}
                ],
            }
        ]
    }


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"n": 2}, 400, "n must be 1 when using greedy sampling, got 2."),
        ({"n": 0}, 400, "n must be an integer"),
        ({"temperature": -1}, 400, "temperature must be"),
        ({"temperature": "hot"}, 400, "temperature must be"),
        ({"max_completion_tokens": 0}, 400, "max_completion_tokens must be"),
        ({"max_completion_tokens": 448}, 400, "maximum context length is 448 tokens"),
        ({"max_tokens": 10_000}, 400, "maximum context length is 448 tokens"),
        ({"model": "large"}, 404, "The model `large` does not exist. Valid aliases: tiny."),
        ({"temperature": 2.1}, 400, "temperature must be in [0, 2], got 2.1."),
        ({"tools": []}, 400, "tools=[] is not supported"),
        ({"stop": ""}, 400, "stop='' is not supported"),
        ({"top_p": 0.9}, 400, "top_p=0.9 is not supported"),
        ({"top_k": 50}, 400, "top_k=50 is not supported"),
        ({"stream": True}, 400, "stream=True is not supported"),
        ({"use_beam_search": True}, 400, "use_beam_search=True"),
        ({"temperature": 0.8, "seed": "x"}, 400, "seed must be an integer"),
        ({"temperature": 0.8, "n": 2, "seeds": [1]}, 400, "seeds must be a list of 2"),
        ({"messages": []}, 400, "messages must be a list"),
        ({"messages": [{"role": "user", "content": "hello"}]}, 400, "one audio is needed, 0 came"),
        ({"language": "de"}, 400, "English-only model"),
        (wav(31), 400, "window is 30 s"),
        (wav(0), 400, "no samples"),
    ],
)
def test_what_vllm_refuses_is_refused(change, status, said, address, spoken):
    code, document = ask(address, {**body(spoken), **change})
    assert code == status and said in document["error"]["message"], document
    assert document["error"]["code"] == status and document["error"]["type"]


def test_placeholders_must_match_the_audio_and_junk_is_refused(address, spoken):
    twice = body(spoken)
    twice["messages"][0]["content"][0]["text"] = "<|audio|> a <|audio|>"
    assert ask(address, twice)[0] == 400
    two = body(spoken)
    two["messages"][0]["content"].append(two["messages"][0]["content"][1])
    assert "one audio is needed, 2 came" in ask(address, two)[1]["error"]["message"]
    junk = body(spoken)
    junk["messages"][0]["content"][1]["input_audio"]["data"] = base64.b64encode(b"no audio at all").decode()
    assert "cannot be decoded" in ask(address, junk)[1]["error"]["message"]
    assert ask(address, b"{half")[0] == 400


def test_a_reply_carries_what_the_contract_says(address, spoken):
    code, reply = ask(address, body(spoken, max_tokens=3, return_token_ids=True))
    assert code == 200 and reply["object"] == "chat.completion" and reply["model"] == "tiny"
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "length" and len(choice["token_ids"]) == 3
    assert reply["usage"]["completion_tokens"] == 3 and reply["prompt_token_ids"]
    code, reply = ask(address, body(spoken, temperature=0.8, n=3, seed=5, logprobs=True))
    assert [c["index"] for c in reply["choices"]] == [0, 1, 2]
    assert all(p["logprob"] <= 0 for c in reply["choices"] for p in c["logprobs"]["content"])


def test_a_server_with_a_key_answers_only_those_who_bring_it(seed_folder):
    """The routes themselves, without a socket: a policy whose key is set."""
    import asyncio

    from starlette.requests import Request

    from tools.policy.whisper import WhisperPolicy
    from tools.serve.app import Service, _guarded
    from tools.serve.batches import Batcher

    policy = WhisperPolicy.load(seed_folder)
    batcher = Batcher(policy)
    service = Service(policy, "tiny", batcher, key="secret-of-the-house")

    def status(*headers):
        scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": list(headers)}
        return asyncio.run(_guarded(service, service.models)(Request(scope))).status_code

    assert status() == 401 and status((b"authorization", b"Bearer wrong")) == 401
    assert status((b"authorization", b"Bearer secret-of-the-house")) == 200
    batcher.close()


def test_requests_side_by_side_are_each_answered_with_their_own(address, spoken):
    """Bodies of different clips, n and limits at once: every reply is that of the same request alone."""
    asked = [body([c], temperature=0.8, n=1 + i % 2, seed=i, max_tokens=20 + i % 3) for i, c in enumerate(spoken)]

    def words(reply):
        return [c["message"]["content"] for c in reply[1]["choices"]]

    alone = [words(ask(address, one)) for one in asked]
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda one: words(ask(address, one)), asked))
    assert together == alone and time.monotonic() - began < 120
