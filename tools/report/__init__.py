"""Renders `report/result.json`, and nothing else: terminal table, page, figures, model card.

Names are imported on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "RENDERER": "render",
    "RenderCheck": "render",
    "check_rendering": "render",
    "render_all": "render",
    "render_files": "render",
    "render_terminal": "terminal",
    "render_model_card": "model_card",
    "Result": "schema",
    "load_result": "schema",
    "parse_result": "schema",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
