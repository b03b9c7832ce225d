"""Named statements, each its own transaction, prepared per connection and scope: planning takes longer than running.

Timing: request-time and background-worker.
Model: sync.
Guarantee: runs in the scope entered, as all others do.
Failure: over a lost connection it is tried once more, unless in a transaction; so it must be safe to repeat.
"""

import functools
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, cast

import psycopg
from django.db import InterfaceError, OperationalError, connections

from tenants.postgresql.base import DatabaseWrapper
from tenants.scope import ALIAS

RowT = TypeVar("RowT", bound=NamedTuple)
Parameters = Mapping[str, Any]
NO_PARAMETERS: Parameters = {}
_PARAMETER = re.compile(r"%\((\w+)\)s")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KEYWORD = re.compile(r"\s*(\w+)")


class Statement(Generic[RowT]):
    """A statement by its name: what it is given, and the row that it gives back.

    The parameters that are declared must be those of the text, `%(name)s`; and the fields of the row, its columns.
    """

    def __init__(
        self, name: str, text: str, *, row: type[RowT], parameters: Collection[str] = ()
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"the name of a statement is snake case: {name!r}")
        self._written = named(name, text)
        self.text, names = numbered(self._written)
        if set(names) != set(parameters):
            raise ValueError(
                f"statement {name}: declared are {sorted(parameters)}, in its text are {sorted(names)}"
            )
        self.name = name
        self.row = row
        self.parameters = names
        self.columns_compared = False

    def __repr__(self) -> str:
        return f"<Statement {self.name}>"

    def fetch(self, parameters: Parameters = NO_PARAMETERS) -> RowT | None:
        """Run it and return its first row. What it has no use for may be among the parameters."""
        connection = cast("DatabaseWrapper", connections[ALIAS])
        try:
            return _fetch_row(connection, self, parameters)
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block:
                raise
            connection.close()
            return _fetch_row(connection, self, parameters)

    def fetch_all(self, parameters: Parameters = NO_PARAMETERS) -> list[RowT]:
        """Run it over a cursor of Django's and return all rows: planned anew each time, and not tried once more."""
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(self._written, parameters)
            if not self.columns_compared:
                self.compare_columns(cursor.description)
            return [self.row._make(row) for row in cursor.fetchall()]

    def compare_columns(self, description: Iterable[Any] | None) -> None:
        """Refuse a row whose fields are not the columns; once is enough, since neither changes."""
        columns = tuple(column.name for column in description or ())
        if columns != self.row._fields:
            raise TypeError(
                f"statement {self.name}: the fields of {self.row.__name__} are {self.row._fields}, "
                f"its columns are {columns}"
            )
        self.columns_compared = True


def compose(*parts: str, then: str) -> str:
    """Put a statement together from common table expressions and what is done with them. Pure."""
    return "WITH " + ",\n".join(part.strip() for part in parts) + "\n" + then.strip()


def text_set(values: Iterable[str]) -> str:
    """Write constants of ours as an array: as a parameter the driver would build it anew each time. Pure."""
    return "ARRAY[" + ", ".join(f"'{value}'" for value in values) + "]::text[]"


def named(name: str, text: str) -> str:
    """Write the name behind the first word. Pure.

    pg_stat_statements drops a comment that stands before it, pg_stat_activity cuts off one at the end.
    """
    return _KEYWORD.sub(rf"\1 /* isolane:{name} */", text, count=1)


def numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """Write a statement as PostgreSQL takes it, and the names of its parameters in order. Pure.

    The driver does the same, but remembers 128 texts only, none of over 4096 bytes; and each tenant has its own.
    """
    numbers: dict[str, int] = {}
    found = _PARAMETER.sub(lambda match: f"${numbers.setdefault(match[1], len(numbers) + 1)}", text)
    if "%" in found:
        raise ValueError(f"parameters are written %(name)s, and nothing else with %: {text}")
    return found, tuple(numbers)


def _fetch_row(
    connection: DatabaseWrapper, statement: Statement[RowT], parameters: Parameters
) -> RowT | None:
    connection.ready()
    text = _of_scope(statement, connection.wanted.search_path)
    # Django's own cursors put the values into the text, and such a text is planned anew each time.
    with connection.wrap_database_errors, psycopg.RawCursor(connection.connection) as cursor:
        values = [parameters[name] for name in statement.parameters]
        cursor.execute(text, values, prepare=connection.prepares(text))
        row = cursor.fetchone()
        if not statement.columns_compared:
            statement.compare_columns(cursor.description)
    return None if row is None else statement.row._make(row)


@functools.lru_cache(maxsize=4096)
def _of_scope(statement: Statement[Any], search_path: str) -> bytes:
    """A text of the scope's own: PostgreSQL drops the plan of a statement that is run in another scope than before."""
    return f"{statement.text}\n-- {search_path}".encode()
