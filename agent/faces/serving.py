"""`rehear serve`: says where it listens, then serves until a signal."""

from __future__ import annotations

import os
import sys
from typing import Any

from tools.errors import UsageError


def serve_model(model: str, *, api_key_env: str = "", **options: Any) -> None:
    """Raises UsageError where the model, the address or the key's variable cannot be used."""
    from tools.embedded.seed import resolve_model
    from tools.serve.run import serve

    key = os.environ.get(api_key_env, "") if api_key_env else ""
    if api_key_env and not key:
        raise UsageError(f"--api-key-env names {api_key_env}, which is not set in the environment")

    def ready(url: str, digest: str) -> None:
        print(f"serving {model} ({digest[:12]}) at {url}", file=sys.stderr, flush=True)

    serve(resolve_model(model), key=key, ready=ready, **options)
