from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.brief import BudgetBrief
from agent.budget import Budget
from agent.ledger.chain import Ledger
from tools.errors import BudgetError, UsageError


def budget(folder: Path, **brief: object) -> Budget:
    return Budget(Ledger.open(folder), BudgetBrief(**(brief or {"cpu_minutes": 10})))


def test_reserve_run_settle(tmp_path: Path) -> None:
    account = budget(tmp_path)
    account.reserve("train-1", 6, "training")
    assert account.to_json() == {"unit": "cpu_minutes", "cap": 10.0, "reserved": 6.0, "spent": 0}
    account.settle("train-1", 2.5, "process CPU time")
    assert account.to_json() == {"unit": "cpu_minutes", "cap": 10.0, "reserved": 0, "spent": 2.5}
    assert account.left == 7.5


def test_what_does_not_fit_is_refused_and_says_what_it_would_take(tmp_path: Path) -> None:
    account = budget(tmp_path)
    account.reserve("a", 6, "baseline")
    with pytest.raises(
        BudgetError, match=r"training may cost 5 cpu_minutes and 4 of 10 are left: it would take a budget of 11"
    ):
        account.reserve("b", 5, "training")
    assert [line.reservation for line in account.lines()] == ["a"]


def test_state_is_rebuilt_from_the_ledger(tmp_path: Path) -> None:
    first = budget(tmp_path)
    first.reserve("a", 3, "baseline")
    first.settle("a", 1, "clock")
    first.reserve("b", 4, "mining")
    first.ledger.close()
    again = budget(tmp_path)
    assert (again.spent, again.reserved, [x.reservation for x in again.open()]) == (1, 4, ["b"])


def test_the_same_reservation_twice_is_one(tmp_path: Path) -> None:
    account = budget(tmp_path)
    first = account.reserve("a", 9, "training")
    assert account.reserve("a", 9, "training").seq == first.seq
    assert account.reserved == 9


def test_a_settlement_needs_a_reservation_and_comes_once(tmp_path: Path) -> None:
    account = budget(tmp_path)
    with pytest.raises(UsageError, match="no reservation"):
        account.settle("a", 1, "clock")
    account.reserve("a", 2, "x")
    account.settle("a", 1, "clock")
    with pytest.raises(UsageError, match="settled already"):
        account.settle("a", 1, "clock")


def test_a_lost_reservation_is_settled_by_evidence_or_in_full(tmp_path: Path) -> None:
    account = budget(tmp_path)
    account.reserve("a", 2, "x")
    account.reserve("b", 3, "y")
    account.settle_lost(lambda line: (0.5, "meter file") if line.reservation == "a" else None)
    assert [line.spent for line in account.lines()] == [0.5, 3]
    assert account.open() == []


@pytest.mark.parametrize("amount", [-1, float("nan")])
def test_an_amount_that_is_none_is_refused(tmp_path: Path, amount: float) -> None:
    with pytest.raises(UsageError):
        budget(tmp_path).reserve("a", amount, "x")


def test_without_a_budget_nothing_is_spent(tmp_path: Path) -> None:
    account = Budget(Ledger.open(tmp_path), None)
    assert account.to_json() is None
    with pytest.raises(BudgetError, match="no budget was given"):
        account.reserve("a", 1, "x")


def test_prices(tmp_path: Path) -> None:
    assert budget(tmp_path).price(cpu_hours=0.5) == 30
    money = budget(tmp_path, money=5, currency="EUR", prices={"gpu_hour": 2.5})
    assert money.price(gpu_hours=2) == 5
    with pytest.raises(BudgetError, match="price of a cpu_hour is not known"):
        money.price(cpu_hours=1, gpu_hours=1)
    with pytest.raises(BudgetError, match="GPU time is needed"):
        budget(tmp_path, gpu_hours=5).price(cpu_hours=1)


steps = st.lists(st.tuples(st.floats(0, 6), st.floats(0, 1)), max_size=12)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_the_cap_is_never_exceeded(tmp_path_factory: pytest.TempPathFactory, work: list[tuple[float, float]]) -> None:
    account = budget(tmp_path_factory.mktemp("b"))
    for number, (worst, share) in enumerate(work):
        try:
            account.reserve(str(number), worst, "work")
        except BudgetError:
            assert worst > account.cap - account.spent - account.reserved
            continue
        assert account.spent + account.reserved <= account.cap + 1e-6
        if share < 0.7:
            account.settle(str(number), worst * share, "clock")
    assert account.spent + account.reserved <= account.cap + 1e-6
