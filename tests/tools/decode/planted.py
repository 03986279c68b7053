"""Small real HTTP servers with the audio chat contract, each spoilt in one way, for the client and the probe to find out.

The honest one answers a clip by its reference with a few words misheard: greedily the same every time, sampled by the
answer's seed. It knows the clips by their samples, as a recogniser does.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import soundfile

from tools.audio.identity import clip_digest
from tools.audio.read import read_clip
from tools.rows import Clip

WORDS = (
    "the carrier brought seven wooden crates to the north warehouse before monday and the driver asked for a receipt "
    "that was signed by the woman at the front desk while two clerks counted the boxes again with great care"
).split()


def make_clips(folder, count=8, seed=0):
    """Clips of noise with references of a dozen to thirty words: the planted servers know them by their samples."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    clips = []
    for i in range(count):
        wave = np.random.default_rng(1000 * seed + i).normal(0, 0.1, 4000 + 40 * i)
        path = folder / f"c{i:04d}.wav"
        soundfile.write(path, wave, 16_000, subtype="PCM_16")
        text = " ".join(rng.sample(WORDS, rng.choice((12, 20, 28, 30))))
        clip = Clip(f"c{i:04d}", path, text, lang="en", speaker=f"s{i % 12}", recording=f"r{i}")
        clips.append(Clip.from_json({**clip.to_json(), "audio_sha256": clip_digest(read_clip(clip))}))
    return clips


class Planted(ThreadingHTTPServer):
    """The honest server. `seen` counts requests by (clip, temperature, seed), `asked` all of them."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, clips):
        super().__init__(("127.0.0.1", 0), Handler)
        self.refs = {c.audio_sha256: (c.id, c.text) for c in clips}
        self.clips = list(clips)
        self.asked, self.seen, self.lock = 0, Counter(), threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    # -- what a subclass spoils -------------------------------------------------------------------------------------

    def name(self):
        return "planted"

    def models(self):
        return [{"id": "planted", "object": "model"}]

    def hear(self, clip_id, ref, seed, temperature, body):
        """The text of one answer: words fall out by chance of the seed; greedily always the same one does."""
        rng = random.Random(f"{clip_id} {seed if temperature > 0 else 'greedy'}")
        words = ref.split()
        for _ in range(rng.choice((1, 2, 3)) if temperature > 0 else 1):
            words.pop(rng.randrange(len(words)))
        return " ".join(words)

    def answers(self, clip_id, ref, body):
        """[(text, finish, tokens)], one a choice."""
        n, temperature, seed = body.get("n", 1), body["temperature"], body.get("seed", 0)
        texts = [self.hear(clip_id, ref, seed + i, temperature, body) for i in range(n)]
        return [(t, "stop", len(t.split()) + 1) for t in texts]

    def send(self, handler, document):
        handler.document(200, document)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.document(200, {"object": "list", "data": self.server.models()})

    def do_POST(self):
        content = self.rfile.read(int(self.headers["content-length"]))
        server = self.server
        if self.path.endswith("transcriptions"):
            server.transcribe(self, content)
            return
        body = json.loads(content)
        clip_id, ref = server.refs[audio_of(body)]
        with server.lock:
            server.asked += 1
            server.seen[clip_id, body["temperature"], body.get("seed")] += 1
        held = server.answers(clip_id, ref, body)
        server.send(
            self,
            {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": server.name(),
                "choices": [
                    {"index": i, "message": {"role": "assistant", "content": t}, "finish_reason": f}
                    for i, (t, f, _) in enumerate(held)
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": sum(k for *_, k in held), "total_tokens": 1},
            },
        )

    def document(self, status, document, headers=(), length=None, cut=None):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data) if length is None else length))
        for key, value in headers:
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data if cut is None else data[:cut])


def audio_of(body):
    """The digest of the samples of a request."""
    part = next(p for m in body["messages"] for p in m["content"] if p["type"] == "input_audio")
    data = base64.b64decode(part["input_audio"]["data"])
    samples, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    assert rate == 16_000 and samples.ndim == 1
    return hashlib.sha256(samples.tobytes()).hexdigest()


# -- spoilt in what they answer -------------------------------------------------------------------------------------


class OneAnswer(Planted):
    """Samples once and hands the answer out n times."""

    def answers(self, clip_id, ref, body):
        return super().answers(clip_id, ref, {**body, "n": 1}) * body.get("n", 1)


class IgnoresN(Planted):
    def answers(self, clip_id, ref, body):
        return super().answers(clip_id, ref, {**body, "n": 1})


class IgnoresTemperature(Planted):
    def hear(self, clip_id, ref, seed, temperature, body):
        return super().hear(clip_id, ref, seed, 0.0, body)


class ColdDiffers(Planted):
    """Greedy answers are not repeatable (F31)."""

    def hear(self, clip_id, ref, seed, temperature, body):
        return super().hear(clip_id, ref, seed if temperature > 0 else self.asked, 1.0, body)


class CutsAt20(Planted):
    """Cuts at 20 tokens and says so."""

    told = "length"

    def answers(self, clip_id, ref, body):
        held = super().answers(clip_id, ref, body)
        return [
            (" ".join(t.split()[:19]), self.told if len(t.split()) > 19 else "stop", min(k, 20)) for t, _, k in held
        ]


class CutsAndSaysStop(CutsAt20):
    told = "stop"


class Swaps(Planted):
    """Two clips always get each other's answer."""

    def answers(self, clip_id, ref, body):
        a, b = self.clips[0], self.clips[1]
        other = {a.id: b, b.id: a}.get(clip_id)
        return super().answers(clip_id, ref if other is None else other.text, body)


