"""The language model of Nemotron Transcribe at work: requests read once, then answers token by token or all at once.

Requests are padded on the left, where the attention mask and the recurrent layers' own mask leave the padding out; answers
that follow are padded on the right, where causality does. `R` rows, `L` positions so far, `d` width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tools.policy.base import Tokens


@dataclass(frozen=True)
class Windows:
    """Requests as vectors [B, L, d], and mask [B, L] (1 = real)."""

    vectors: Tensor
    mask: Tensor

    @classmethod
    def pad(cls, rows: Sequence[Tensor]) -> Windows:
        longest = max(map(len, rows))
        vectors = [torch.nn.functional.pad(row, (0, 0, longest - len(row), 0)) for row in rows]
        mask = torch.zeros(len(rows), longest, dtype=torch.long, device=rows[0].device)
        for at, row in enumerate(rows):
            mask[at, longest - len(row) :] = 1
        return cls(torch.stack(vectors), mask)


class TranscribeState:
    """Rows in decoding: the cache of the model's own layers, and which positions are real."""

    def __init__(self, language: Any, cache: Any, mask: Tensor) -> None:
        self.language, self.cache, self.mask = language, cache, mask

    @classmethod
    def read(cls, language: Any, windows: Windows) -> tuple[TranscribeState, Tensor]:
        """Read the requests; returns the state and the last position's hidden state [B, d]."""
        from transformers import DynamicCache

        state = cls(language, DynamicCache(config=language.config), windows.mask)
        return state, state._run(windows.vectors)[:, -1]

    @property
    def rows(self) -> int:
        return len(self.mask)

    def _run(self, vectors: Tensor) -> Tensor:
        out = self.language(inputs_embeds=vectors, attention_mask=self.mask, cache=self.cache, use_cache=True)
        hidden: Tensor = out.last_hidden_state
        return hidden

    def fork(self, parents: Sequence[int]) -> list[int]:
        """New rows, each a copy of the old row that `parents` names, in that order."""
        if list(parents) != list(range(self.rows)):
            index = torch.tensor(list(parents), device=self.mask.device)
            self.cache.reorder_cache(index)
            self.mask = self.mask[index]
        return list(range(len(parents)))

    def forward(self, tokens: Tensor) -> Tensor:
        """Append `tokens` [rows, t]; hidden states [rows, t, d]."""
        self.mask = torch.cat([self.mask, self.mask.new_ones(tokens.shape)], 1)
        return self._run(self.language.get_input_embeddings()(tokens))

    def forced(self, rows: Sequence[int], fed: Sequence[Tokens], first: Tensor) -> Tensor:
        """Hidden states [R, T, d] that predict every token of R answers, of which row r follows request `rows[r]`.

        `fed[r]` is the answer without its last token, `first` [B, d] the state that predicts the first one. Two tokens at
        least are fed: for a single one the layers would overwrite states that the backward pass needs.
        """
        start = first[list(rows)][:, None]
        longest = max(map(len, fed))
        if not longest:
            return start
        self.fork(rows)
        tokens = torch.zeros(len(fed), max(longest, 2), dtype=torch.long, device=self.mask.device)
        for at, answer in enumerate(fed):
            tokens[at, : len(answer)] = torch.tensor(answer)
        with as_single_steps(self.language):
            return torch.cat([start, self.forward(tokens)[:, :longest]], 1)


@contextmanager
def as_single_steps(language: Any) -> Iterator[None]:
    """Many tokens at once as one by one: transformers bounds a recurrent layer's time steps below (`time_step_min`) where
    it scans many tokens and not where it takes one, which made teacher-forced log-probs differ from sampled ones by 1e-3.
    """
    mixers = [layer.mixer for layer in language.layers if hasattr(layer.mixer, "time_step_limit")]
    before = [mixer.time_step_limit for mixer in mixers]
    for mixer in mixers:
        mixer.time_step_limit = (0.0, float("inf"))
    try:
        yield
    finally:
        for mixer, limit in zip(mixers, before):
            mixer.time_step_limit = limit
