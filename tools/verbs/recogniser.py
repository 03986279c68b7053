"""A recogniser at work: a policy, the encoder outputs of the clips it has heard, and the weights it wears at the moment.

One seed model is loaded once; a checkpoint is the seed wearing other values in its trainable tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tools.rows import Answer, Clip

if TYPE_CHECKING:
    import torch

    from tools.decode.encoder_cache import EncoderCache
    from tools.policy.base import Policy

Progress = Callable[[int, int], None]
CHUNK = 16


def silent(done: int, total: int) -> None:
    """A progress callback that says nothing."""


@dataclass
class Recogniser:
    """`policy` with its encoder cache. `chunk` clips are decoded together, always in the same order, so that the same
    request gives the same answers to the bit."""

    policy: Policy
    cache: EncoderCache
    chunk: int = CHUNK
    _seed: dict[str, torch.Tensor] = field(default_factory=dict)
    can_sample: ClassVar[bool] = True
    can_repeat: ClassVar[bool] = True
    trains: ClassVar[bool] = True
    given: ClassVar[bool] = False

    @classmethod
    def load(cls, folder: Path, cache_dir: Path, threads: int, cache_gb: float = 4.0) -> Recogniser:
        """Loads a Hugging Face folder of a known family. Raises UsageError when it is not one."""
        import torch

        from tools.decode.encoder_cache import EncoderCache
        from tools.policy.load import load_policy

        torch.set_num_threads(threads)
        policy = load_policy(folder)
        return cls(policy, EncoderCache(policy, cache_dir, max_bytes=int(cache_gb * 2**30)))

    def wear(self, weights: Path | None) -> None:
        """Puts on the tensors of a checkpoint (safetensors); None puts the seed's back on."""
        import torch
        from safetensors.torch import load_file

        from tools.decode.encoder_cache import EncoderCache

        tensors = {} if weights is None else load_file(weights)
        named = dict(self.policy.model.named_parameters())
        for name in tensors:
            self._seed.setdefault(name, named[name].detach().clone())
        with torch.no_grad():
            for name, value in {**self._seed, **tensors}.items():
                if not torch.equal(named[name], value):
                    named[name].copy_(value)
        if self.cache.folder.name != self.policy.encoder_digest[:16]:  # the checkpoint has an encoder of its own
            self.cache = EncoderCache(self.policy, self.cache.root, self.cache.max_bytes, self.cache.read)

    def chunks(self, clips: Sequence[Clip]) -> Iterator[Sequence[Clip]]:
        for start in range(0, len(clips), self.chunk):
            yield clips[start : start + self.chunk]

    def prompts(self, clips: Sequence[Clip], prompt: str) -> list[tuple[int, ...]]:
        return [self.policy.prompt_ids(prompt, c.lang, clip_id=c.id) for c in clips]

    def greedy(self, clips: Sequence[Clip], prompt: str, limit: int, progress: Progress = silent) -> list[Answer]:
        """One greedy answer a clip, in the order of `clips`; at most `limit` tokens each."""
        from tools.decode.local import greedy

        out: list[Answer] = []
        for part in self.chunks(clips):
            encoded = self.cache.get(part)
            out += greedy(self.policy, encoded, self.prompts(part, prompt), limit, [c.id for c in part])
            progress(len(out), len(clips))
        return out

    def sample(
        self,
        clips: Sequence[Clip],
        prompt: str,
        limit: int,
        *,
        n: int,
        first: int = 0,
        temperature: float,
        seed: int,
        progress: Progress = silent,
    ) -> list[list[Answer]]:
        """Answers `first` to `first + n - 1` of each clip; an answer's own seed comes from (seed, clip id, index)."""
        from tools.decode.local import answer_seed, sample

        out: list[list[Answer]] = []
        for part in self.chunks(clips):
            seeds = [[answer_seed(seed, c.id, first + i) for i in range(n)] for c in part]
            groups = sample(
                self.policy,
                self.cache.get(part),
                self.prompts(part, prompt),
                [c.id for c in part],
                n,
                temperature,
                limit,
                seeds,
            )
            out += [[replace(a, index=first + a.index) for a in group] for group in groups]
            progress(len(out), len(clips))
        return out

    def longest_reference(self, clips: Sequence[Clip]) -> tuple[int, str]:
        """Token count and id of the longest reference, stop token included."""
        lengths: list[tuple[int, str]] = [(self.reference_tokens(c), c.id) for c in clips]
        return max(lengths, default=(1, ""))

    def reference_tokens(self, clip: Clip) -> int:
        """Tokens that writing the clip's reference takes, stop token included."""
        return len(self.policy.answer_tokens(clip.text or ""))

    def sampling(self, temperature: float, n: int, extend_to: int) -> dict[str, Any]:
        """What the contract says of sampling."""
        return {"temperature": temperature, "n": n, "extend_to": extend_to}

    def provenance(self) -> dict[str, Any]:
        """Name and licence of the model, from its folder."""
        from tools.policy.export import base_provenance

        known = base_provenance(self.policy.folder, self.policy.digest)
        return {k: known[k] for k in ("name", "licence")}

    def describe(self) -> dict[str, Any]:
        return {
            "digest": self.policy.digest,
            "multilingual": self.policy.multilingual,
            "window_s": self.policy.window_s,
        }
