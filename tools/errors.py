"""Every error a customer can meet, as one small tree.

RehearError
├── UsageError        exit 2   a path, model folder, key or brief that cannot be used
├── BudgetError       exit 4   the next meaningful step does not fit the compute budget
├── CheckError        exit 5   a gate, a data check or the ledger failed
└── ProviderError     exit 6   a model provider or a cluster failed

A message is one clear sentence: what is wrong, where (file, row, id), and what to do.
"""

from __future__ import annotations


class RehearError(Exception):
    """Base of all errors that are shown to the customer as one sentence, without a traceback."""

    exit_code = 1
    kind = "internal"


class UsageError(RehearError):
    """A path, a model folder, a key or a brief that cannot be used."""

    exit_code = 2
    kind = "usage"


class BudgetError(RehearError):
    """The next meaningful step does not fit the compute budget."""

    exit_code = 4
    kind = "budget"


class CheckError(RehearError):
    """A gate, a data check or the ledger failed."""

    exit_code = 5
    kind = "check"


class NonFinite(CheckError):
    """Probabilities, a loss, a gradient or a penalty that are not finite numbers."""


class ProviderError(RehearError):
    """A model provider or a cluster failed."""

    exit_code = 6
    kind = "provider"
