"""The figures and tables of the benchmark of the gate."""

from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from bench.gate.figures import (
    DIRECT,
    GATE,
    RouteCost,
    Times,
    Transfer,
    of_round,
    route_table,
    times_table,
    transfer_table,
)


def transfer(way: str, number: int, mb_s: float, cpu: float) -> Transfer:
    parts = {"runner": cpu, "server": cpu}
    return Transfer(direction="up", way=way, round=number, mb_s=mb_s, cpu=parts)


TRANSFERS = [
    transfer(DIRECT, 0, 1000, 0.2), transfer(GATE, 0, 200, 1.0),
    transfer(DIRECT, 1, 100, 0.4), transfer(GATE, 1, 50, 1.2),
    transfer(DIRECT, 2, 500, 0.2), transfer(GATE, 2, 150, 0.8),
]  # fmt: skip


def cost(name: str, rate: float) -> RouteCost:
    return RouteCost(name=name, round=0, rate=rate, start_ms=9.0, ram_mb=5.0, forwarder_mb=1.5)


def shown(table: Table) -> str:
    text = StringIO()
    Console(width=200, file=text).print(table)
    return text.getvalue()


def test_ratios_are_taken_within_a_round() -> None:
    assert of_round(TRANSFERS, "up", lambda one: one.mb_s) == pytest.approx(0.3)
    assert of_round(TRANSFERS, "up", lambda one: one.total) == pytest.approx(4.0)


def test_a_line_for_each_direction_and_way() -> None:
    (gate,) = [line for line in shown(transfer_table(TRANSFERS)).splitlines() if "gate │" in line]
    cells = [cell.strip() for cell in gate.strip("│").split("│")]
    assert cells == ["up", "gate", "150", "0.30", "1.00", "", "", "1.00", "2.00", "4.0"]


def test_times_have_their_percentiles_and_the_longest() -> None:
    text = shown(times_table([Times(name="a byte", ms=[float(ms) for ms in range(1, 101)])]))
    assert "50.000 │ 95.000 │ 100.000" in text


def test_runs_are_compared_with_the_first_kind() -> None:
    text = shown(route_table([cost("no resource", 20.0), cost("a route", 15.0)]))
    assert "0.75" in text
