"""A real policy small enough to train in a second: answers are words, audio is a few numbers a clip.

It follows the same protocol as the recognisers, is sampled by the same loop and trained by the same trainer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor, nn

from tools.policy.vocabulary import Vocabulary
from tools.rows import Clip
from tools.train.config import GspoConfig, make_config
from tools.train.surface import tensors_digest
from tools.train.trainer import RunResult, train

WORDS = 12
STOP = WORDS
START = WORDS + 1
LOOSE = {"kl_max": None, "ratio_p99_max": None, "empty_share_max": None, "truncated_share_max": None}
LOOSE |= {"length_ratio_min": 0, "length_ratio_max": 99}
DIM = 16


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(DIM, DIM, bias=False)
        self.decoder = nn.ModuleDict(
            {
                "words": nn.Embedding(WORDS + 2, DIM),
                "places": nn.Embedding(10, DIM),
                "mix": nn.Linear(3 * DIM, DIM),
                "out": nn.Linear(DIM, WORDS + 1),
            }
        )

    def logits(self, audio: Tensor, previous: Tensor, place: Tensor) -> Tensor:
        d = self.decoder
        x = torch.cat([audio, d["words"](previous), d["places"](place)], -1)
        return d["out"](torch.tanh(d["mix"](x)))


class State:
    def __init__(self, audio: Tensor) -> None:
        self.audio, self.place = audio, 0

    @property
    def rows(self) -> int:
        return len(self.audio)

    def fork(self, parents: Sequence[int]) -> list[int]:
        self.audio = self.audio[list(parents)]
        return list(range(len(parents)))


class ToyPolicy:
    multilingual, window_s, max_target = False, 30.0, 10

    def __init__(self, seed: int = 0, deaf: bool = False) -> None:
        torch.manual_seed(seed)
        self.model, self.deaf = Net(), deaf
        none = torch.tensor([], dtype=torch.long)
        self.vocabulary = Vocabulary(WORDS + 1, STOP, frozenset({STOP, START}), none, none)
        self.device = torch.device("cpu")

    @property
    def digest(self) -> str:
        return tensors_digest(dict(self.model.state_dict()))

    def encode(self, waves: Sequence[np.ndarray]) -> Tensor:
        return torch.stack([self.model.encoder(torch.from_numpy(w[:DIM]))[None] for w in waves])

    def prompt_ids(self, prompt: str = "", lang: str | None = None, *, clip_id: str = "") -> tuple[int, ...]:
        return (START,)

    def text(self, tokens: Sequence[int]) -> str:
        return " ".join(f"w{t}" for t in tokens if t < WORDS)

    def begin(
        self, encoded: Tensor, prompts: Sequence[tuple[int, ...]], room: int, capacity: int
    ) -> tuple[State, Tensor]:
        state = State(encoded[:, 0])
        return state, self.step(state, torch.tensor([p[-1] for p in prompts]))

    def step(self, state: State, tokens: Tensor) -> Tensor:
        out = self.model.logits(state.audio, tokens, torch.full_like(tokens, min(state.place, 9)))
        state.place += 1
        return out

    def logprobs(
        self, encoded: Tensor, prompts: Any, answers: Sequence[Sequence[tuple[int, ...]]], temperature: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        rows = [(b, a) for b, group in enumerate(answers) for a in group]
        width = max(len(a) for _, a in rows)
        ids, mask = torch.full((len(rows), width), STOP), torch.zeros(len(rows), width, dtype=torch.bool)
        for r, (_, a) in enumerate(rows):
            ids[r, : len(a)], mask[r, : len(a)] = torch.tensor(a), True
        previous = torch.cat([torch.full((len(rows), 1), START), ids[:, :-1]], 1)
        audio = encoded[[b for b, _ in rows]].expand(-1, width, -1)
        if self.deaf:
            audio = torch.zeros_like(audio)
        places = torch.arange(width).clamp(max=9).expand(len(rows), -1)
        z = self.model.logits(audio, previous, places) / temperature
        return z.log_softmax(-1).gather(2, ids[..., None])[..., 0] * mask, mask

    def trainable(self, surface: str | Sequence[str]) -> list[tuple[str, nn.Parameter]]:
        named = dict(self.model.named_parameters())
        chosen = [k for k in sorted(named) if (k.startswith(surface) if isinstance(surface, str) else k in surface)]
        for k, p in named.items():
            p.requires_grad_(k in chosen)
        return [(k, named[k]) for k in chosen]


def pool(n: int = 12) -> list[Clip]:
    """Clips whose reference follows from a number that their "audio" holds."""
    return [
        Clip(f"c{i:02d}", Path("none.wav"), f"w{i % 4} w{(i * 5) % 7} w{i % 3}", audio_sha256=f"{i:064x}")
        for i in range(n)
    ]


def wave(clip: Clip) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(clip.id.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).standard_normal(DIM).astype(np.float32)


def reward(hyp: str, ref: str, lang: str | None = None) -> float:
    return -min(Levenshtein.distance(hyp.split(), ref.split()) / len(ref.split()), 2.0)


def config(**more: Any) -> GspoConfig:
    base = {"updates": 12, "groups": 4, "answers": 6, "lr": 5e-2, "answer_limit": 8, "checkpoint_every": 4}
    return make_config({**base, "chunk_clips": 2, "kl_every": 3, **LOOSE, **more})


def run(
    folder: Path, settings: GspoConfig | None = None, policy: ToyPolicy | None = None, clips: Any = None, **more: Any
) -> tuple[RunResult, ToyPolicy]:
    policy = policy or ToyPolicy()

    def encode(batch: Sequence[Clip]) -> Tensor:
        with torch.no_grad():
            return policy.encode([wave(c) for c in batch])

    score: Callable[..., Any] = more.pop("reward", reward)
    result = train(
        policy, clips or pool(), encode, score, settings or config(), folder, prompts=lambda c: (START,), **more
    )
    return result, policy


def main(folder: str, kill_after: str) -> None:
    """Train until update `kill_after` has been written down, then die by SIGKILL; used by the resume tests."""
    import os
    import signal

    torch.set_num_threads(1)

    def on_event(event: dict[str, Any]) -> None:
        if f"{event['event']}:{event.get('update')}" == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    result, _ = run(Path(folder), on_event=on_event)
    print(result.trained_sha256)


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
