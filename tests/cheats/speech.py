"""A recogniser without a model, for tests of the agent: it misreads words at a known rate, the same way every time.

It stands where `tools.verbs.recogniser.Recogniser` stands: steps, ledger and audit around it are real. How well it
hears depends on its digest (seed or checkpoint), on the prompt and on the answer's own seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from tools.rows import Answer, Clip
from tools.verbs.recogniser import Recogniser

WORDS = (
    "please move six crates to the office before monday morning and call nine drivers about seven late boxes".split()
)
TENSORS = ("model.encoder.conv1.weight", "model.decoder.layers.0.fc1.weight", "model.decoder.layers.1.fc2.weight")


def sha(*parts: Any) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def chance(*parts: Any) -> float:
    """A number in [0, 1) that depends on nothing but its arguments."""
    return int(sha(*parts)[:8], 16) / 2**32


def digest_of(tensors: dict[str, np.ndarray]) -> str:
    """As a policy's digest: sha256 over names and bytes."""
    h = hashlib.sha256()
    for name in sorted(tensors):
        h.update(name.encode() + np.ascontiguousarray(tensors[name]).tobytes())
    return h.hexdigest()


def seed_folder(folder: Path) -> Path:
    """A folder with the weights of a tiny seed model."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    save_file({name: rng.normal(size=(4, 4)).astype(np.float32) for name in TENSORS}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "whisper", "vocab_size": 51864}))
    return folder


class FakePolicy:
    multilingual = False
    window_s = 30.0
    max_target = 448

    def __init__(self, tensors: dict[str, np.ndarray], folder: Path) -> None:
        self.tensors, self.folder = tensors, folder

    @property
    def digest(self) -> str:
        return digest_of(self.tensors)

    def prompt_ids(self, prompt: str = "", lang: str | None = None, clip_id: str = "") -> tuple[int, ...]:
        return (50257, *(ord(c) for c in prompt), 50362)

    def encode_text(self, text: str) -> list[int]:
        return list(range(len(text.split())))


class FakeRecogniser(Recogniser):
    """`skill` maps a digest to the share of words it misreads; an unknown digest (the seed's) misreads half."""

    chunk = 16

    def __init__(self, weights: Path, skill: dict[str, float], tick: Callable[[str], None] = lambda what: None) -> None:
        self.tick = tick
        self.seed = load_file(weights)
        self.policy = FakePolicy(dict(self.seed), weights.parent)
        self.skill = skill
        self.cache = SimpleNamespace(get=lambda clips: None)

    def wear(self, weights: Path | None) -> None:
        self.policy.tensors = {**self.seed, **(load_file(weights) if weights else {})}

    def reference_tokens(self, clip: Clip) -> int:
        return len((clip.text or "").split()) + 1

    def longest_reference(self, clips: Sequence[Clip]) -> tuple[int, str]:
        return max(((self.reference_tokens(c), c.id) for c in clips), default=(1, ""))

    def describe(self) -> dict[str, Any]:
        return {"digest": self.policy.digest, "multilingual": False, "window_s": 30.0}

    def greedy(self, clips: Sequence[Clip], prompt: str, limit: int, progress: Any = None) -> list[Answer]:
        self.tick("greedy")
        return [self._answer(clip, prompt, limit, -1, None) for clip in clips]

    def sample(
        self,
        clips: Sequence[Clip],
        prompt: str,
        limit: int,
        *,
        n: int,
        first: int = 0,
        seed: int,
        temperature: float,
        **_: Any,
    ) -> list[list[Answer]]:
        self.tick("sample")
        return [[self._answer(c, prompt, limit, first + i, temperature, seed) for i in range(n)] for c in clips]

    def _answer(
        self, clip: Clip, prompt: str, limit: int, index: int, temperature: float | None, seed: int = 0
    ) -> Answer:
        rate = self.skill.get(self.policy.digest, 0.5) + (0.1 if prompt else 0.0)
        if clip.split == "retention":
            rate = 0.2
        rate += 0.3 * (chance(clip.speaker, "voice") - 0.5)  # some voices are harder
        if index >= 0:
            rate *= 2 * chance(clip.id, index, seed)
        words = []
        for i, word in enumerate((clip.text or "").split()):
            lucky = chance(clip.id, i, index) >= rate
            words.append(word if lucky else WORDS[int(chance(clip.id, i, index, "w") * len(WORDS))])
        tokens = tuple(range(len(words) + 1))
        own = None if index < 0 else int(sha(seed, clip.id, index)[:8], 16)
        return Answer(clip.id, " ".join(words), tokens, "stop", index, own, temperature or 0.0, (-0.1,) * len(tokens))
