"""Starts the server: a model folder, an address, and a line that says where it listens."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from tools.errors import UsageError


def serve(
    folder: Path,
    *,
    name: str = "",
    host: str = "127.0.0.1",
    port: int = 8000,
    threads: int = 0,
    batch: int = 16,
    key: str = "",
    lang: str | None = None,
    ready: Callable[[str, str], None] = lambda url, digest: None,
) -> None:
    """Serves the model folder until a signal. `ready(address, digest)` is called once it listens; port 0 takes any.

    Raises UsageError where the folder is no model or the address is taken.
    """
    import torch
    import uvicorn

    from tools.policy.load import load_policy
    from tools.serve.app import Service, make_app
    from tools.serve.batches import Batcher

    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as err:
        raise UsageError(f"cannot listen on {host}:{port}: {err.strerror}; choose another --port") from err
    if threads:
        torch.set_num_threads(threads)
    policy = load_policy(folder)
    service = Service(policy, name or folder.name, Batcher(policy, batch), key, lang)
    shown = f"[{host}]" if ":" in host else host
    ready(f"http://{shown}:{listener.getsockname()[1]}/v1", service.digest)
    config = uvicorn.Config(make_app(service), log_level="warning", access_log=False, timeout_keep_alive=75)
    uvicorn.Server(config).run(sockets=[listener])
