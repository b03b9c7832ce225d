"""Statistics of the benchmark."""

import pytest

from bench.figures import Sample, percentile, ratio, rows, spread


def sample(contender: str, *, number: int, rate: float, steps: int = 1) -> Sample:
    return Sample(
        contender=contender,
        steps=steps,
        round=number,
        runs=round(rate * 10),
        seconds=10.0,
        cpu_ms={"worker": 2.0, "postgres": 1.0},
        latencies_ms=[5.0, 7.0, 30.0],
    )


def test_a_spread_is_the_middle_and_both_ends() -> None:
    found = spread([3.0, 1.0, 2.0, 10.0])
    assert (found.median, found.least, found.most) == (2.5, 1.0, 10.0)


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (50, 10), (95, 19), (100, 20)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, expected: float) -> None:
    assert percentile(list(range(20, 0, -1)), percent) == expected


def test_ratios_are_taken_within_a_round() -> None:
    # Both are slower in the second round, so their ratio is the same.
    samples = [
        sample("plain", number=0, rate=100),
        sample("chain", number=0, rate=50),
        sample("plain", number=1, rate=10),
        sample("chain", number=1, rate=5),
        sample("plain", number=1, rate=1000, steps=3),
    ]
    assert ratio(samples, ("chain", 1), ("plain", 1)) == 0.5


def test_without_the_other_there_is_no_ratio() -> None:
    assert ratio([sample("chain", number=0, rate=50)], ("chain", 1), ("plain", 1)) is None


def test_rows_come_by_steps_and_in_the_order_asked_for() -> None:
    samples = [
        sample("chain", number=0, rate=20, steps=3),
        sample("chain", number=0, rate=50),
        sample("plain", number=0, rate=100),
        sample("chain", number=1, rate=70),
        sample("plain", number=1, rate=100),
    ]
    found = rows(samples, order=("plain", "chain"), baselines=("plain", "durable"))
    assert [(row.steps, row.contender) for row in found] == [
        (1, "plain"), (1, "chain"), (3, "chain"),
    ]  # fmt: skip
    chain = found[1]
    assert (chain.rate.median, chain.rate.least, chain.rate.most) == (60, 50, 70)
    assert chain.ratios == {"plain": 0.6}
    assert (chain.latency_ms.median, chain.latency_p95_ms, chain.cpu_ms) == (7.0, 30.0, 3.0)
