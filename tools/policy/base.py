"""What decoding and training rely on: a policy, and the state of a decode in progress.

A policy is a speech recogniser that can be sampled, teacher-forced, trained and exported. The loops live in
`tools.decode`; they touch a model only through this protocol. `B` clips, `n` answers each, `W` logit columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from tools.policy.vocabulary import Vocabulary

Tokens = tuple[int, ...]
Encoded = Any  # encoder outputs: a Tensor [B, S, d]; or B tensors [S, d] of a policy whose clips differ in length
NamedParameters = list[tuple[str, torch.nn.Parameter]]


def join(parts: Sequence[Tensor]) -> Encoded:
    """Encoder outputs of single clips, together: stacked where all have one length, else as they are."""
    return torch.stack(list(parts)) if len({part.shape for part in parts}) == 1 else list(parts)


def pick(encoded: Encoded, clips: Sequence[int]) -> Encoded:
    """Encoder outputs of some of the clips."""
    return encoded[list(clips)] if isinstance(encoded, Tensor) else [encoded[c] for c in clips]


class DecodeState(Protocol):
    """Rows being decoded. Answers of a clip that have been equal so far are one row, which forks where they part."""

    @property
    def rows(self) -> int: ...

    def fork(self, parents: Sequence[int]) -> list[int]:
        """New rows, each a copy of the old row that `parents` names; old rows that nobody names are gone.

        Rows may be placed in any order: returns `order`, new row r being entry `order[r]` of `parents`.
        """


class Policy(Protocol):
    """A recogniser under training. Rows of a batch never change each other's clip-level features."""

    model: Any
    folder: Path
    vocabulary: Vocabulary
    multilingual: bool
    window_s: float
    max_target: int

    @property
    def device(self) -> torch.device: ...

    @property
    def digest(self) -> str: ...

    @property
    def encoder_digest(self) -> str: ...

    @property
    def encoder_trains(self) -> bool:
        """Whether the present surface holds a tensor of what `encode` runs."""

    def encode(self, waves: Sequence[np.ndarray]) -> Encoded:
        """16 kHz float32 waves -> [B, S, d]; each clip alone, so that its output never depends on the batch."""

    def prompt_ids(self, prompt: str = "", lang: str | None = None, *, clip_id: str = "") -> Tokens: ...

    def text(self, tokens: Sequence[int]) -> str: ...

    def answer_tokens(self, text: str) -> Tokens:
        """What `text` would be as an answer, stop token included."""

    def begin(
        self, encoded: Encoded, prompts: Sequence[Tokens], room: int, capacity: int
    ) -> tuple[DecodeState, Tensor]:
        """Prefill B prompts of one length. Returns the state (B rows) and logits [B, W].

        `room` tokens are to come; the state may fork up to `capacity` rows.
        """

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        """Feed one token a row [rows]; returns the logits of the next [rows, W] in the rows' present order."""

    def logprobs(
        self,
        encoded: Encoded,
        prompts: Sequence[Tokens],
        answers: Sequence[Sequence[Tokens]],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor]:
        """Teacher-forced log-probs of the answers' tokens under the sampling distribution, and mask, each [rows, T]."""

    def trainable(self, surface: str | Sequence[str]) -> NamedParameters: ...

    def export(self, folder: Path, provenance: dict[str, Any]) -> Path: ...
