"""Nodes of the chains with a database: through the context, and like legacy code."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolane import NodeContext, node

if TYPE_CHECKING:
    from psycopg import Connection

RESOURCE = "shop"
_QUERY = "SELECT pg_backend_pid() AS pid"
_SLOW_QUERY = "SELECT pg_backend_pid() AS pid, pg_sleep(0.02)"

# Anti-patterns on purpose. A runner has one run at a time, and without a context nothing cleans up after it.
_kept: dict[str, "Connection[dict[str, Any]]"] = {}  # for all runs of this process
_by_hand: list["Connection[dict[str, Any]]"] = []  # of the current run


@node("bench.scoped")
def scoped(ctx: NodeContext, *, slow: bool) -> int:
    """Query through the run's own connection."""
    return _query(ctx.resource(RESOURCE), slow=slow)


@node("bench.by_hand")
def by_hand(
    ctx: NodeContext, *, slow: bool, address_file: str, is_first: bool, is_last: bool
) -> int:
    """Query through a connection that the first step opens and the last one closes, if it is reached."""
    if is_first:
        _by_hand.append(_connected(address_file))
    pid = _query(_by_hand[-1], slow=slow)
    if is_last:
        _by_hand.pop().close()
    return pid


@node("bench.kept")
def kept(ctx: NodeContext, *, slow: bool, address_file: str) -> int:
    """Query through the connection of the process."""
    if address_file not in _kept:
        _kept[address_file] = _connected(address_file)
    return _query(_kept[address_file], slow=slow)


def _query(connection: "Connection[dict[str, Any]]", *, slow: bool) -> int:
    row = connection.execute(_SLOW_QUERY if slow else _QUERY).fetchone()
    return int(row["pid"]) if row else 0


def _connected(address_file: str) -> "Connection[dict[str, Any]]":
    import psycopg  # noqa: PLC0415 - the benchmark driver imports only names
    from psycopg.rows import dict_row  # noqa: PLC0415

    address = Path(address_file).read_text(encoding="utf-8")
    return psycopg.connect(
        address, application_name="bench-legacy", autocommit=True, row_factory=dict_row
    )
