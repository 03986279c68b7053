import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import UsageError
from tools.select import Rule, select_checkpoint


def rows(*figures: tuple) -> list[dict]:
    return [{"update": u, "dev": d, "retention": r, "digest": f"d{u}"} for u, d, r in figures]


def test_the_field_case() -> None:
    """F48: s10 wins; s30 breaks retention; s20 and s40 are not candidates and are named."""
    nan = float("nan")
    got = select_checkpoint(
        rows(("seed", 0.20, 0.10), (10, 0.15, 0.10), (20, nan, None), (30, 0.12, 0.18), (40, None, None)),
        Rule(retention_limit=0.01),
    )
    assert got.update == 10
    assert got.digest == "d10"
    assert [r["update"] for r in got.rejected] == [20, 30, 40]
    why = {r["update"]: r["why"] for r in got.rejected}
    assert "nan" in why[20]
    assert "0.1800 is beyond the limit of 0.1100" in why[30]
    assert "missing" in why[40]
    assert "0.1500 (seed 0.2000)" in got.why
    assert got.to_json()["selected"] == 10


@pytest.mark.parametrize(
    ("figures", "chosen", "says"),
    [
        ([("seed", 0.2, 0.1)], "seed", "no checkpoint to choose"),
        ([("seed", 0.2, 0.1), (10, 0.1, 0.2)], "seed", "none of 1 checkpoints"),
        ([("seed", 0.2, 0.1), (10, 0.3, 0.1)], "seed", "no checkpoint has a better"),
        ([("seed", 0.2, 0.1), (10, 0.2, 0.1)], "seed", "no checkpoint has a better"),  # a tie: the earlier
        ([("seed", 0.2, 0.1), (20, 0.1, 0.1), (10, 0.1, 0.1)], 10, "best dev"),
        ([("seed", 0.2, 0.1), (10, 0.1, 0.11), (20, 0.15, 0.1)], 10, "best dev"),  # exactly at the limit is within it
        ([(0, 0.2, 0.1), (10, 0.1, 0.05)], 10, "best dev"),  # update 0 is the seed
    ],
)
def test_outcomes(figures: list[tuple], chosen: object, says: str) -> None:
    got = select_checkpoint(rows(*figures), Rule(retention_limit=0.01))
    assert got.update == chosen
    assert says in got.why


def test_without_a_retention_set() -> None:
    got = select_checkpoint(rows(("seed", 0.2, None), (10, 0.1, None)), Rule(retention_limit=None))
    assert got.update == 10


def test_higher_is_better() -> None:
    rule = Rule(metric="macro_recall", higher_is_better=True, retention_limit=0.02)
    got = select_checkpoint(rows(("seed", 0.5, 0.9), (10, 0.8, 0.85), (20, 0.7, 0.89)), rule)
    assert got.update == 20


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (rows((10, 0.1, 0.1)), "seed model is not among"),
        (rows(("seed", None, 0.1), (10, 0.1, 0.1)), "evaluate the seed first"),
        (rows(("seed", 0.2, 0.1), (10, 0.1, 0.1), (10, 0.3, 0.1)), "10 is a candidate twice"),
        ([*rows(("seed", 0.2, 0.1)), {"update": 10, "dev": 0.1, "retention": 0.1, "test": 0.0}], "test"),
        (rows(("seed", 0.2, 0.1), ("best", 0.1, 0.1)), "neither 'seed' nor"),
    ],
)
def test_misuse_is_named(bad: list[dict], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        select_checkpoint(bad)


def test_a_limit_that_is_no_limit_is_refused() -> None:
    for limit in (float("nan"), math.inf, -0.1):
        with pytest.raises(UsageError, match="retention_limit"):
            Rule(retention_limit=limit)


@pytest.mark.parametrize("dev", [-0.1, True, "0.1", float("-inf"), [0.1]])
def test_what_is_no_rate_is_no_candidate(dev: Any) -> None:
    chosen = select_checkpoint(rows(("seed", 0.20, 0.10), (10, dev, 0.10), (20, 0.15, 0.10)))
    assert chosen.update == 20 and [r["update"] for r in chosen.rejected] == [10]
    with pytest.raises(UsageError, match="the seed model's row cannot be used"):
        select_checkpoint(rows(("seed", dev, 0.10), (10, 0.15, 0.10)))


figure = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 2))


@given(st.lists(st.tuples(figure, figure), max_size=8), st.floats(0, 1), st.floats(0, 1), st.randoms())
def test_laws(figures: list[tuple], dev: float, retention: float, random) -> None:
    """Order of the rows does not matter; the choice is eligible, never worse than the seed, within the limit."""
    candidates = rows(("seed", dev, retention), *((10 * (i + 1), d, r) for i, (d, r) in enumerate(figures)))
    got = select_checkpoint(candidates)
    random.shuffle(candidates)
    assert select_checkpoint(candidates).update == got.update
    chosen = next(c for c in got.candidates if c.update == got.update)
    assert chosen.eligible
    assert chosen.dev <= dev
    assert chosen.retention <= retention + 0.01 + 1e-9
    assert len(got.candidates) == len(figures) + 1


def test_a_protected_class_that_lost_too_much_rules_a_checkpoint_out_and_is_named():
    rule = Rule("label_error", retention_limit=None, protected=("stop",), class_limit=0.05)
    rows = [
        {"update": "seed", "dev": 0.4, "retention": None, "digest": "a", "recall": {"stop": 0.9}},
        {"update": 10, "dev": 0.3, "retention": None, "digest": "b", "recall": {"stop": 0.86}},
        {"update": 20, "dev": 0.1, "retention": None, "digest": "c", "recall": {"stop": 0.5}},
        {"update": 30, "dev": 0.1, "retention": None, "digest": "d"},
    ]
    chosen = select_checkpoint(rows, rule)
    assert chosen.update == 10 and "protected classes" in chosen.to_json()["rule"]
    assert chosen.rejected[0] == {
        "update": 20,
        "why": "recall of protected class stop 0.5000 is below the limit of 0.8500",
    }
    assert "missing" in chosen.rejected[1]["why"]
