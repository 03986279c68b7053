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
NamedParameters = list[tuple[str, torch.nn.Parameter]]


class DecodeState(Protocol):
    """Rows being decoded: their self-attention cache and the clip each belongs to."""

    @property
    def rows(self) -> int: ...

    def repeat(self, n: int) -> None:
        """Make every row `n` rows, side by side (a clip's answers share its prompt)."""

    def keep(self, alive: Tensor) -> Tensor:
        """Drop the rows where `alive` [rows] (bool) is False. Rows may move: returns the old index of each new row."""


class Policy(Protocol):
    """A recogniser under training. Rows of a batch never change each other's clip-level features."""

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

    def encode(self, waves: Sequence[np.ndarray]) -> Tensor:
        """16 kHz float32 waves -> [B, S, d]; each clip alone, so that its output never depends on the batch."""

    def prompt_ids(self, prompt: str = "", lang: str | None = None, *, clip_id: str = "") -> Tokens: ...

    def text(self, tokens: Sequence[int]) -> str: ...

    def begin(self, encoded: Tensor, prompts: Sequence[Tokens], room: int) -> tuple[DecodeState, Tensor]:
        """Prefill B prompts of one length. Returns the state (B rows, `room` tokens to come) and logits [B, W]."""

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        """Feed one token a row [rows]; returns the logits of the next [rows, W] in the rows' present order."""

    def logprobs(
        self,
        encoded: Tensor,
        prompts: Sequence[Tokens],
        answers: Sequence[Sequence[Tokens]],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor]:
        """Teacher-forced log-probs of the answers' tokens under the sampling distribution, and mask, each [rows, T]."""

    def trainable(self, surface: str | Sequence[str]) -> NamedParameters: ...

    def export(self, folder: Path, provenance: dict[str, Any]) -> Path: ...
