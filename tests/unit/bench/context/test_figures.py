"""The cost of the context, computed from samples."""

import pytest

from bench.context.chains import Contender
from bench.context.figures import Measured, middle, rows
from bench.context.visits import Visits
from bench.figures import Sample


def measured(
    name: str, *, number: int = 0, rate: float = 100, ms: float = 10, connections: int | None = None
) -> Measured:
    chain, mode = name.split("-")
    sample = Sample(
        contender=name,
        steps=10,
        round=number,
        runs=round(rate * 3),
        seconds=3.0,
        cpu_ms={"isolane-worker": 6.0 if mode == "on" else 4.0, "postgres": 1.0},
        latencies_ms=[ms, ms, ms * 3],
    )
    runs = sample.runs + 3 if connections is None else connections
    visits = Visits(connections=runs, runs=runs) if mode == "on" else Visits(connections=0, runs=0)
    return Measured(contender=Contender(chain, mode), sample=sample, visits=visits)


def test_costs_are_taken_within_a_round() -> None:
    # Both are slower in the second round, so the context costs the same.
    (row,) = rows(
        [
            measured("plain-on", number=0, rate=100, ms=12),
            measured("plain-off", number=0, rate=125, ms=10),
            measured("plain-off", number=1, rate=12.5 * 2, ms=100),
            measured("plain-on", number=1, rate=10 * 2, ms=120),
        ]
    )
    assert row.run_ms.percent.median == pytest.approx(25)
    assert row.run_ms.percent.least == pytest.approx(row.run_ms.percent.most)
    assert row.idle_ms.percent.median == pytest.approx(20)
    assert row.cpu_ms.percent.median == pytest.approx(40)
    assert not row.run_ms.is_under_limit
    assert row.cpu_on["isolane-worker"] == 6.0
    assert row.connections is None


def test_ten_percent_are_not_under_ten_percent() -> None:
    on, off = measured("plain-on", rate=100), measured("plain-off", rate=110)
    (row,) = rows([on, off])
    assert row.run_ms.percent.median == pytest.approx(10)
    (better,) = rows([on, measured("plain-off", rate=109)])
    assert better.run_ms.is_under_limit


def test_each_run_of_a_chain_with_a_database_opens_one_connection() -> None:
    pair = [measured("query-on"), measured("query-off")]
    (row,) = rows(pair)
    assert row.one_each
    assert row.connections == 1.0
    (row,) = rows(
        [*pair, measured("query-on", number=1, connections=1), measured("query-off", number=1)]
    )
    assert not row.one_each


def test_a_chain_has_a_row_for_each_way_without_the_context() -> None:
    found = rows([measured("query-on"), measured("query-off"), measured("query-kept", rate=200)])
    assert [(row.chain, row.baseline) for row in found] == [("query", "off"), ("query", "kept")]
    assert [round(row.run_ms.percent.median) for row in found] == [0, 100]


@pytest.mark.parametrize(
    ("number", "least", "most"),
    [(1, 0, 0), (5, 0, 4), (6, 0, 5), (9, 1, 7), (15, 3, 11), (20, 5, 14)],
)
def test_the_interval_of_a_median_is_that_of_the_sign_test(
    number: int, least: int, most: int
) -> None:
    """The ranks are those of published tables, counted from 0."""
    found = middle([float(value) for value in reversed(range(number))])
    assert (found.least, found.most) == (least, most)
    assert found.median == (number - 1) / 2
