"""Secrets never reach ledger, plan, logs or report: known shapes, and the values of secret-looking environment names.

`redact` works on text and on JSON values; what it takes out becomes `[redacted]`. Digests are left alone.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import Any, TypeVar

MARK = "[redacted]"

_WORDS = r"token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth[_-]?key"
_NAME = rf"(?:[A-Za-z0-9_.-]*(?:{_WORDS})s?)"
_SECRET_NAME = re.compile(rf"^{_NAME}$", re.IGNORECASE)
# Names that look secret and are not: counts of tokens, keyword lists, limits.
_PLAIN_NAME = re.compile(r"(?:^|_)(?:max|min|num|n|tokens|token_ids?|count|limit)(?:_|$)|tokenizer", re.IGNORECASE)

_SHAPES = [
    r"\bhf_[A-Za-z0-9]{8,}",
    r"\b(?:sk|pk|rk)-(?:[A-Za-z]+-)*[A-Za-z0-9_-]{16,}",
    r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bnvapi-[A-Za-z0-9_-]{16,}",
    r"\bpypi-[A-Za-z0-9_-]{16,}",
    r"\bnpm_[A-Za-z0-9]{20,}",
    r"\bwandb_v1_[A-Za-z0-9_]{10,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"https://hooks\.slack\.com/services/[A-Za-z0-9/]+",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
]
_BARE = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES), re.DOTALL)
_LED = [  # (pattern, what stays): the secret follows something that gives it away
    (re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@:]*:[^\s/@]+@"), rf"\1{MARK}@"),
    (re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@:]{16,}@"), rf"\1{MARK}@"),
    (re.compile(r"(\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1{MARK}"),
    (
        re.compile(
            rf"(?<![A-Za-z0-9])({_NAME}[\"']?\s*[=:]\s*[\"']?)(?!\[redacted\]|[0-9.]+\b)[^\s\"'&,;}}]{{6,}}",
            re.IGNORECASE,
        ),
        rf"\1{MARK}",
    ),
    (re.compile(r"([?&](?:sig|signature|key|code|token)=)[^\s&#\"']{6,}", re.IGNORECASE), rf"\1{MARK}"),
]

T = TypeVar("T")


def environment_secrets(environ: Mapping[str, str] | None = None) -> list[str]:
    """Values of variables with secret-looking names, longest first; paths and short words are not secrets."""
    found = {
        value
        for name, value in (os.environ if environ is None else environ).items()
        if _SECRET_NAME.match(name) and len(value) >= 8 and not os.path.exists(value)
    }
    return sorted(found, key=len, reverse=True)


def _clean_text(text: str, known: list[str]) -> str:
    for value in known:
        text = text.replace(value, MARK)
    text = _BARE.sub(MARK, text)
    for pattern, kept in _LED:
        text = pattern.sub(kept, text)
    return text


def _clean(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        return _clean_text(value, known) if len(value) >= 6 else value
    if isinstance(value, Mapping):
        return {_clean_text(str(k), known): _clean_item(str(k), v, known) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v, known) for v in value]
    return value


def _clean_item(name: str, value: Any, known: list[str]) -> Any:
    if isinstance(value, str) and value and _SECRET_NAME.match(name) and not _PLAIN_NAME.search(name):
        return MARK
    return _clean(value, known)


def redact(value: T, environ: Mapping[str, str] | None = None) -> T:
    """The same text or JSON value without secrets."""
    return _clean(value, environment_secrets(environ))  # type: ignore[no-any-return]


class RedactingFilter(logging.Filter):
    """A logging filter for every handler: no message or traceback carries a secret to a file or the screen."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        elif record.exc_text:
            record.exc_text = redact(record.exc_text)
        return True
