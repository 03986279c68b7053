"""Which preset a run takes, and how large its pieces are: sized to the data, never to how fast the machine is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from agent.forecast import ELSEWHERE, HERE, Work
from tools.errors import UsageError

if TYPE_CHECKING:
    from agent.brief import Brief
    from agent.procedure import Skill
    from tools.train.config import GspoConfig

SMALL = 60
PROMPTS = 3


@dataclass(frozen=True)
class MiningPlan:
    """Sizes and thresholds of mining (`assets/mining.yaml`)."""

    clips: int
    answers: int
    extend_to: int
    temperature: float
    deepen_to: int = 32


def mining_plan(skill: Skill) -> MiningPlan:
    """Raises UsageError when the skill's mining.yaml is not what it should be."""
    path = skill.folder / "assets" / "mining.yaml"
    try:
        return MiningPlan(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be used: {error}") from error


def choose_preset(skill: Skill, brief: Brief, rows: dict[str, int], **overrides: Any) -> GspoConfig:
    """The brief's preset (a name of the skill's, or a YAML file of the customer's), or the one for this many training rows;
    never more groups than there are training clips."""
    from tools.train.config import load_config

    named = brief.answer_to("preset") or "auto"
    train = rows["train"]
    name = named if named != "auto" else ("local-small" if train >= SMALL else "local-tiny")
    path = brief.resolve(name) if name.endswith((".yaml", ".yml")) else skill.preset_path(name)
    config = load_config(path, random_seed=brief.answer_to("random_seed") or 0, **overrides)
    if config.groups > max(train, 1):
        groups = max(train, 1)
        config = config.model_copy(update={"groups": groups, "optimiser_steps": min(config.optimiser_steps, groups)})
    return config


def work_sizes(brief: Brief, rows: dict[str, int], config: GspoConfig, mining: MiningPlan) -> Work:
    """What a run of `config` on this many rows would have to do at worst."""
    return Work(
        **rows,
        prompts=len(brief.prompts or [None] * PROMPTS),
        mined=min(mining.clips, rows["train"]),
        updates=config.updates,
        groups=config.groups,
        answers=config.answers,
        offer_factor=config.offer_factor,
        checkpoint_every=config.checkpoint_every,
        decoding=ELSEWHERE if isinstance(brief.answer_to("seed_model"), dict) else HERE,
    )
