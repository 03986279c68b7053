"""A stretch of work that is paid for: worst case reserved before, measured meanwhile, topped up or stopped, settled after.

A machine may be slower than the forecast. Work that is about to outrun its reservation reserves a quarter more where the budget
has room for it; where it has none, the work stops and the sentence says what it would take. Nothing runs unreserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent.budget import Line
from agent.meter import Meter, measured_before
from tools.errors import BudgetError

if TYPE_CHECKING:
    from agent.act import Context

NEAR = 0.95
MORE = 0.25


class Spending:
    """Open reservations of one purpose, in the budget's unit, and the meter that runs against them."""

    def __init__(self, context: Context, purpose: str, worst_cpu_minutes: float, meter: Meter) -> None:
        self.context, self.purpose, self.meter = context, purpose, meter
        self.first = context.session.budget.price(cpu_hours=worst_cpu_minutes / 60)
        self.lines: list[tuple[str, float]] = []

    @property
    def reservation(self) -> str:
        return self.lines[0][0]

    @property
    def spent(self) -> float:
        return self.context.session.budget.price(cpu_hours=self.meter.seconds / 3600)

    def reserve(self, amount: float) -> None:
        """Raises BudgetError when `amount` does not fit."""
        budget = self.context.session.budget
        name = f"{self.purpose}-{len(budget.lines()) + 1}"
        budget.reserve(name, amount, self.purpose, state=self.context.state)
        self.lines.append((name, amount))

    def cover(self) -> None:
        """Sees to it that what is being used is reserved. Raises BudgetError where the budget has no room for more."""
        reserved = sum(amount for _, amount in self.lines)
        if self.spent < NEAR * reserved:
            return
        left = self.context.session.budget.left
        more = min(max(MORE * self.first, 0.1 * reserved), left)
        if left < 0.05 * reserved:
            unit = self.context.session.budget.unit
            raise BudgetError(
                f"{self.purpose} has used its reservation of {reserved:.3g} {unit} and the budget has {max(left, 0):.3g} left: "
                f"a larger budget goes on from here"
            )
        self.reserve(more)

    def settle(self) -> None:
        """What was measured, dealt out over the reservations in order; the last takes what is over."""
        budget, rest = self.context.session.budget, self.spent
        for i, (name, amount) in enumerate(self.lines):
            part = rest if i == len(self.lines) - 1 else min(rest, amount)
            rest -= part
            budget.settle(name, part, "process CPU time", state=self.context.state)


@contextmanager
def spending(context: Context, purpose: str, worst_cpu_minutes: float) -> Iterator[Spending]:
    """Reserves, measures, settles on every way out. Reservations that a killed attempt left open are settled first, with
    what its meter had written."""
    budget, path = context.session.budget, context.workdir / ".rehear" / "meter.json"
    before = {"left": measured_before(path, purpose)}

    def usage(line: Line) -> tuple[float, str] | None:
        """A lost attempt's measured time, dealt out over its open reservations in order."""
        if before["left"] is None or line.purpose != purpose:
            return None
        spent = budget.price(cpu_hours=before["left"] / 3600)
        part = min(spent, line.amount)
        before["left"] = max(0.0, before["left"] * (1 - part / spent)) if spent else 0.0
        return part, "process CPU time until the kill"

    budget.settle_lost(usage)
    with Meter(path, purpose) as meter:
        work = Spending(context, purpose, worst_cpu_minutes, meter)
        work.reserve(work.first)
        context.spending = work
        try:
            yield work
        finally:
            context.spending = None
            work.settle()
