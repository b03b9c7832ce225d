"""The node that queries a database."""

import base64
import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any

from isolane.context import NodeContext
from isolane.node import node
from isolane.results import Code, StepError
from isolane.shapes import Limits, Uses
from isolane.text import storable

if TYPE_CHECKING:
    import psycopg

ROWS_MAX = 100_000
_MESSAGE_MAX = 200  # characters of the server's message
_CANCELED = "57014"
# Serialization failures, deadlocks, lost connections, a server that shuts down or starts.
_PASSING = ("40001", "40P01", "08", "57P")


@node("sql.query")
def sql_query(
    ctx: NodeContext,
    *,
    resource: Annotated[str, Uses("database")],
    sql: Annotated[str, Limits(min_length=1)],
    parameters: Any = None,
    max_rows: Annotated[int, Limits(minimum=1, maximum=ROWS_MAX)] = 1_000,
) -> dict[str, Any]:
    """Run a statement in a database and return its rows."""
    if parameters is not None and not isinstance(parameters, list | dict):
        raise _refused("parameters: must be a list, for %s, or an object, for %(name)s")
    connection = ctx.resource(resource)

    import psycopg  # noqa: PLC0415 - a runner starts without it

    try:
        return _query(connection, sql, parameters or None, max_rows)
    except psycopg.Error as error:
        raise _failure(error, parameters) from error


def _query(
    connection: "psycopg.Connection[Any]", sql: str, parameters: Any, max_rows: int
) -> dict[str, Any]:
    from psycopg.rows import tuple_row  # noqa: PLC0415 - a runner starts without it

    with connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(sql.encode(), _bound(parameters))
        cursor.set_result(-1)  # the last of several statements
        if cursor.description is None:
            return {"rows": [], "row_count": max(cursor.rowcount, 0)}
        if cursor.rowcount > max_rows:
            reason = f"{cursor.rowcount} rows are over max_rows of {max_rows}; add a LIMIT, or query in parts"
            raise StepError(Code.OUTPUT_TOO_LARGE, f"sql.query: {reason}")
        names = [column.name for column in cursor.description]
        _refuse_twice(names)
        rows = [dict(zip(names, map(_json, row), strict=True)) for row in cursor]
        return {"rows": rows, "row_count": len(rows)}


def _bound(parameters: Any) -> Any:
    if isinstance(parameters, dict):
        return {name: _value(value) for name, value in parameters.items()}
    return None if parameters is None else [_value(value) for value in parameters]


def _value(value: Any) -> Any:
    """Return the value as a parameter: objects, and lists of them, as JSON; a list of plain values as an array."""
    from psycopg.types.json import Jsonb  # noqa: PLC0415 - a runner starts without it

    inside = value if isinstance(value, list) else [value]
    return Jsonb(value) if any(isinstance(one, dict) for one in inside) else value


def _json(value: Any) -> Any:
    """Return a value of a column as JSON; a type that JSON does not have becomes a text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    if isinstance(value, dict):
        return {str(name): _json(inner) for name, inner in value.items()}
    return str(value)  # Decimal keeps its digits, UUID its usual form


def _refuse_twice(names: Sequence[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _refused(f"two columns are called {twice!r}; rename one with AS")


def _failure(error: "psycopg.Error", parameters: Any) -> StepError:
    message = f"sql.query: {_without(_message(error), parameters)}"
    return StepError(_code(error), message)


def _code(error: "psycopg.Error") -> Code:
    import psycopg  # noqa: PLC0415 - a runner starts without it

    state = error.sqlstate or ""
    if state == _CANCELED:
        return Code.TIMEOUT
    is_lost = not state and isinstance(error, psycopg.OperationalError)
    return Code.TRANSIENT_ERROR if is_lost or state.startswith(_PASSING) else Code.UNKNOWN_ERROR


def _message(error: "psycopg.Error") -> str:
    """Return the server's primary message, without detail and context, or the driver's own."""
    message = error.diag.message_primary or next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}, {message}" if message else type(error).__name__


def _without(message: str, parameters: Any) -> str:
    """Mask parameters: a server repeats a value that it cannot parse, in quotation marks."""
    for value in _texts(parameters):
        message = message.replace(f'"{value}"', '"***"')
    return storable(message, _MESSAGE_MAX)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
    elif value is not None:
        yield str(value)


def _refused(reason: str) -> StepError:
    return StepError(Code.POLICY_VIOLATION, f"sql.query: {reason}")
