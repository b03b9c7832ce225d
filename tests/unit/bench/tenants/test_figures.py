"""The table of the benchmark of many tenants."""

from io import StringIO

from rich.console import Console

from bench.tenants.figures import CONNECTIONS, TenantsFigure, table


def figure(tenants: int, connections: str) -> TenantsFigure:
    return TenantsFigure(
        tenants=tenants,
        connections=connections,
        runs=400,
        statements=10.04,
        planned=7.01,
        planning_ms=3.849,
        cpu_ms=8.475,
        total_ms=22.36,
        backends=5,
        pss_mb=293.4,
        largest_mb=62.98,
    )


def test_a_line_for_each_measurement() -> None:
    shown = StringIO()
    Console(width=200, file=shown).print(
        table([figure(number, name) for number in (2, 1000) for name in CONNECTIONS])
    )
    lines = [line for line in shown.getvalue().splitlines() if "3.85" in line]
    assert [line.replace("│", "").split()[:2] for line in lines] == [
        [str(number), name] for number in (2, 1000) for name in CONNECTIONS
    ]
    assert all("293" in line and "63" in line for line in lines)
