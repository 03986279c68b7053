"""How a served model is asked: where it is, what it is called, and what its server is known to do with seeds and n."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from tools.errors import UsageError

APIS = ("chat", "transcriptions")
SEED_RULES = ("", "consecutive", "list", "single")
LOGPROBS = ("", "raw", "sampled")
PLACEHOLDER = "<|audio|>"
NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class Served:
    """One model behind one or several endpoints (`http://host:8000/v1`, or `$NAME` of an environment variable).

    `api`: "chat" (audio chat, n answers, seeds) or "transcriptions" (greedy only). `api_key_env` names the variable that
    holds the key; a key itself is never written down. `digest`: what the operator says the weights are. `seeds`: how
    a request's answers get theirs: "consecutive" (vLLM: answer i has seed + i), "list" (`rehear serve`), "single" (one
    request an answer); empty: list where the server says so, else consecutive. `logprobs`: of the model's own distribution
    ("raw", vLLM's default: whatever the temperature) or of the one sampled from ("sampled", `--logprobs-mode
    processed_logprobs`); empty: sampled where the server says so, else raw. `per_request`: most answers a request,
    0 for as many as are wanted. `concurrency`: requests in flight at each endpoint. `timeout_s`: of one request, `tries`
    of it. `window_s`: longest clip; `context`: tokens of prompt and answer together. `options` go into every request as
    they are; null takes a field out.
    """

    endpoints: tuple[str, ...]
    model: str
    api: str = "chat"
    api_key_env: str = ""
    digest: str = ""
    placeholder: str = PLACEHOLDER
    seeds: str = ""
    logprobs: str = ""
    per_request: int = 0
    concurrency: int = 16
    timeout_s: float = 120.0
    tries: int = 6
    backoff_s: float = 0.5
    window_s: float = 30.0
    context: int = 448
    send_language: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def build(cls, values: Mapping[str, Any], where: str = "seed_model") -> Served:
        """From a brief's mapping. Raises UsageError naming the key at fault."""
        known = {f.name for f in fields(cls)}
        for key in values:
            if key not in known:
                near = get_close_matches(str(key), sorted(known), n=1)
                hint = f" (closest: {near[0]})" if near else f": known are {', '.join(sorted(known))}"
                raise UsageError(f"{where}: unknown key {key}{hint}")
        given = values.get("endpoints") or ()
        listed = (given,) if isinstance(given, str) else tuple(given)
        if not listed or not values.get("model"):
            raise UsageError(
                f"{where}: a served model needs endpoints (http://host:8000/v1) and model (its name there)"
            )
        served = cls(**{**values, "endpoints": listed, "options": dict(values.get("options") or {})})
        served._check(where)
        return served

    def _check(self, where: str) -> None:
        if self.api not in APIS:
            raise UsageError(f"{where}.api is {self.api!r}: choose {' or '.join(APIS)}")
        if self.seeds not in SEED_RULES:
            raise UsageError(f"{where}.seeds is {self.seeds!r}: choose one of {', '.join(filter(None, SEED_RULES))}")
        if self.logprobs not in LOGPROBS:
            raise UsageError(
                f"{where}.logprobs is {self.logprobs!r}: choose one of {', '.join(filter(None, LOGPROBS))}"
            )
        for name in ("concurrency", "tries", "timeout_s", "window_s", "context"):
            if not isinstance(getattr(self, name), int | float) or getattr(self, name) <= 0:
                raise UsageError(f"{where}.{name} is {getattr(self, name)!r}: give a number above 0")
        for url in (u for u in self.endpoints if not u.startswith("$")):
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise UsageError(f"{where}.endpoints: {url!r} is no address such as http://localhost:8000/v1")
            if parts.username or parts.password:
                raise UsageError(f"{where}.endpoints: an address must not hold a key: name its variable in api_key_env")

    def urls(self) -> tuple[str, ...]:
        """The endpoints with `$NAME` looked up in the environment. Raises UsageError where the variable is not set."""
        out = []
        for url in self.endpoints:
            if url.startswith("$"):
                name = url[1:].strip("{}")
                if not os.environ.get(name):
                    raise UsageError(f"seed_model.endpoints names ${name}, and no such environment variable is set")
                out += re.split(r"[\s,]+", os.environ[name].strip())
            else:
                out.append(url)
        return tuple(u.rstrip("/") for u in out)

    @property
    def key(self) -> str:
        """The API key. Raises UsageError where the variable named is not set."""
        if not self.api_key_env:
            return NO_KEY
        value = os.environ.get(self.api_key_env)
        if not value:
            raise UsageError(f"seed_model.api_key_env names {self.api_key_env}, which is not set in the environment")
        return value

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "endpoints": list(self.endpoints), "options": dict(self.options)}

    @property
    def tells_language(self) -> bool:
        """`language` is a field of every transcription; of chat it is none but where the operator says so."""
        return self.send_language or self.api == "transcriptions"

    def asked(self) -> dict[str, Any]:
        """What of the settings an answer depends on; addresses, time limits and concurrency do not count."""
        kept = ("model", "api", "digest", "placeholder", "send_language", "options")
        return {name: value for name, value in self.to_json().items() if name in kept}


def digest_of(value: Any) -> str:
    """sha256 (hex) over a JSON value, keys sorted."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def seeds_for(rule: str, base_seed: int, clip_id: str, first: int, n: int) -> Sequence[int]:
    """Seeds of answers `first` to `first + n - 1` of a clip: distinct, and the same whenever they are asked for.

    Under "list" and "single" they are those of in-process decoding. Under "consecutive" answer i has the clip's seed
    + i (vLLM, facts of its sampler: child i of a request with seed s uses s + i), so that an extension from 8 to 16 asks
    with the clip's seed + 8. 52 bits: exact in any JSON reader, and two clips' seeds are never within 16 of each other
    but by a chance of 1e-9.
    """
    from tools.decode.local import answer_seed

    if rule in ("list", "single"):
        return [answer_seed(base_seed, clip_id, first + i) for i in range(n)]
    start = answer_seed(base_seed, clip_id, 0) >> 11
    return [start + first + i for i in range(n)]