class SwapsSideBySide(Planted):
    """Two requests that are in flight together get each other's answer."""

    def __init__(self, clips):
        super().__init__(clips)
        self.waiting = []

    def answers(self, clip_id, ref, body):
        mine = [clip_id, ref, threading.Event()]
        with self.lock:
            if self.waiting:
                other = self.waiting.pop()
                (mine[0], mine[1]), (other[0], other[1]) = (other[0], other[1]), (mine[0], mine[1])
                other[2].set()
                mine[2].set()
            else:
                self.waiting.append(mine)
        if not mine[2].wait(0.15):
            with self.lock:
                if mine in self.waiting:
                    self.waiting.remove(mine)
        return super().answers(mine[0], mine[1], body)


class AddsThePrompt(Planted):
    def hear(self, clip_id, ref, seed, temperature, body):
        text = next(p["text"] for p in body["messages"][0]["content"] if p["type"] == "text")
        return text.replace("<|audio|>", "").strip() + " " + super().hear(clip_id, ref, seed, temperature, body)


class MixesLanguages(Planted):
    def hear(self, clip_id, ref, seed, temperature, body):
        text = super().hear(clip_id, ref, seed, temperature, body)
        return "das ist nicht die Kiste und der Fahrer war auch nicht da" if int(clip_id[1:]) % 3 == 0 else text


# -- spoilt in how they answer --------------------------------------------------------------------------------------


class Stumbles(Planted):
    """Every `every`-th request fails in the way of `fail`; with every=1 all of them do."""

    every = 3

    def fail(self, handler, document):
        raise NotImplementedError

    def send(self, handler, document):
        with self.lock:
            self.sent = getattr(self, "sent", 0) + 1
            bad = self.sent % self.every == 0
        self.fail(handler, document) if bad else super().send(handler, document)


class Busy(Stumbles):
    def fail(self, handler, document):
        handler.document(429, {"error": {"message": "too many requests"}}, headers=[("retry-after", "0")])


class Breaks(Stumbles):
    def fail(self, handler, document):
        handler.document(500, {"error": {"message": "out of memory"}})


class Hangs(Stumbles):
    def fail(self, handler, document):
        time.sleep(3)


class HalfABody(Stumbles):
    """Announces the whole, sends half, hangs up."""

    def fail(self, handler, document):
        handler.document(200, document, cut=60)
        handler.close_connection = True


class ShortLength(Stumbles):
    """Announces fewer bytes than it sends: what arrives ends in the middle."""

    def fail(self, handler, document):
        handler.document(200, document, length=60)
        handler.close_connection = True


