"""What a request asks for, read as strictly as vLLM reads it; what this server cannot honour is refused, never ignored."""

from __future__ import annotations

import base64
import binascii
import io
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.errors import CheckError

PLACEHOLDER = "<|audio|>"
MOST_ANSWERS = 64
MOST_AUDIO_BYTES = 64 * 2**20
LONG = 2**63
HOTTEST = 2.0
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_p": (1, 1.0),
    "top_k": (0, -1),
    "min_p": (0, 0.0),
    "presence_penalty": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "length_penalty": (1, 1.0),
    "logit_bias": ({},),
    "stop": ([],),
    "stop_token_ids": ([],),
    "bad_words": ([],),
    "use_beam_search": (False,),
    "stream": (False,),
    "echo": (False,),
    "ignore_eos": (False,),
    "min_tokens": (0,),
    "prompt_logprobs": (0,),
    "tools": (),
    "response_format": ({"type": "text"},),
    "truncate_prompt_tokens": (),
    "skip_special_tokens": (True,),
    "top_logprobs": (0,),
}


# values of a transcription's form that leave a greedy answer as it is; what only sampling uses is not looked at
FORM: dict[str, tuple[str, ...]] = {
    "temperature": ("0", "0.0"),
    "repetition_penalty": ("1", "1.0"),
    "presence_penalty": ("0", "0.0"),
    "frequency_penalty": ("0", "0.0"),
    "use_beam_search": ("false", "0"),
    "stream": ("false", "0"),
    "hotwords": ("",),
}


class Refused(Exception):
    """A request that is answered with `status` and one sentence; `param` names the field at fault."""

    def __init__(self, text: str, param: str = "", status: int = 400) -> None:
        super().__init__(text)
        self.param, self.status = param, status

    def to_json(self) -> dict[str, Any]:
        kind = {404: "NotFoundError", 401: "AuthenticationError"}.get(self.status, "BadRequestError")
        return {"error": {"message": str(self), "type": kind, "param": self.param or None, "code": self.status}}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the audio (16 kHz float32), the instruction, and how to decode. `seeds` is empty for greedy."""

    wave: np.ndarray
    instruction: str
    limit: int | None
    temperature: float
    seeds: tuple[int, ...]
    lang: str | None
    show_tokens: bool
    show_logprobs: bool
    show_prompt: bool


def read_chat(body: Any, names: tuple[str, ...]) -> Asked:
    """A chat request. Raises Refused for what vLLM refuses and for what this server cannot do."""
    if not isinstance(body, Mapping):
        raise Refused("the body must be a JSON object")
    check_model(body.get("model"), names)
    for name, neutral in NEUTRAL.items():
        value = body.get(name)
        if value is not None and value not in neutral:
            raise Refused(f"{name}={value!r} is not supported: answers are drawn from the whole distribution", name)
    temperature = _temperature(body)
    n = _whole(body, "n", 1, 1, MOST_ANSWERS)
    if temperature == 0 and n > 1:
        raise Refused(f"n must be 1 when using greedy sampling, got {n}.", "n")
    instruction, audio = _content(body.get("messages"))
    return Asked(
        wave=read_audio(audio),
        instruction=instruction,
        limit=_limit(body),
        temperature=temperature,
        seeds=_seeds(body, n) if temperature > 0 else (),
        lang=_text(body, "language"),
        show_tokens=bool(body.get("return_token_ids")),
        show_logprobs=bool(body.get("logprobs")),
        show_prompt=bool(body.get("return_prompt_text")),
    )


def check_model(name: Any, names: tuple[str, ...]) -> None:
    if name is not None and name not in names:
        raise Refused(f"The model `{name}` does not exist. Valid aliases: {', '.join(names)}.", "model", 404)


def read_audio(data: bytes) -> np.ndarray:
    """An audio file's bytes -> 16 kHz mono float32, the same samples that decoding on this machine would use."""
    import soundfile

    from tools.audio.read import RATE, one_channel, resample

    if len(data) > MOST_AUDIO_BYTES:
        raise Refused(f"the audio has {len(data):,} bytes, {MOST_AUDIO_BYTES:,} are allowed", "messages")
    try:
        wave, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
        mono = one_channel(np.ascontiguousarray(wave.T))
    except CheckError as err:
        raise Refused(f"the audio cannot be used: {err}", "messages") from err
    except Exception as err:
        raise Refused(f"the audio cannot be decoded ({type(err).__name__})", "messages") from err
    if not mono.size or not np.isfinite(mono).all():
        raise Refused("the audio holds no samples, or samples that are no numbers", "messages")
    return resample(mono, int(rate), RATE)


