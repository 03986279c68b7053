"""The learning half of an update: retained groups in, optimiser steps out. Owns the trained tensors and AdamW."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tools.errors import CheckError, NonFinite
from tools.train import loss as losses
from tools.train.config import GspoConfig
from tools.train.prepare import TrainGroup
from tools.train.rollout import Encode, Prompts
from tools.train.surface import frozen_digest, plain_weights, trained_surface

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class StepStats:
    """What the optimiser steps of one update saw. Lists hold one entry a step; tensors are detached and flat."""

    loss: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    ratios: list[Tensor] = field(default_factory=list)
    clipped: float = 0.0
    counted: float = 0.0
    moved: float = 0.0
    gap: float = 0.0
    kl_mean: float | None = None
    kl_max: float | None = None


class Learner:
    """AdamW over the trained tensors, and the losses of minibatches cut into chunks that fit the memory."""

    def __init__(self, policy: Any, config: GspoConfig, encode: Encode, prompts: Prompts) -> None:
        import torch

        self.policy, self.config, self.encode, self.prompts = policy, config, encode, prompts
        self.temperature = 1.0 if config.method == "sft" else config.temperature
        self.named = trained_surface(policy, config)
        self.start = {k: p.detach().clone() for k, p in self.named.items()}
        self.frozen = frozen_digest(policy, self.named)
        self.optimiser = torch.optim.AdamW(
            list(self.named.values()),
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            eps=config.adam_eps,
            weight_decay=config.weight_decay,
            fused=True,
        )

    # -- one update ---------------------------------------------------------------------------------------------

    def update(self, update: int, groups: Sequence[TrainGroup]) -> StepStats:
        """Take the optimiser steps of one update. Raises NonFinite before a step that would spoil the weights."""
        stats = StepStats()
        for setting in self.optimiser.param_groups:
            setting["lr"] = self.config.learning_rate(update)
        refs = self._anchor_logprobs(update, groups, stats)
        batches = split(list(range(len(groups))), self.config.optimiser_steps)
        olds = self._recomputed(groups, batches) if self.config.old_logprobs == "recomputed" else {}
        fresh = True
        for _ in range(self.config.passes):
            for batch in batches:
                self._minibatch(groups, batch, olds, refs, stats, fresh)
                self._step(update, stats)
                fresh = False
        return stats

    def _minibatch(
        self,
        groups: Sequence[TrainGroup],
        batch: Sequence[int],
        olds: dict[int, Tensor],
        refs: dict[int, Tensor],
        stats: StepStats,
        fresh: bool,
    ) -> None:
        """Accumulate the gradient of one minibatch, chunk by chunk; the maths does not depend on the chunks."""
        import torch

        sequence = self.config.method == "gspo"
        total = float(
            sum(n * (1 if sequence else t) for i in batch for n, t in zip(groups[i].counts, groups[i].lengths))
        )
        value = 0.0
        for at in range(0, len(batch), self.config.chunk_clips):
            ids = batch[at : at + self.config.chunk_clips]
            chunk = [groups[i] for i in ids]
            new, mask = self._logprobs(chunk)
            if self.config.method == "sft":
                entropy = losses.cross_entropy(new, mask, total=total)
                _backward(entropy)
                value += entropy.item()
                continue
            sampled = pad([a.logprobs or () for g in chunk for a in g.answers], new)
            stats.gap = max(stats.gap, float(((new.detach() - sampled).abs() * mask).max())) if fresh else stats.gap
            old = new.detach() if fresh else torch.cat([_fit(olds[i], new) for i in ids]) if olds else sampled
            ref = torch.cat([_fit(refs[i], new) for i in ids]) if self.config.kl_weight else None
            out = (losses.gspo if sequence else losses.grpo)(
                new,
                old,
                mask,
                torch.tensor([a for g in chunk for a in g.advantages], dtype=new.dtype, device=new.device),
                torch.tensor([float(n) for g in chunk for n in g.counts], dtype=new.dtype, device=new.device),
                clip_low=self.config.clip_low,
                clip_high=self.config.clip_high,
                kl_weight=self.config.kl_weight,
                ref=ref,
                total=total,
            )
            _backward(out.loss)
            value += out.loss.item()
            self._note(out, [n for g in chunk for n in g.counts], stats, fresh)
        stats.loss.append(value)

    def _note(self, out: losses.PolicyLoss, counts: list[int], stats: StepStats, fresh: bool) -> None:
        """Figures over answers as sampled: a row stands for as many as its count."""
        import torch

        times = torch.tensor(counts)
        counted = out.counted.cpu().repeat_interleave(times, 0)
        ratios = out.ratios.cpu().repeat_interleave(times, 0)[counted].float()
        stats.ratios.append(ratios)
        stats.clipped += float(out.clipped.cpu().repeat_interleave(times, 0).sum())
        stats.counted += len(ratios)
        if not fresh and len(ratios):
            stats.moved = max(stats.moved, float((ratios - 1).abs().max()))

    def _step(self, update: int, stats: StepStats) -> None:
        """Raises CheckError where a trained tensor takes no part in the loss at all, NonFinite before a spoilt step."""
        import torch

        idle = [name for name, p in self.named.items() if p.grad is None]
        if idle:
            raise CheckError(
                f"{len(idle)} of {len(self.named)} trained tensors take no part in the loss, {idle[0]} among them: the "
                "training forward does not run them (an encoder that trains cannot have its outputs kept); narrow surface"
            )
        parameters = list(self.named.values())
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.config.grad_clip))
        stats.grad_norm.append(norm)
        for what, value in (("loss", stats.loss[-1]), ("gradient norm", norm)):
            if not math.isfinite(value):
                self.optimiser.zero_grad(set_to_none=True)
                raise NonFinite(f"the {what} of update {update} is {value}: the optimiser step was not taken")
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    # -- log-probs ----------------------------------------------------------------------------------------------

    def _logprobs(self, chunk: Sequence[TrainGroup]) -> tuple[Tensor, Tensor]:
        """Log-probs `[rows, T]` of a chunk's answers and their mask from lengths, both checked (F37)."""
        import torch

        clips = [g.clip for g in chunk]
        cast = (
            torch.autocast(self.policy.device.type, torch.bfloat16)
            if self.config.precision == "bf16"
            else nullcontext()
        )
        with cast:
            encoded = self.encode(clips)
            prompts = [self.prompts(c) for c in clips]
            new, mask = self.policy.logprobs(encoded, prompts, [g.tokens for g in chunk], self.temperature)
        lengths = [n for g in chunk for n in g.lengths]
        if mask.sum(1).tolist() != lengths:
            raise CheckError(
                f"the loss mask does not cover the answers of clips {[c.id for c in clips]} token by token"
            )
        return new, mask.to(new.dtype)

    def measure(self, groups: Sequence[TrainGroup], encode: Encode | None = None) -> dict[int, Tensor]:
        """Log-probs `[answers, T]` of every group under the present weights, without gradient, by position."""
        import torch

        out: dict[int, Tensor] = {}
        own, self.encode = self.encode, encode or self.encode
        try:
            with torch.no_grad():
                for at in range(0, len(groups), self.config.chunk_clips):
                    chunk = groups[at : at + self.config.chunk_clips]
                    parts = self._logprobs(chunk)[0].split([len(g.answers) for g in chunk])
                    out |= {at + k: part for k, part in enumerate(parts)}
        finally:
            self.encode = own
        return out

    def _recomputed(self, groups: Sequence[TrainGroup], batches: Sequence[Sequence[int]]) -> dict[int, Tensor]:
        """The denominators of the ratio, computed by the training forward; unused with one step an update."""
        return self.measure(groups) if len(batches) * self.config.passes > 1 else {}

    def _anchor_logprobs(self, update: int, groups: Sequence[TrainGroup], stats: StepStats) -> dict[int, Tensor]:
        """Log-probs under the seed model where a penalty or a measurement is due; notes KL to it in `stats`, over answers
        as sampled: a row stands for as many as its count."""
        c = self.config
        if c.method == "sft" or (not c.kl_weight and not (c.kl_every and update % c.kl_every == 0)):
            return {}
        with self.at_start():
            refs = self.measure(groups)
        total, tokens, top = 0.0, 0, 0.0
        for i, group in enumerate(groups):
            sampled = pad([a.logprobs or () for a in group.answers], refs[i])
            for row, n, length in zip(losses.k3(sampled, refs[i]), group.counts, group.lengths):
                total, tokens = total + n * float(row[:length].sum()), tokens + n * length
                top = max(top, float(row[:length].max()))
        stats.kl_mean, stats.kl_max = total / tokens, top
        if not math.isfinite(stats.kl_mean):
            raise NonFinite(f"KL to the seed model is {stats.kl_mean} at update {update}: no optimiser step was taken")
        return refs

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """The seed model's weights in place of the present ones; tensors are exchanged, not copied."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for name, parameter in self.named.items():
            parameter.data, self.start[name].data = self.start[name].data, parameter.data

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def adapted(self) -> bool:
        return self.config.adapter != "none"

    def weights(self) -> dict[str, Tensor]:
        """The trained tensors as they are (adapters apart)."""
        return {k: p.detach() for k, p in self.named.items()}

    def plain_weights(self) -> dict[str, Tensor]:
        """The trained tensors by the plain model's names, adapters merged."""
        return plain_weights(self.policy, self.named)

    def optimiser_state(self) -> dict[str, Tensor]:
        """AdamW's moments and step counts by tensor name."""
        out = {}
        for name, parameter in self.named.items():
            for key, value in self.optimiser.state.get(parameter, {}).items():
                out[f"{key}:{name}"] = value
        return out

    def restore(self, weights: dict[str, Tensor], optimiser: dict[str, Tensor] | None) -> None:
        """Put weights (and moments) back, in place. Raises CheckError where the names do not match the surface."""
        import torch

        if set(weights) != set(self.named):
            raise CheckError("the checkpoint holds other tensors than the training surface: it is of another run")
        with torch.no_grad():
            for name, parameter in self.named.items():
                parameter.copy_(weights[name])
        if optimiser is None:
            return
        self.optimiser.state.clear()
        for key, value in optimiser.items():
            kind, _, name = key.partition(":")
            parameter = self.named[name]
            self.optimiser.state[parameter][kind] = value.to(parameter.device)

    def to_start(self) -> None:
        """The seed model's own weights again."""
        self.restore(self.start, None)


def split(items: list[int], parts: int) -> list[list[int]]:
    """Contiguous parts of nearly equal size, none empty."""
    parts = max(1, min(parts, len(items)))
    edges = [round(k * len(items) / parts) for k in range(parts + 1)]
    return [items[a:b] for a, b in pairwise(edges)]


def pad(rows: Sequence[Sequence[float]], like: Tensor) -> Tensor:
    """Ragged rows -> `[R, T]` of the type, device and width of `like`, zeros to the right."""
    import torch

    out = torch.zeros(len(rows), like.shape[1])
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row)
    return out.to(like)


def _fit(row: Tensor, like: Tensor) -> Tensor:
    """Cut or pad `[n, t]` to the width of `like`."""
    import torch

    width = like.shape[1]
    return row[:, :width] if row.shape[1] >= width else torch.nn.functional.pad(row, (0, width - row.shape[1]))


def _backward(loss: Tensor) -> None:
    """Gradients of one chunk; none where nothing that trains is in it, which the step then says."""
    if loss.requires_grad:
        loss.backward()
