"""The figures of one measurement, and the table that is printed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

CONNECTIONS = {
    "own": "each thread has its own, 100 plans each",
    "kept": "threads share them, each keeps to tenants",
}


@dataclass(frozen=True, kw_only=True)
class TenantsFigure:
    """The cost of runs of so many tenants, one after the other."""

    tenants: int
    connections: str  # a key of CONNECTIONS
    runs: int
    statements: float  # of a run, without submit
    planned: float  # of these
    planning_ms: float
    cpu_ms: float  # of the backends
    total_ms: float
    backends: int
    pss_mb: float  # of all of them
    largest_mb: float


def table(figures: Sequence[TenantsFigure]) -> Table:
    """Return the table to print; figures are per run, except PSS."""
    made = Table(title="three steps, tenants in turn, four slots; without submit and runtime")
    for heading in (
        "tenants", "connections", "statements", "planned", "planning ms", "backends' CPU ms", "total ms", "backends",
        "PSS MB", "largest MB",
    ):  # fmt: skip
        made.add_column(heading, justify="left" if heading == "connections" else "right")
    for one in figures:
        made.add_row(
            str(one.tenants), one.connections, f"{one.statements:.1f}", f"{one.planned:.2f}",
            f"{one.planning_ms:.2f}", f"{one.cpu_ms:.2f}", f"{one.total_ms:.2f}", str(one.backends),
            f"{one.pss_mb:.0f}", f"{one.largest_mb:.0f}",
        )  # fmt: skip
    return made
