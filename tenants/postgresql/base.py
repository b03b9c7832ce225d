"""django-tenants' backend with one change: a scope is a search_path *and* a role, set together in one statement.

The wanted scope is remembered on the connection and asserted right before a statement, only when the server's state
may differ: after a change, a rollback (the settings are transactional), or a reconnect. Nothing reaches the server in
another scope than the wanted one.
"""

from dataclasses import dataclass
from typing import Any

from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from django.db.utils import DatabaseError
from django.utils.asyncio import async_unsafe
from django_tenants.postgresql_backend import base
from psycopg.pq import TransactionStatus

NO_ROLE = "none"  # PostgreSQL's word for "the role that logged in"
ASSERT_SCOPE = "SELECT set_config('search_path', %s, false), set_config('role', %s, false)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """What a connection is inside of."""

    search_path: str
    role: str


LOGIN_SCOPE = Scope(search_path="public", role=NO_ROLE)


class _ScopedExecution:
    """Asserts the scope at execution too: a cursor may be older than the scope."""

    db: "DatabaseWrapper"

    def _execute(self, sql: str, params: Any, *ignored: Any) -> Any:
        self.db.assert_scope()
        return super()._execute(sql, params, *ignored)  # type: ignore[misc]  # mixin over CursorWrapper

    def _executemany(self, sql: str, param_list: Any, *ignored: Any) -> Any:
        self.db.assert_scope()
        return super()._executemany(sql, param_list, *ignored)  # type: ignore[misc]  # mixin over CursorWrapper


class ScopedCursor(_ScopedExecution, CursorWrapper):
    """A cursor that never leaves the wanted scope."""


class ScopedDebugCursor(_ScopedExecution, CursorDebugWrapper):
    """The same, when queries are recorded."""


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]  # django-tenants has no annotations
    """A connection that knows which scope it is in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.wanted = LOGIN_SCOPE
        self._asserted: Scope | None = None
        super().__init__(*args, **kwargs)

    def enter(self, scope: Scope) -> Scope:
        """Want this scope from now on; returns the one before, for the caller to restore."""
        before, self.wanted = self.wanted, scope
        return before

    def assert_scope(self) -> None:
        """Bring the server into the wanted scope; one statement, or none."""
        if self._asserted == self.wanted or self.connection is None:
            return
        if self.connection.info.transaction_status == TransactionStatus.INERROR:
            return  # The server refuses everything but the rollback, after which we come here again.
        wanted, self._asserted = self.wanted, None
        try:
            with self.wrap_database_errors, self.connection.cursor() as cursor:
                cursor.execute(ASSERT_SCOPE, [wanted.search_path, wanted.role])
        except DatabaseError:
            self._discard()
            raise
        self._asserted = wanted

    def _discard(self) -> None:
        """A connection whose scope is unknown must not be used again, by us or through the pool."""
        self.connection.close()
        self.close()

    # --- django-tenants' own switching: superseded, so that no second statement is ever sent.
    def _handle_search_path(self, cursor: Any = None) -> None:
        self.assert_scope()

    def set_tenant(self, tenant: Any, include_public: bool = True) -> None:  # noqa: FBT001, FBT002 - their signature
        """Used by django-tenants for the schema of migrations; runs do not come here but enter a scope."""
        self.tenant = tenant
        self.schema_name = tenant.schema_name
        self.include_public_schema = include_public
        self.set_settings_schema(self.schema_name)
        path = self.schema_name if self.schema_name == "public" else f"{self.schema_name}, public"
        self.wanted = Scope(search_path=path, role=NO_ROLE)

    # --- Whenever the server may have forgotten, so do we.
    def connect(self) -> None:
        """Open a connection; it starts outside every scope."""
        self._asserted = None
        super().connect()

    def close(self) -> None:
        """Close, or give back to the pool."""
        self._asserted = None
        super().close()

    @async_unsafe
    def rollback(self) -> None:
        """Roll back: settings made in the transaction are gone."""
        try:
            super().rollback()
        finally:
            self._asserted = None

    @async_unsafe
    def savepoint_rollback(self, sid: str) -> None:
        """Roll back to a savepoint: settings made since are gone."""
        try:
            super().savepoint_rollback(sid)
        finally:
            self._asserted = None

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        """Wrap a raw cursor."""
        return ScopedCursor(cursor, self)

    def make_debug_cursor(self, cursor: Any) -> CursorDebugWrapper:
        """Wrap a raw cursor whose queries are recorded."""
        return ScopedDebugCursor(cursor, self)
