"""The settings of a local GSPO run: every field typed, a sentence each, read from a preset file.

A preset is a flat YAML mapping; an unknown key, a wrong type or a value out of range is a UsageError that names it. The
resolved settings (defaults included) go into `runs/<id>/config.json`; their digest identifies the run.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tools.errors import UsageError
from tools.plain_yaml import read_yaml


class GspoConfig(BaseModel):
    """Everything that decides what a run computes. Two runs of one config, pool, seed model and prompts are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)

    preset: str = Field("", description="Name of the preset these settings came from.")
    method: Literal["gspo", "grpo", "sft"] = Field(
        "gspo",
        description="One clipped ratio an answer (gspo) or a token (grpo), or cross-entropy on references (sft).",
    )
    updates: int = Field(60, ge=1, description="Updates of the policy; each samples anew.")
    groups: int = Field(10, ge=1, description="Groups with contrast (clips) trained in an update.")
    answers: int = Field(8, ge=2, description="Answers sampled a clip.")
    offer_factor: int = Field(2, ge=1, description="At most this many times `groups` clips are sampled in an update.")
    temperature: float = Field(0.8, gt=0, le=2, description="Sampling temperature; the ratio uses the same one.")
    answer_limit: int = Field(64, ge=1, description="Most tokens of an answer, stop token included.")
    truncated: Literal["fair", "drop", "keep"] = Field(
        "fair",
        description=(
            "Answers cut at the limit: kept where already longer than their reference, so that the limit is not to blame, "
            "else left out of their group by id (fair); all left out (drop); all kept (keep)."
        ),
    )
    estimator: Literal["skill", "nemo_rl", "group_mean"] = Field("skill", description="How advantages are computed.")
    frontier_weight: float = Field(
        0.0,
        ge=0,
        le=20,
        description="Groups count by exp(-this * KL(success share || 1/2)); 0 counts all alike (seed 004's MGPO).",
    )
    frontier_reward: float = Field(
        -0.5, description="An answer is a success from this reward on, for the weight above."
    )
    std_floor: float = Field(0.01, ge=0, description="Reward std below which a group's advantages are not amplified.")
    clip_low: float = Field(0.2, gt=0, lt=1, description="The ratio is clipped below 1 - this.")
    clip_high: float = Field(0.28, gt=0, description="The ratio is clipped above 1 + this.")
    kl_weight: float = Field(0.0, ge=0, description="Weight of the per-token k3 penalty to the seed model; 0 is none.")
    kl_every: int = Field(5, ge=0, description="Measure KL to the seed model every so many updates; 0 is never.")
    optimiser_steps: int = Field(
        2, ge=1, description="Minibatches (optimiser steps) an update's groups are split into."
    )
    passes: int = Field(1, ge=1, description="How often an update's groups are gone through.")
    old_logprobs: Literal["sampled", "recomputed"] = Field(
        "sampled",
        description="The ratio's denominator: log-probs stored while sampling, or computed again before step 1.",
    )
    lr: float = Field(2e-5, gt=0, description="Learning rate after the warm-up; constant from there.")
    warmup_updates: int = Field(5, ge=0, description="Updates of linear warm-up.")
    weight_decay: float = Field(0.0, ge=0, description="AdamW's decoupled weight decay.")
    beta1: float = Field(0.9, ge=0, lt=1, description="AdamW's first moment decay.")
    beta2: float = Field(0.999, ge=0, lt=1, description="AdamW's second moment decay.")
    adam_eps: float = Field(1e-8, gt=0, description="AdamW's epsilon.")
    grad_clip: float = Field(1.0, gt=0, description="Gradients are scaled down to this global norm.")
    surface: str | tuple[str, ...] = Field(
        "decoder", description="What trains: a surface the policy names (decoder, all), or a list of tensor names."
    )
    freeze: tuple[str, ...] = Field(
        (), description="Tensors of the surface whose name contains one of these stay frozen."
    )
    surface_tensors: int | None = Field(None, ge=1, description="Asserted count of trainable tensors, where given.")
    surface_scalars: int | None = Field(None, ge=1, description="Asserted count of trainable scalars, where given.")
    adapter: Literal["none", "lora", "rslora", "dora", "rsdora"] = Field(
        "none", description="Low-rank adapters on the surface's linear layers train instead of the surface itself."
    )
    adapter_rank: int = Field(16, ge=1, description="Rank of the adapters.")
    adapter_alpha: float = Field(32.0, gt=0, description="Adapters are scaled by this over the rank (rs: its root).")
    adapter_layers: tuple[str, ...] = Field(
        (), description="Only linear layers whose name contains one of these are adapted; all of the surface if empty."
    )
    precision: Literal["float32", "bf16"] = Field(
        "float32", description="Arithmetic of the training forward; bf16 is autocast, the trained weights stay float32."
    )
    chunk_clips: int = Field(5, ge=1, description="Clips in one forward and backward; smaller needs less memory.")
    sample_clips: int = Field(16, ge=1, description="Clips sampled together; smaller needs less memory.")
    logprob_gap_max: float = Field(
        0.05, gt=0, description="Stop if training gives a sampled token another log-prob than sampling did, by so much."
    )
    stage_updates: int = Field(
        20, ge=1, description="After so many updates, and again after as many, dev decides whether the run goes on."
    )
    checkpoint_every: int = Field(10, ge=1, description="Updates between checkpoints, each one evaluated.")
    keep_resumable: int = Field(2, ge=1, description="Newest checkpoints that keep their optimiser state.")
    flat_updates: int = Field(3, ge=1, description="Stop after so many updates in a row without any contrast.")
    kl_max: float | None = Field(0.5, gt=0, description="Trust region: stop above this mean KL a token to the seed.")
    ratio_p99_max: float | None = Field(2.0, gt=1, description="Trust region: stop above this 99th percentile ratio.")
    empty_share_max: float | None = Field(0.3, gt=0, le=1, description="Trust region: stop above this empty share.")
    truncated_share_max: float | None = Field(
        0.3, gt=0, le=1, description="Trust region: stop above this share of answers cut at the limit."
    )
    length_ratio_min: float = Field(0.5, ge=0, description="Trust region: stop below this answer/reference length.")
    length_ratio_max: float = Field(1.5, gt=0, description="Trust region: stop above this answer/reference length.")
    wandb: Literal["off", "offline", "online"] = Field(
        "off", description="Write the figures to Weights & Biases too; offline needs no network and no account."
    )
    random_seed: int = Field(0, ge=0, description="Seeds the order of the clips and every answer.")

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("a number or a name is needed here, not yes or no")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> GspoConfig:
        if self.optimiser_steps > self.groups:
            raise ValueError(f"optimiser_steps {self.optimiser_steps} is more than groups {self.groups}")
        if self.length_ratio_min >= self.length_ratio_max:
            raise ValueError("length_ratio_min must be below length_ratio_max")
        return self

    @property
    def digest(self) -> str:
        """sha256 over the canonical JSON of all settings that decide what is computed: not `preset`, `wandb`, nor those of
        features that are off."""
        off = [p for p, on in (("adapter", self.adapter != "none"), ("frontier", self.frontier_weight > 0)) if not on]
        unused = {name for name in type(self).model_fields if name.startswith(tuple(off))} if off else set()
        body = self.model_dump(mode="json", exclude={"preset", "wandb"} | unused)
        return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def steps(self) -> int:
        """Optimiser steps of an update that retains all its groups."""
        return self.optimiser_steps * self.passes

    def learning_rate(self, update: int) -> float:
        """Learning rate of update `update` (from 1): linear over `warmup_updates`, then constant."""
        return self.lr * min(1.0, update / self.warmup_updates) if self.warmup_updates else self.lr

    def exposure(self, pool: int | None = None) -> dict[str, int | float]:
        """What the run shows the model, before it starts (seed 000 section 4).

        `pool` is the number of training clips; with it, how many times round them the presentations go at least
        (every group retained) and at most (every offer used).
        """
        presented = self.updates * self.groups
        offered = presented * self.offer_factor
        out: dict[str, int | float] = {
            "updates": self.updates,
            "groups": presented,
            "answers": presented * self.answers,
            "sampled_groups_worst": offered,
            "sampled_answers_worst": offered * self.answers,
            "optimiser_steps": self.updates * self.steps,
            "checkpoints": -(-self.updates // self.checkpoint_every),
        }
        if pool:
            out |= {"pool": pool, "epochs": presented / pool, "epochs_worst": offered / pool}
        return out


def load_config(path: Path, **overrides: Any) -> GspoConfig:
    """Read a preset file; `overrides` replace its values. Raises UsageError naming the file and the key."""
    try:
        body = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"preset {path} cannot be read: {error}") from error
    if not isinstance(body, dict):
        raise UsageError(f"preset {path} is not a mapping of settings to values")
    return make_config({"preset": path.stem, **body, **overrides}, where=f"preset {path}")


def make_config(values: dict[str, Any], where: str = "training settings") -> GspoConfig:
    """Settings from a mapping; raises UsageError with one sentence that names every bad key."""
    try:
        return GspoConfig.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"{where}: {'; '.join(_sentence(e) for e in error.errors())}") from None


def _sentence(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"][:1]) or "settings"
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}: use one of {', '.join(sorted(GspoConfig.model_fields))}"
    return (
        f"{key}: {error['msg'].removeprefix('Value error, ')} (given {error.get('input')!r})"
        if error["loc"]
        else (error["msg"].removeprefix("Value error, "))
    )