def _content(messages: Any) -> tuple[str, bytes]:
    """(instruction, audio bytes) of the turns. The placeholder, where it stands in a text, must be the audio's one."""
    if not isinstance(messages, list) or not messages:
        raise Refused("messages must be a list with one turn at least", "messages")
    texts: list[str] = []
    audios: list[bytes] = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") not in ("system", "user"):
            raise Refused("every turn must be of role system or user: nothing else can be transcribed", "messages")
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts if isinstance(parts, list) else []:
            _part(part, texts, audios)
    if len(audios) != 1:
        raise Refused(f"one audio is needed, {len(audios)} came", "messages")
    text = " ".join(t.strip() for t in texts if t.strip())
    if text.count(PLACEHOLDER) > 1:
        raise Refused(f"the text holds {text.count(PLACEHOLDER)} {PLACEHOLDER} for one audio", "messages")
    return " ".join(text.replace(PLACEHOLDER, " ").split(" ")).strip(), audios[0]


def _part(part: Any, texts: list[str], audios: list[bytes]) -> None:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text" and isinstance(part.get("text"), str):
        texts.append(part["text"])
    elif kind == "input_audio" and isinstance(part.get("input_audio"), Mapping):
        audios.append(_decode(part["input_audio"].get("data")))
    elif kind == "audio_url" and isinstance(part.get("audio_url"), Mapping):
        url = str(part["audio_url"].get("url") or "")
        if not url.startswith("data:") or "," not in url:
            raise Refused("audio_url takes data: addresses only: this server fetches nothing", "messages")
        audios.append(_decode(url.partition(",")[2]))
    else:
        raise Refused(f"a part of type {kind!r} is not supported: text, input_audio or audio_url", "messages")


def _decode(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError) as err:
        raise Refused("the audio is not base64", "messages") from err


def _seeds(body: Mapping[str, Any], n: int) -> tuple[int, ...]:
    """One seed an answer: the list `seeds`, or `seed` + i as in vLLM, or any where none was given."""
    listed = body.get("seeds")
    if listed is not None:
        if not isinstance(listed, list) or len(listed) != n or not all(_is_seed(s) for s in listed):
            raise Refused(f"seeds must be a list of {n} integers of 63 bits", "seeds")
        return tuple(listed)
    seed = body.get("seed")
    if seed is None:
        seed = secrets.randbits(62)
    if not _is_seed(seed) or seed + n >= LONG:
        raise Refused("seed must be an integer of 63 bits", "seed")
    return tuple(seed + i for i in range(n))


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LONG


def read_form(form: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, int | None]:
    """(instruction, most tokens) of a transcription's form. Raises Refused for what would change a greedy answer."""
    check_model(form.get("model"), names)
    for name, neutral in FORM.items():
        value = form.get(name)
        if value is not None and str(value).lower() not in neutral:
            raise Refused(f"{name}={value!r} is not supported: transcriptions are greedy here", name)
    most = str(form.get("max_completion_tokens") or "")
    if most and (not most.isdecimal() or int(most) < 1):
        raise Refused(f"max_tokens must be at least 1, got {most}.", "max_tokens")
    return str(form.get("prompt") or ""), int(most) if most else None


def _limit(body: Mapping[str, Any]) -> int | None:
    """`max_completion_tokens` wins over `max_tokens`; None: as many as there is room for."""
    for name in ("max_completion_tokens", "max_tokens"):
        if body.get(name) is not None:
            return _whole(body, name, 1, 1, 2**31)
    return None


def _whole(body: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Refused(f"{name} must be an integer from {low} to {high}, got {value!r}.", name)
    return value


def _temperature(body: Mapping[str, Any]) -> float:
    value = body.get("temperature")
    if value is None:
        return 1.0
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= HOTTEST:
        raise Refused(f"temperature must be in [0, {HOTTEST:g}], got {value!r}.", "temperature")
    return float(value)


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(f"{name} must be a string, got {value!r}.", name)
    return value or None
