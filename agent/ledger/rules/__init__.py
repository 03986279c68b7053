"""The rules of the audit, one module a theme; each rule is an id, a sentence and a check over the evidence."""

from __future__ import annotations

from agent.ledger.evidence import Rule
from agent.ledger.rules import (
    chain,
    claims,
    conditions,
    data,
    effects,
    evals,
    going,
    headroom,
    labels,
    money,
    pages,
    sampling,
    selection,
    testing,
    training,
)

ALL: tuple[Rule, ...] = (
    *chain.RULES,
    *effects.RULES,
    *money.RULES,
    *data.RULES,
    *conditions.RULES,
    *evals.RULES,
    *labels.RULES,
    *training.RULES,
    *going.RULES,
    *sampling.RULES,
    *selection.RULES,
    *testing.RULES,
    *headroom.RULES,
    *claims.RULES,
    *pages.RULES,
)
