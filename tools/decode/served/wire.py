"""What goes over the wire and what comes back: bodies of requests, and replies read strictly. No I/O.

The chat contract is vLLM's for audio models: one user turn, the instruction before the audio with the literal placeholder
in it (a template of string format puts the audio there), thinking off, greedy as its own request, temperature always
sent, `max_completion_tokens` always sent. Read in vLLM's protocol and chat utilities.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.decode.served.settings import Served

RATE = 16_000
FINISHES = ("stop", "length")
# vLLM fills each of these from the model's generation_config.json where a request leaves it out
WHOLE_DISTRIBUTION = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


class Fault(Exception):
    """One request failed. `kind` is a short name for counting; `again` says whether asking again may help."""

    def __init__(self, kind: str, text: str, *, again: bool = True, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.kind, self.again, self.after_s = kind, again, after_s


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer as it came: `tokens` and `logprobs` are empty and None where the server does not offer them."""

    text: str
    finish: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply. `model` and `fingerprint` are what the server calls itself; `used` completion tokens of all choices."""

    choices: tuple[Choice, ...]
    model: str = ""
    fingerprint: str = ""
    used: int | None = None
    prompt_text: str | None = None


def wav_bytes(wave: np.ndarray) -> bytes:
    """A 16 kHz mono float32 wave as PCM16 WAV: the samples that its digest is over, so no server has to resample."""
    import soundfile

    from tools.audio.identity import to_int16

    out = io.BytesIO()
    soundfile.write(out, to_int16(wave), RATE, subtype="PCM_16", format="WAV")
    return out.getvalue()


def chat_messages(served: Served, instruction: str, wav: bytes) -> list[dict[str, Any]]:
    """One user turn: text, then audio; the placeholder stands at the end of the text where the template needs it."""
    text = f"{instruction} {served.placeholder}".strip()
    audio = {"type": "input_audio", "input_audio": {"data": base64.b64encode(wav).decode(), "format": "wav"}}
    parts = [{"type": "text", "text": text}, audio] if text else [audio]
    return [{"role": "user", "content": parts}]


def chat_settings(
    served: Served, *, n: int, temperature: float, limit: int, seeds: Sequence[int], rule: str, lang: str | None = None
) -> dict[str, Any]:
    """Everything of a chat request but the messages. Greedy: temperature 0, n 1, no seed (`seeds` empty)."""
    body: dict[str, Any] = {
        "model": served.model,
        "n": n,
        "temperature": temperature,
        **WHOLE_DISTRIBUTION,
        "max_completion_tokens": limit,
        "logprobs": True,
        "top_logprobs": 0,
        "return_token_ids": True,
        "return_prompt_text": True,
        "skip_special_tokens": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    if seeds:
        body["seed"] = seeds[0]
        if rule == "list":
            body["seeds"] = list(seeds)
    if served.send_language and lang:
        body["language"] = lang
    body |= served.options
    return {k: v for k, v in body.items() if v is not None}


def transcription_settings(served: Served, prompt: str, limit: int, lang: str | None = None) -> dict[str, Any]:
    """The form of a transcription but its file: greedy, at most `limit` tokens.

    The clip's language is always told: a server that has to find it out may take another one, and vLLM has none to find in
    an English-only Whisper (status 500).
    """
    from tools.data.languages import language_code

    form: dict[str, Any] = {
        "model": served.model,
        "response_format": "json",
        "temperature": 0.0,
        "max_completion_tokens": limit,
        "repetition_penalty": 1.0,
    }
    code = language_code(lang)
    if code:
        form["language"] = code
    if prompt:
        form["prompt"] = prompt
    form |= served.options
    return {k: v for k, v in form.items() if v is not None}


def read_json(content: bytes, kind: str = "") -> dict[str, Any]:
    """The document of a reply. Raises Fault where it is cut, not JSON, or no object."""
    try:
        document = json.loads(content)
    except ValueError:
        cut = "cut in the middle" if content.lstrip()[:1] == b"{" else f"not JSON{f' but {kind}' if kind else ''}"
        raise Fault("half_body", f"the body of the reply ({len(content)} bytes) is {cut}") from None
    if not isinstance(document, dict):
        raise Fault("bad_reply", "the reply is JSON but no object")
    if document.get("error") and not document.get("choices"):
        raise Fault("bad_reply", f"the reply is an error under status 200: {_short(document['error'])}")
    return document


def read_chat(document: Mapping[str, Any], n: int) -> Reply:
    """A chat reply with its choices in the order of their index. Raises Fault `n_ignored` unless there are `n`."""
    listed = document.get("choices")
    if not isinstance(listed, list) or not all(isinstance(c, Mapping) for c in listed):
        raise Fault("bad_reply", "the reply has no list of choices")
    if len(listed) != n:
        text = f"{len(listed)} answer(s) came where {n} were asked for: the server ignores n"
        raise Fault("n_ignored", text, again=False)
    order = [c.get("index", i) for i, c in enumerate(listed)]
    if sorted(order) != list(range(n)):
        raise Fault("bad_reply", f"the choices are numbered {order}, not 0 to {n - 1}")
    choices = tuple(_choice(c) for _, c in sorted(zip(order, listed), key=lambda pair: pair[0]))
    usage = document.get("usage")
    used = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    return Reply(
        choices,
        model=str(document.get("model") or ""),
        fingerprint=str(document.get("system_fingerprint") or ""),
        used=used if isinstance(used, int) else None,
        prompt_text=document.get("prompt_text") if isinstance(document.get("prompt_text"), str) else None,
    )


def read_transcription(document: Mapping[str, Any]) -> Reply:
    """A transcription: one text, always greedy. Raises Fault where there is none."""
    text = document.get("text")
    if not isinstance(text, str):
        raise Fault("bad_reply", "the transcription has no text")
    return Reply((Choice(text.strip(), "stop"),))


def _choice(row: Mapping[str, Any]) -> Choice:
    message = row.get("message")
    text = message.get("content") if isinstance(message, Mapping) else None
    if text is None:
        text = ""
    if not isinstance(text, str):
        raise Fault("bad_reply", "an answer's content is no text")
    finish = row.get("finish_reason")
    if finish not in FINISHES:
        finish = {"max_tokens": "length", "repetition": "length"}.get(str(finish), "stop" if finish == "eos" else "")
    if not finish:
        raise Fault("bad_reply", f"an answer ended for the reason {row.get('finish_reason')!r}", again=False)
    tokens = row.get("token_ids")
    ids = tuple(int(t) for t in tokens) if isinstance(tokens, list) else ()
    return Choice(text.strip(), finish, ids, _logprobs(row, len(ids)))


def _logprobs(row: Mapping[str, Any], tokens: int) -> tuple[float, ...] | None:
    """Log-probs of the answer's tokens where the server gives one for each of them."""
    held = row.get("logprobs")
    content = held.get("content") if isinstance(held, Mapping) else None
    if not isinstance(content, list) or not content or (tokens and len(content) != tokens):
        return None
    values = [c.get("logprob") if isinstance(c, Mapping) else None for c in content]
    numbers = [float(v) for v in values if isinstance(v, int | float)]
    return tuple(numbers) if len(numbers) == len(values) else None


def _short(value: Any, most: int = 200) -> str:
    text = " ".join(str(value.get("message", value) if isinstance(value, Mapping) else value).split())
    return text if len(text) <= most else text[: most - 3] + "..."
