"""One code for a language however a manifest writes it: "de", "DE", "german", "<|de|>", "de-AT" are all "de"."""

from __future__ import annotations

import re
from collections.abc import Collection

from tools.errors import UsageError

_TOKEN = re.compile(r"<\|(.*)\|>")


def language_code(lang: str) -> str | None:
    """Whisper's code for `lang` (code, English name, token, or code with a region), or None where it knows none."""
    from transformers.models.whisper.tokenization_whisper import LANGUAGES, TO_LANGUAGE_CODE

    name = lang.strip().lower()
    match = _TOKEN.fullmatch(name)
    name = match[1] if match else name
    if name in LANGUAGES:
        return name
    if name in TO_LANGUAGE_CODE:
        return TO_LANGUAGE_CODE[name]
    base = re.split(r"[-_]", name)[0]
    return base if base in LANGUAGES else None


def pin_language(lang: str | None, known: Collection[str], clip_id: str = "") -> str:
    """The code to pin for one clip of a multilingual model. Raises UsageError naming the clip where there is none."""
    where = f"clip {clip_id}" if clip_id else "a clip"
    if lang is None or not lang.strip():
        raise UsageError(
            f"The language of {where} is missing and the model is multilingual; give `lang` in the manifest's row."
        )
    code = language_code(lang)
    if code is None or code not in known:
        raise UsageError(
            f"The language {lang!r} of {where} is not one the model knows; use a code like 'de' or a name like 'german'."
        )
    return code
