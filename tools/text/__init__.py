"""Normaliser profiles by name: `profile("basic")`. See docs/scoring.md for what each rule does and its known damage."""

from __future__ import annotations

from tools.text.profile import Profile, Rule
from tools.text.registry import names, profile

__all__ = ["Profile", "Rule", "names", "profile"]
