"""The reward: what the brief asks for, what the contract froze, and that it orders bad outputs as it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.steps.common import contract, profile_of
from tools.errors import CheckError, UsageError

if TYPE_CHECKING:
    from agent.act import Context
    from tools.reward import Reward


def said_reward(context: Context) -> Reward:
    """What training pays for: the brief's reward, else that of the task. Raises UsageError where it does not suit."""
    from tools.reward import DEFAULTS, reward_from

    brief = context.session.brief
    task = str(brief.answer_to("task"))
    label = task == "label"
    try:
        reward = reward_from(brief.reward or DEFAULTS[task], profile_of(context))
    except UsageError as err:
        raise UsageError(f"the brief's reward: {err}") from err
    if (reward.kind == "label") != label:
        fitting = "label_exact" if label else "cer, wer, blend or keyword"
        raise UsageError(f"the brief's reward: {reward.name} does not suit task {task}: choose {fitting}")
    return reward


def frozen_reward(context: Context) -> Reward:
    """The contract's reward."""
    from tools.reward import reward_of_contract

    return reward_of_contract(contract(context)["reward"], profile_of(context))


def order_of_reward(context: Context) -> None:
    """The reward must order bad outputs as it must, before anything is sampled with it."""
    from tools.reward.audit import audit_reward

    result = audit_reward(frozen_reward(context))
    if not result.ok:
        raise CheckError(
            f"the reward puts bad outputs in the wrong order: {'; '.join(map(str, result.violations[:3]))}"
        )
    context.decide("reward", contract(context)["reward"]["name"], "orders bad outputs as it must", {"ok": True})
