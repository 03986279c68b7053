"""Money: reserve the worst case, run, settle with what was measured. The ledger is the account book.

Reservations and settlements are read back from the ledger, so a killed run knows what it has spent. The sum of what was
spent and what is still reserved never exceeds the cap; a reservation that does not fit is refused with a sentence that
says what it would take. Units: cpu_minutes, gpu_hours, money (with the brief's prices).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.brief import BudgetBrief
from agent.ledger.chain import Ledger, Record
from tools.errors import BudgetError, UsageError

SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Line:
    """One reservation: `spent` is None until it is settled."""

    reservation: str
    amount: float
    purpose: str
    spent: float | None
    seq: int


class Budget:
    """The account of one work directory, in one unit."""

    def __init__(self, ledger: Ledger, brief: BudgetBrief | None) -> None:
        self.ledger = ledger
        self.brief = brief

    @property
    def unit(self) -> str:
        """Raises BudgetError where no budget was given."""
        return self._given().unit

    @property
    def cap(self) -> float:
        return self._given().cap

    def _given(self) -> BudgetBrief:
        if self.brief is None:
            raise BudgetError("no budget was given: nothing is spent without a limit (--budget 40cpu_minutes)")
        return self.brief

    def lines(self) -> list[Line]:
        """All reservations in order, from the ledger."""
        settled = {r.payload["reservation"]: float(r.payload["amount"]) for r in self.ledger.records("settle")}
        return [
            Line(
                reservation=r.payload["reservation"],
                amount=float(r.payload["amount"]),
                purpose=r.payload["for"],
                spent=settled.get(r.payload["reservation"]),
                seq=r.seq,
            )
            for r in self.ledger.records("reserve")
        ]

    @property
    def spent(self) -> float:
        return sum(line.spent for line in self.lines() if line.spent is not None)

    @property
    def reserved(self) -> float:
        """What open reservations may still cost."""
        return sum(line.amount for line in self.lines() if line.spent is None)

    @property
    def left(self) -> float:
        return self.cap - self.spent - self.reserved

    def open(self) -> list[Line]:
        """Reservations not settled: of the work that runs now, or that a kill ended."""
        return [line for line in self.lines() if line.spent is None]

    def to_json(self) -> dict[str, Any] | None:
        """{unit, cap, reserved, spent}; None where no budget was given."""
        if self.brief is None:
            return None
        return {"unit": self.unit, "cap": self.cap, "reserved": round(self.reserved, 6), "spent": round(self.spent, 6)}

    def price(self, *, cpu_hours: float | None = None, gpu_hours: float | None = None) -> float:
        """An effort in the budget's unit. Raises BudgetError where the unit cannot price it (unknown price)."""
        unit = self.unit
        if unit == "cpu_minutes":
            return _known(cpu_hours, "CPU time", unit) * 60
        if unit == "gpu_hours":
            return _known(gpu_hours, "GPU time", unit)
        prices = self._given().prices or {}
        total = 0.0
        for name, hours in (("cpu_hour", cpu_hours), ("gpu_hour", gpu_hours)):
            if hours:
                if name not in prices:  # type: ignore[comparison-overlap]
                    raise BudgetError(f"the price of a {name} is not known: add budget.prices.{name} to the brief")
                total += hours * prices[name]  # type: ignore[index]
        return total

    def reserve(self, reservation: str, amount: float, purpose: str, *, state: str | None = None) -> Record:
        """Set the worst case aside before the work starts; the same reservation twice is the one on record.

        Raises BudgetError when it does not fit: the sentence says what it would take and what is left.
        """
        self.check(amount, purpose, having=reservation)
        known = self.ledger.last("reserve", reservation=reservation)
        if known is not None:
            return known
        payload = {"reservation": reservation, "unit": self.unit, "amount": float(amount), "for": purpose}
        return self.ledger.append("reserve", payload, state=state)

    def check(self, amount: float, purpose: str, *, having: str | None = None) -> None:
        """Raises BudgetError when `amount` does not fit in what is left; `having` is reserved already, not counted."""
        if not amount >= 0:
            raise UsageError(f"a reservation needs an amount, got {amount} for {purpose}")
        if any(line.reservation == having for line in self.lines()):
            return
        if amount > self.left + SLACK:
            raise BudgetError(
                f"{purpose} may cost {amount:.4g} {self.unit} and {max(self.left, 0):.4g} of {self.cap:.4g} are left: "
                f"it would take a budget of {self.spent + self.reserved + amount:.4g} {self.unit}"
            )

    def settle(self, reservation: str, amount: float, measured_by: str, *, state: str | None = None) -> Record:
        """Close a reservation with what was measured; a second settlement is refused (UsageError).

        More than was reserved is written down as it is: the audit shows it, and the next reservation sees it.
        """
        line = next((x for x in self.lines() if x.reservation == reservation), None)
        if line is None:
            raise UsageError(f"there is no reservation {reservation!r} to settle")
        if line.spent is not None:
            raise UsageError(f"reservation {reservation!r} is settled already")
        payload = {"reservation": reservation, "unit": self.unit, "amount": float(amount), "measured_by": measured_by}
        return self.ledger.append("settle", payload, state=state)

    def settle_lost(self, usage: Callable[[Line], tuple[float, str] | None]) -> list[Record]:
        """At a resume: settle what a kill left open, by evidence. `usage(line)` gives (amount, measured_by) or None.

        Without evidence the whole reservation counts as spent. Never more than was reserved is taken from evidence that
        claims more: that is written as measured.
        """
        out = []
        for line in self.open():
            amount, how = usage(line) or (line.amount, "no evidence of usage after a kill: counted in full")
            out.append(self.settle(line.reservation, amount, how))
        return out


def _known(hours: float | None, what: str, unit: str) -> float:
    if hours is None:
        raise BudgetError(f"{what} is needed to reckon in {unit} and is not known for this work")
    return hours


def budget_of(brief: Mapping[str, Any]) -> BudgetBrief | None:
    """The budget part of a brief's JSON (a plan record's), or None."""
    return BudgetBrief.model_validate(brief["budget"]) if brief.get("budget") else None
