"""What is wrong with a set of answers, seen from the answers alone: pure functions over clips and texts.

They find what a server does to answers, not what a model does: another clip's answer, the prompt in the text, another
language, an end that was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import regex
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from tools.rows import Clip

FAR, CLOSE = 0.6, 0.35  # share of characters that differ: not this clip's answer at all; clearly that clip's answer
LEAK_WORDS = 3
TELLING = 4  # words that a reference needs before it stands for its clip alone
_TURN = regex.compile(r"<\|im_(?:start|end)\|>|</?think>|<\|audio\|>|<\|startoftranscript\|>")
_AUDIO = regex.compile(r"[<\[]\|?\w*audio\w*\|?[>\]]", regex.IGNORECASE)
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}']+")


def words(text: str) -> list[str]:
    """Words in lower case, without punctuation."""
    return [w.casefold() for w in _WORD.findall(text)]


def plain(text: str) -> str:
    return " ".join(words(text))


def _telling(clips: Sequence[Clip], texts: Mapping[str, str]) -> list[Clip]:
    """Clips that can be told from others by their words: a label or a yes is said in many of them."""
    return [c for c in clips if len(words(c.text or "")) >= TELLING and plain(texts.get(c.id, ""))]


def moved(clips: Sequence[Clip], texts: Mapping[str, str]) -> list[str]:
    """Clips whose answer is, nearly word for word, another clip's reference (swaps, shifts and doubles alike)."""
    held = _telling(clips, texts)
    refs, hyps = [plain(c.text or "") for c in held], [plain(texts[c.id]) for c in held]
    wrong = [i for i, (r, h) in enumerate(zip(refs, hyps)) if Levenshtein.normalized_distance(r, h) >= FAR]
    if not wrong:
        return []
    table = cdist([hyps[i] for i in wrong], refs, scorer=Levenshtein.normalized_distance, dtype=np.float32)
    return [held[i].id for row, i in enumerate(wrong) if float(table[row].min()) <= CLOSE]


def silent(clips: Sequence[Clip], texts: Mapping[str, str]) -> list[str]:
    """Clips in which something is said and whose answer holds no word."""
    return [c.id for c in clips if words(c.text or "") and not words(texts.get(c.id, ""))]


def audio_marks(rendered: str) -> list[int]:
    """Where the marks of an audio begin in a rendered prompt: <|audio|>, <|AUDIO|>, <|audio_bos|>, [AUDIO] and the like."""
    return [found.start() for found in _AUDIO.finditer(rendered)]


def leaks(instruction: str, text: str, ref: str = "") -> bool:
    """True where an answer holds the prompt, or marks of the chat template, that its reference does not."""
    if _TURN.search(text):
        return True
    said, prompt, truth = words(text), words(instruction), words(ref)
    size = min(len(prompt), max(LEAK_WORDS, len(prompt) // 2))
    if size < LEAK_WORDS:
        return False
    runs = {tuple(prompt[i : i + size]) for i in range(len(prompt) - size + 1)}
    found = {tuple(said[i : i + size]) for i in range(len(said) - size + 1)} & runs
    return bool(found - {tuple(truth[i : i + size]) for i in range(len(truth) - size + 1)})


def foreign(clip: Clip, text: str) -> str | None:
    """The language or script an answer is in where that is not the clip's, and its reference is in the clip's."""
    from tools.data.languages import language_code, other_language, script_share

    code = language_code(clip.lang)
    if code is None:
        return None
    ref = clip.text or ""
    other = other_language(text, code)
    if other and other_language(ref, code) != other:
        return other
    share, own = script_share(text, code), script_share(ref, code)
    if share is not None and share < 0.5 and (own is None or own >= 0.5):
        return "another script"
    return None


def cut_at(clips: Sequence[Clip], texts: Mapping[str, str]) -> tuple[int, list[str]] | None:
    """(most words of any answer, clips) where longer references are answered by good beginnings alone; else None.

    A server that cuts and says "stop" shows like this: no answer is longer than so many words, and of the references
    that are longer, two at least, all but a few are answered right as far as the answer goes.
    """
    held = [(c.id, words(c.text or ""), words(texts.get(c.id, ""))) for c in clips]
    most = max((len(h) for _, _, h in held), default=0)
    longer = [(name, r, h) for name, r, h in held if len(r) > 1.2 * most and h]
    if most < 4 or len(longer) < 2:
        return None
    begun = [
        name
        for name, r, h in longer
        if len(h) >= 0.8 * most and Levenshtein.normalized_distance(" ".join(r[: len(h)]), " ".join(h)) <= FAR
    ]
    return (most, begun) if len(begun) >= max(2, 0.8 * len(longer)) else None
