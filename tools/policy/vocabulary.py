"""Which tokens an answer may hold: the one place where the sampling distribution's support is decided.

Logits are computed for the first `width` ids only. Of these, `forbidden` may never be drawn (suppress list, special
tokens, timestamps) and `forbidden_first` may not open an answer either (begin-suppress list).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BLOCK = 128  # logit columns come in whole blocks, so that a draw can go block first
SPECIAL = re.compile(r"<\|.*\|>")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """`stop` is the stop token; `special` all ids that are no words (never in a text)."""

    width: int
    stop: int
    special: frozenset[int]
    forbidden: Tensor
    forbidden_first: Tensor

    def allowed(self, token: int, first: bool) -> bool:
        bad = self.forbidden_first if first else self.forbidden
        return 0 <= token < self.width and not bool((bad == token).any())

    def mask_(self, logits: Tensor, first: bool) -> Tensor:
        """Forbid in place: [..., width] logits get -inf where a token may not be drawn."""
        return logits.index_fill_(-1, self.forbidden_first if first else self.forbidden, -torch.inf)


def special_ids(tokenizer: Any) -> frozenset[int]:
    added = {at for token, at in tokenizer.get_added_vocab().items() if SPECIAL.fullmatch(token)}
    return frozenset(added | set(tokenizer.all_special_ids))


def build_vocabulary(
    size: int, tokenizer: Any, suppress: Iterable[int], begin_suppress: Iterable[int], device: torch.device
) -> Vocabulary:
    """Vocabulary of a model with `size` output rows. Negative ids in a suppress list mean nothing and are left out."""
    stop = int(tokenizer.convert_tokens_to_ids("<|endoftext|>"))
    special = special_ids(tokenizer)
    banned = {int(i) for i in suppress} | (special - {stop}) | set(range(len(tokenizer), size))
    top = max(i for i in range(size) if i not in banned) + 1
    width = min(size, -(-top // BLOCK) * BLOCK)
    bad = sorted(i for i in banned if 0 <= i < width)
    first = sorted(set(bad) | {int(i) for i in begin_suppress if 0 <= int(i) < width})
    ids = [torch.tensor(rows, dtype=torch.long, device=device) for rows in (bad, first)]
    return Vocabulary(width, stop, special, *ids)
