"""The steps of the chains with a database: through the context, and as legacy code does it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolane import NodeContext, node

if TYPE_CHECKING:
    from psycopg import Connection

RESOURCE = "shop"
GLOBAL_NAME = "bench-global"
_QUERY = "SELECT pg_backend_pid() AS pid"
_SLOW_QUERY = "SELECT pg_backend_pid() AS pid, pg_sleep(0.02)"

# The anti-pattern on purpose: one connection for all runs that this process will ever see.
_kept: dict[str, "Connection[dict[str, Any]]"] = {}


@node("bench.scoped")
def scoped(ctx: NodeContext, *, slow: bool) -> int:
    """Ask through the run's own connection."""
    return _asked(ctx.resource(RESOURCE), slow=slow)


@node("bench.global")
def unscoped(ctx: NodeContext, *, slow: bool, address_file: str) -> int:
    """Ask through the connection of the process."""
    if address_file not in _kept:
        _kept[address_file] = _connected(Path(address_file).read_text(encoding="utf-8"))
    return _asked(_kept[address_file], slow=slow)


def _asked(connection: "Connection[dict[str, Any]]", *, slow: bool) -> int:
    row = connection.execute(_SLOW_QUERY if slow else _QUERY).fetchone()
    return int(row["pid"]) if row else 0


def _connected(address: str) -> "Connection[dict[str, Any]]":
    import psycopg  # noqa: PLC0415 - the driver that imports this module for names needs none
    from psycopg.rows import dict_row  # noqa: PLC0415

    return psycopg.connect(
        address, application_name=GLOBAL_NAME, autocommit=True, row_factory=dict_row
    )