class LongLength(Stumbles):
    """Announces more bytes than there are, and hangs up."""

    def fail(self, handler, document):
        handler.document(200, document, length=100_000)
        handler.close_connection = True


class WebPage(Stumbles):
    """A proxy's page under status 200."""

    def fail(self, handler, document):
        data = b"<html>gateway</html>"
        handler.send_response(200)
        handler.send_header("content-type", "text/html")
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)


class AudioFirst(Planted):
    """Renders the audio before the instruction, and shows it."""

    def send(self, handler, document):
        handler.document(200, {**document, "prompt_text": f"<|audio|> {self.instruction}"})

    def hear(self, clip_id, ref, seed, temperature, body):
        text = next(p["text"] for p in body["messages"][0]["content"] if p["type"] == "text")
        self.instruction = text.replace("<|audio|>", "").strip()
        return super().hear(clip_id, ref, seed, temperature, body)


class PlacesItself(Planted):
    """vLLM with a template that goes by the parts' order: what the text holds stays text, and it shows the prompt."""

    def send(self, handler, document):
        handler.document(200, {**document, "prompt_text": self.prompt})

    def hear(self, clip_id, ref, seed, temperature, body):
        marks = {"text": lambda p: p["text"], "input_audio": lambda p: "<|audio_bos|><|AUDIO|><|audio_eos|>"}
        self.prompt = "".join(marks[p["type"]](p) for p in body["messages"][0]["content"])
        return super().hear(clip_id, ref, seed, temperature, body)


class RawLogprobs(Planted):
    """vLLM's log-probs: the model's own, whatever the temperature, one a token and for the stop token."""

    def send(self, handler, document):
        for choice in document["choices"]:
            size = len(choice["message"]["content"].split()) + 1
            choice["token_ids"] = list(range(size))
            choice["logprobs"] = {
                "content": [{"token": "x", "logprob": -0.5, "bytes": None, "top_logprobs": []}] * size
            }
        handler.document(200, document)


class Renames(Planted):
    """Changes its model in mid-run and says so in `model`."""

    after = 20

    def name(self):
        return "planted" if self.asked <= self.after else "planted-v2"


class ChangesSilently(Planted):
    """Changes its model in mid-run and keeps the name."""

    after = 20

    def hear(self, clip_id, ref, seed, temperature, body):
        text = super().hear(clip_id, ref, seed, temperature, body)
        return text if self.asked <= self.after else " ".join(reversed(text.split()))


class TranscribesOnly(Planted):
    """Has /v1/audio/transcriptions alone. `forms` holds the fields of every request but its file."""

    def __init__(self, clips):
        super().__init__(clips)
        self.forms = []

    def transcribe(self, handler, content):
        fields = re.findall(rb'name="(\w+)"\r\n\r\n(.*?)\r\n--', content.replace(b"; filename", b""))
        self.forms.append({name.decode(): value.decode() for name, value in fields})
        start = content.index(b"RIFF")
        samples, _ = soundfile.read(io.BytesIO(content[start:]), dtype="int16")
        clip_id, ref = self.refs[hashlib.sha256(samples.tobytes()).hexdigest()]
        handler.document(200, {"text": self.hear(clip_id, ref, 0, 0.0, {})})

    def send(self, handler, document):
        handler.document(404, {"detail": "Not Found"})


class EnglishOnly(TranscribesOnly):
    """vLLM with an English-only Whisper: it cannot find out a language, so that every request must tell one."""

    def transcribe(self, handler, content):
        if b'name="language"' in content:
            super().transcribe(handler, content)
        else:
            handler.document(500, {"error": {"message": "", "type": "InternalServerError", "code": 500}})


class ModelsDefaults(Planted):
    """vLLM with a model whose generation_config.json fills in what a request leaves out: its answers are other ones."""

    named = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")

    def hear(self, clip_id, ref, seed, temperature, body):
        text = super().hear(clip_id, ref, seed, temperature, body)
        return text if all(body.get(name) is not None for name in self.named) else text + " and so on"


class Mute(Planted):
    """A chat template or prompt that the model does not know: it ends at once."""

    def hear(self, clip_id, ref, seed, temperature, body):
        return "" if temperature == 0 else super().hear(clip_id, ref, seed, temperature, body)
