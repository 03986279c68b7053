"""The routes: chat with audio, transcriptions, models, health. Replies are shaped as vLLM shapes them."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tools.audio.read import RATE
from tools.errors import RehearError
from tools.rows import Answer
from tools.serve.asked import PLACEHOLDER, Asked, Refused, read_audio, read_chat, read_form
from tools.serve.batches import Batcher, Work

if TYPE_CHECKING:
    from tools.policy.base import Policy

Handler = Callable[[Request], Awaitable[Response]]


@dataclass
class Service:
    """A policy under a name. `key`: what a caller must bring as a bearer, empty for anyone; `lang` where none is sent."""

    policy: Policy
    name: str
    batcher: Batcher
    key: str = ""
    lang: str | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        self.digest = self.policy.digest
        self.began = int(time.time())

    # -- decoding ---------------------------------------------------------------------------------------------------

    def work(self, asked: Asked) -> Work:
        """Raises Refused where prompt and answer do not fit the model together, or the clip its window."""
        try:
            prompt = self.policy.prompt_ids(asked.instruction, asked.lang or self.lang)
        except RehearError as err:
            raise Refused(str(err), "messages") from err
        seconds = len(asked.wave) / RATE
        if seconds > self.policy.window_s:
            raise Refused(
                f"the audio has {seconds:.2f} s, the model's window is {self.policy.window_s:g} s", "messages"
            )
        room = self.policy.max_target - len(prompt)
        limit = room if asked.limit is None else asked.limit
        if limit > room:
            raise Refused(
                f"This model's maximum context length is {self.policy.max_target} tokens. However, you requested "
                f"{len(prompt) + limit} tokens ({len(prompt)} in the messages, {limit} in the completion).",
                "messages",
            )
        return Work(asked.wave, prompt, limit, asked.temperature, asked.seeds)

    # -- routes -----------------------------------------------------------------------------------------------------

    async def chat(self, request: Request) -> Response:
        asked = read_chat(await _json(request), (self.name,))
        work = self.work(asked)
        answers = await asyncio.wrap_future(self.batcher.put(work))
        return JSONResponse(self.completion(asked, work, answers))

    async def transcriptions(self, request: Request) -> Response:
        form = await request.form()
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Refused("file is missing", "file")
        prompt, limit = read_form(form, (self.name,))
        kind = str(form.get("response_format") or "json")
        if kind not in ("json", "text"):
            raise Refused(f"response_format {kind!r} is not supported: json or text", "response_format")
        wave = read_audio(await file.read())
        lang = str(form.get("language") or "") or None
        work = self.work(Asked(wave, prompt, None, 0.0, (), lang, False, False, False))
        work.limit = min(work.limit, limit or work.limit)
        text = (await asyncio.wrap_future(self.batcher.put(work)))[0].text
        if kind == "text":
            return Response(text, media_type="text/plain")
        usage = {"type": "duration", "seconds": math.ceil(len(wave) / RATE)}
        return JSONResponse({"text": text, "usage": usage})

    async def models(self, request: Request) -> Response:
        row = {
            "id": self.name,
            "object": "model",
            "created": self.began,
            "owned_by": "rehear",
            "max_model_len": self.policy.max_target,
            "digest": self.digest,
            "window_s": self.policy.window_s,
            "seeds": "list",
            "logprobs": "sampled",
        }
        return JSONResponse({"object": "list", "data": [row]})

    async def health(self, request: Request) -> Response:
        return Response(status_code=200)

    def completion(self, asked: Asked, work: Work, answers: list[Answer]) -> dict[str, Any]:
        """The reply of a chat request."""
        used = sum(len(a.tokens) for a in answers)
        out: dict[str, Any] = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self.name,
            "system_fingerprint": self.digest[:16],
            "choices": [self._choice(asked, i, a) for i, a in enumerate(answers)],
            "usage": {
                "prompt_tokens": len(work.prompt),
                "completion_tokens": used,
                "total_tokens": len(work.prompt) + used,
            },
        }
        if asked.show_tokens:
            out["prompt_token_ids"] = list(work.prompt)
        if asked.show_prompt:
            out["prompt_text"] = f"{asked.instruction} {PLACEHOLDER}".strip()
        return out

    def _choice(self, asked: Asked, index: int, answer: Answer) -> dict[str, Any]:
        out: dict[str, Any] = {
            "index": index,
            "message": {"role": "assistant", "content": answer.text},
            "logprobs": self._logprobs(answer) if asked.show_logprobs else None,
            "finish_reason": answer.finish,
            "stop_reason": None,
        }
        if asked.show_tokens:
            out["token_ids"] = list(answer.tokens)
        return out

    def _logprobs(self, answer: Answer) -> dict[str, Any] | None:
        if answer.logprobs is None:
            return None
        tokens = [self.policy.text([t]) for t in answer.tokens]
        rows = zip(tokens, answer.logprobs, strict=True)
        return {"content": [{"token": t, "logprob": v, "bytes": None, "top_logprobs": []} for t, v in rows]}


def make_app(service: Service) -> Starlette:
    """The application; its end closes the batcher."""

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        yield
        service.batcher.close()

    routes = [
        Route("/v1/chat/completions", _guarded(service, service.chat), methods=["POST"]),
        Route("/v1/audio/transcriptions", _guarded(service, service.transcriptions), methods=["POST"]),
        Route("/v1/models", _guarded(service, service.models)),
        Route("/health", service.health),
    ]
    return Starlette(routes=routes, lifespan=life)


def _guarded(service: Service, handler: Handler) -> Handler:
    """Refusals as JSON with their status; the key asked for where there is one."""

    async def handle(request: Request) -> Response:
        try:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if service.key and not hmac.compare_digest(given.encode(), service.key.encode()):
                raise Refused("the API key is missing or wrong", status=401)
            return await handler(request)
        except Refused as refused:
            return JSONResponse(refused.to_json(), status_code=refused.status)

    return handle


async def _json(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except ValueError as err:
        raise Refused("the body is not JSON") from err
