"""Rewards by name, and the audit that a reward must pass before it is used."""

from __future__ import annotations

from tools.reward.make import DEFAULTS, NAMES, Reward, make_reward, on_grid, reward_from, reward_of_contract

__all__ = ["DEFAULTS", "NAMES", "Reward", "make_reward", "on_grid", "reward_from", "reward_of_contract"]
