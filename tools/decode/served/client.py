"""Requests to one or several endpoints: bounded, timed, tried again with growing pauses, and every failure named.

The openai client carries the requests; its own retries are off, so that each attempt is seen here. A reply counts only when
its whole body came, is JSON, and holds what was asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tools.decode.served.settings import Served
from tools.decode.served.wire import Fault, Reply, read_chat, read_json, read_transcription
from tools.errors import ProviderError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

LONGEST_PAUSE_S = 30.0
RETRIED = (408, 409, 425, 429)


@dataclass
class Endpoint:
    """One address: its client, what is in flight there, and until when (monotonic seconds) it is left in peace."""

    number: int
    client: AsyncOpenAI
    busy: int = 0
    failed: int = 0
    resting_until: float = 0.0
    names: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"endpoint {self.number + 1}"


class Client:
    """Use as an async context manager. `faults` counts what went wrong by kind, `requests` every attempt made."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.endpoints: list[Endpoint] = []
        self.faults: Counter[str] = Counter()
        self.requests = 0
        self._room = asyncio.Semaphore(served.concurrency * len(served.urls()))

    async def __aenter__(self) -> Client:
        from openai import AsyncOpenAI

        for number, url in enumerate(self.served.urls()):
            client = AsyncOpenAI(base_url=url, api_key=self.served.key, max_retries=0, timeout=self.served.timeout_s)
            self.endpoints.append(Endpoint(number, client))
        return self

    async def __aexit__(self, *_: object) -> None:
        for endpoint in self.endpoints:
            await endpoint.client.close()

    # -- the three requests -----------------------------------------------------------------------------------------

    async def models(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        """What /v1/models lists at one endpoint."""

        async def call(at: Endpoint) -> list[dict[str, Any]]:
            raw = await at.client.models.with_raw_response.list()
            document = read_json(raw.http_response.content, raw.headers.get("content-type", ""))
            rows = document.get("data")
            return [dict(r) for r in rows if isinstance(r, Mapping)] if isinstance(rows, list) else []

        return await self._tried(call, "the list of models", endpoint)

    async def chat(
        self, messages: list[dict[str, Any]], settings: Mapping[str, Any], what: str, at: Endpoint | None = None
    ) -> Reply:
        """One chat request. `what` names the clip in errors. Raises ProviderError when it is given up."""
        named = {k: settings[k] for k in ("model", "n", "temperature", "top_p", "seed", "logprobs") if k in settings}
        more = {k: v for k, v in settings.items() if k not in named}

        async def call(endpoint: Endpoint) -> Reply:
            raw = await endpoint.client.chat.completions.with_raw_response.create(
                messages=messages,  # type: ignore[arg-type]
                extra_body=more,
                **named,
            )
            document = read_json(raw.http_response.content, raw.headers.get("content-type", ""))
            return self._same_model(endpoint, read_chat(document, int(settings.get("n", 1))))

        return await self._tried(call, what, at)

    async def transcription(self, wav: bytes, settings: Mapping[str, Any], what: str, at: Endpoint | None) -> Reply:
        """One transcription."""
        named = {k: settings[k] for k in ("model", "response_format", "temperature") if k in settings}
        more = {k: v for k, v in settings.items() if k not in named}

        async def call(endpoint: Endpoint) -> Reply:
            raw = await endpoint.client.audio.transcriptions.with_raw_response.create(
                file=("clip.wav", wav, "audio/wav"),
                extra_body=more,
                **named,
            )
            return read_transcription(read_json(raw.http_response.content, raw.headers.get("content-type", "")))

        return await self._tried(call, what, at)

    def _same_model(self, endpoint: Endpoint, reply: Reply) -> Reply:
        """A server that calls itself something else than before has changed its model: nothing more is taken from it."""
        name = f"{reply.model} {reply.fingerprint}".strip()
        endpoint.names.add(name)
        if len(endpoint.names) > 1:
            told = ", ".join(sorted(repr(n) for n in endpoint.names))
            raise Fault(
                "model_changed", f"the server changed its model in mid-run (it called itself {told})", again=False
            )
        return reply

    # -- attempts ---------------------------------------------------------------------------------------------------

    async def _tried(self, call: Callable[[Endpoint], Any], what: str, at: Endpoint | None) -> Any:
        async with self._room:
            for attempt in range(1, self.served.tries + 1):
                endpoint = at or await self._free()
                endpoint.busy += 1
                try:
                    self.requests += 1
                    reply = await self._once(call, endpoint)
                except Fault as fault:
                    self.faults[fault.kind] += 1
                    endpoint.failed += 1
                    if not fault.again or attempt == self.served.tries:
                        tried = f" after {attempt} attempts" if attempt > 1 else ""
                        raise ProviderError(f"{what}, {endpoint}: {fault}{tried} [{fault.kind}]") from fault
                    pause = max(fault.after_s, self._pause(what, attempt))
                    if at is None:
                        endpoint.resting_until = time.monotonic() + pause
                    if at is not None or len(self.endpoints) == 1:
                        await asyncio.sleep(pause)
                else:
                    endpoint.failed = 0
                    return reply
                finally:
                    endpoint.busy -= 1
        raise AssertionError("unreachable")

    def _pause(self, what: str, attempt: int) -> float:
        """0.5, 1, 2, ... seconds, each spread over half to one and a half of it by the request's name."""
        spread = hashlib.sha256(f"{what} {attempt}".encode()).digest()[0] / 255
        return min(LONGEST_PAUSE_S, self.served.backoff_s * 2 ** (attempt - 1)) * (0.5 + spread)

    async def _free(self) -> Endpoint:
        """The endpoint with the least in flight of those not resting; waits where all are."""
        while True:
            now = time.monotonic()
            up = [e for e in self.endpoints if e.resting_until <= now]
            if up:
                return min(up, key=lambda e: (e.busy, e.failed, e.number))
            await asyncio.sleep(max(0.0, min(e.resting_until for e in self.endpoints) - now))

    async def _once(self, call: Callable[[Endpoint], Any], endpoint: Endpoint) -> Any:
        import openai

        limit = self.served.timeout_s
        try:
            return await asyncio.wait_for(call(endpoint), limit)
        except Fault:
            raise
        except (TimeoutError, openai.APITimeoutError):
            raise Fault("timeout", f"no whole reply within {limit:g} s") from None
        except openai.APIStatusError as err:
            raise _status_fault(err) from err
        except openai.APIConnectionError as err:
            raise _broken(err) from err
        except openai.APIResponseValidationError as err:
            raise Fault("bad_reply", f"the reply is not what the contract says ({err.message})") from err
        except (ValueError, OSError) as err:
            raise Fault("half_body", f"the reply cannot be read ({type(err).__name__})") from err


def _status_fault(err: Any) -> Fault:
    """A status of 400 or more: the server's own words, and whether asking again may help."""
    code = int(err.status_code)
    said = ""
    if isinstance(err.body, Mapping):
        inner = err.body.get("error", err.body)
        said = str((inner.get("message") or inner.get("detail") or "") if isinstance(inner, Mapping) else inner)
    said = " ".join(said.split())[:200]
    again = code in RETRIED or code >= 500
    text = f"status {code}" + (f" ({said})" if said else "")
    return Fault(f"status_{code}", text, again=again, after_s=_retry_after(err))


def _retry_after(err: Any) -> float:
    try:
        return min(LONGEST_PAUSE_S, max(0.0, float(err.response.headers.get("retry-after", 0))))
    except (TypeError, ValueError):
        return 0.0


def _broken(err: Any) -> Fault:
    """A connection that was refused, lost, or whose body was shorter than its content-length."""
    cause = err.__cause__
    name = type(cause).__name__ if cause is not None else "no connection"
    words = " ".join(str(cause or "").split())[:120]
    if name == "RemoteProtocolError" and "body" in words:
        return Fault("half_body", f"the body of the reply is shorter than its content-length ({words})")
    return Fault("connection", f"no connection ({name}{': ' + words if words else ''})")
