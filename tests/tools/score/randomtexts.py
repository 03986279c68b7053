"""Random pairs of texts in many scripts, with the errors that recognisers make; deterministic."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.tools.text.alphabets import ALPHABETS

# script -> language whose unit applies
SCRIPTS = {
    "latin": "en", "vietnamese": "vi", "cyrillic": "ru", "greek": "el", "arabic": "ar", "hebrew": "he",
    "devanagari": "hi", "bengali": "bn", "tamil": "ta", "thai": "th", "han": "zh", "kana": "ja", "hangul": "ko",
    "armenian": "hy", "georgian": "ka",
}  # fmt: skip


def word(rng: random.Random, script: str) -> str:
    """One to seven letters of a script."""
    return "".join(rng.choice(ALPHABETS[script]) for _ in range(rng.randint(1, 7)))


def spoil(rng: random.Random, words: list[str], vocabulary: list[str], rate: float) -> list[str]:
    """Words deleted, inserted, replaced, repeated, glued together; the rest stays."""
    out: list[str] = []
    for one in words:
        throw = rng.random() / rate
        if throw < 0.25:
            continue
        if throw < 0.5:
            out += [one, rng.choice(vocabulary)]
        elif throw < 0.8:
            out.append(rng.choice(vocabulary))
        elif throw < 0.9:
            out += [one] * rng.randint(2, 5)
        elif throw < 1.0 and out:
            out[-1] += one
        else:
            out.append(one)
    return out


def random_pairs(count: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """(reference, hypothesis, language); a few are empty on either side, some mix two scripts."""
    rng = random.Random(seed)
    vocabularies = {script: [word(rng, script) for _ in range(60)] for script in SCRIPTS}
    for n in range(count):
        script = list(SCRIPTS)[n % len(SCRIPTS)]
        vocabulary = vocabularies[script]
        if rng.random() < 0.15:
            vocabulary = vocabulary + vocabularies["latin"]
        ref = [rng.choice(vocabulary) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 21]))]
        hyp = spoil(rng, ref, vocabulary, rng.choice([0.01, 0.1, 0.4, 1.0]))
        if rng.random() < 0.02:
            hyp = []
        if not ref and rng.random() < 0.4:
            hyp = [rng.choice(vocabulary) for _ in range(rng.randint(1, 3))]
        yield " ".join(ref), rng.choice([" ", "  "]).join(hyp), SCRIPTS[script]
