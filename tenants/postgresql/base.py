"""django-tenants' backend with one change: a scope is a search_path *and* a role, set together in one statement.

The wanted scope is kept on the connection and asserted right before a statement, but only when the server's state may
differ: after a change, a rollback (the settings are transactional), or a reconnect. No statement reaches the server in
another scope than the wanted one.

Timing: request-time and background-worker.
Model: sync; a connection belongs to its thread.
Guarantee: at-most-once; the assertion of the scope comes first on a connection, and only it is sent twice.
Failure: a connection that died outside a transaction is replaced before anything else is sent; else bubble.
"""

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import psycopg
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from django.db.utils import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError
from django.utils.asyncio import async_unsafe
from django_tenants.postgresql_backend import base
from psycopg.pq import ConnStatus, TransactionStatus

from tenants.postgresql.database_scope import LOGIN_SCOPE, NO_ROLE, DatabaseScope
from tenants.postgresql.kept import KeptConnection, KeptConnections
from tenants.postgresql.plans import PLANS_MAX
from tenants.postgresql.pool import Pool

LAST_WORDS = 4  # reads of unsolicited messages: the server's reason to disconnect, then the end of the stream


class _ScopedExecution:
    """Asserts the scope at execution too: a cursor may be older than the scope, but not than the connection."""

    db: "DatabaseWrapper"
    cursor: psycopg.Cursor[Any]

    def _execute(self, sql: str, params: Any, *ignored: Any) -> Any:
        self.db.assert_scope_of(self.cursor)
        return super()._execute(sql, params, *ignored)  # type: ignore[misc]  # mixin over CursorWrapper

    def _executemany(self, sql: str, param_list: Any, *ignored: Any) -> Any:
        self.db.assert_scope_of(self.cursor)
        return super()._executemany(sql, param_list, *ignored)  # type: ignore[misc]  # mixin over CursorWrapper


class ScopedCursor(_ScopedExecution, CursorWrapper):
    """A cursor that never leaves the wanted scope."""


class ScopedDebugCursor(_ScopedExecution, CursorDebugWrapper):
    """The same cursor when queries are recorded."""


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]  # django-tenants has no annotations
    """A connection that knows which scope it is in."""

    connection: Any
    in_atomic_block: bool
    _all_kept: ClassVar[dict[str, KeptConnections]] = {}  # of this process, by alias

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.wanted = LOGIN_SCOPE
        self._asserted: DatabaseScope | None = None
        self._keeps = False
        self._place = KeptConnection()
        self._is_given_back = False
        super().__init__(*args, **kwargs)

    def enter(self, scope: DatabaseScope) -> DatabaseScope:
        """Want this scope from now on; return the one before, for the caller to restore."""
        before, self.wanted = self.wanted, scope
        return before

    def leave(self, before: DatabaseScope) -> None:
        """Want the scope before again; outside of all scopes a connection that threads share is put back."""
        self.wanted = before
        if self._keeps and before == LOGIN_SCOPE:
            self.give_back()

    def assert_scope_of(self, cursor: psycopg.Cursor[Any]) -> None:
        """Bring the server into the wanted scope for this cursor; refuse one of a connection that was given back."""
        if cursor.connection is not self.connection and not cursor.connection.closed:
            raise InterfaceError("a cursor of a connection that was given back")
        self.assert_scope()

    def assert_scope(self) -> None:
        """Bring the server into the wanted scope with one statement, or none."""
        if self._asserted == self.wanted or self.connection is None:
            return
        if self.connection.info.transaction_status == TransactionStatus.INERROR:
            return  # The server refuses everything but the rollback, after which we come here again.
        wanted, self._asserted = self.wanted, None
        try:
            with self.wrap_database_errors, self.connection.cursor() as cursor:
                cursor.execute(*wanted.statement())
        except Error:
            self._discard()
            raise
        self._asserted = wanted
        self._place.tenants.add(wanted.search_path)

    def keep(self) -> None:
        """From now on take connections that keep to tenants, and share them with other threads.

        Not for threads that hold a lock of their session. Where there is a pool, that one is shared.
        """
        self._keeps = self.pool is None and self.kept is not None

    def give_back(self) -> None:
        """Put the connection back where it is shared; a thread's own one stays until it has seen too many tenants."""
        if self.connection is None or self.in_atomic_block:
            return
        if self._keeps:
            self._put_back()
        elif self.pool is not None or self._place.is_used_up:
            self.close()

    def prepares(self, text: bytes) -> bool | None:
        """Say whether a statement is to be prepared; None leaves it to the driver."""
        return self._place.prepares(text) if self._keeps else None

    @contextmanager
    def refusing_statements(self) -> Iterator[None]:
        """Refuse every statement until the block ends."""
        before, self._is_given_back = self._is_given_back, True
        try:
            yield
        finally:
            self._is_given_back = before

    def ready(self) -> None:
        """Make sure of a live connection in the wanted scope, before anything is sent over it."""
        if self._is_given_back:
            raise RuntimeError("a statement after the connection was given back")
        if self._may_replace():
            if self._keeps and self._asserted != self.wanted:
                self._put_back()
            elif self._hung_up():
                self._discard()
        self.ensure_connection()
        try:
            self.assert_scope()
        except (OperationalError, InterfaceError):
            if not self._may_replace():
                raise
            self.ensure_connection()  # it enters the scope

    def _may_replace(self) -> bool:
        """Return True if nothing depends on the connection: no transaction, and no lock of the migrating owner."""
        return self.alias == DEFAULT_DB_ALIAS and not self.in_atomic_block

    def _hung_up(self) -> bool:
        """Return True if the server has closed the connection, without asking it."""
        if self.connection is None:
            return False
        pgconn = self.connection.pgconn
        try:
            for _ in range(LAST_WORDS):
                if not _readable(pgconn.socket):
                    break
                pgconn.consume_input()
        except psycopg.OperationalError:
            return True
        return bool(pgconn.status == ConnStatus.BAD)

    def _put_back(self) -> None:
        """Let other threads have the connection, in the scope that it is in: whoever takes it asserts its own."""
        if self.connection is not None:
            self._place.asserted, self._asserted, self.connection = self._asserted, None, None
            self._leave_place()

    def _leave_place(self) -> None:
        place, self._place = self._place, KeptConnection()
        if self._keeps and self.kept is not None:
            self.kept.put_back(place)

    def _take(self) -> bool:
        """Take the connection that keeps to the wanted tenant; false if there is none that lives."""
        self._leave_place()  # of a connection that was lost in a transaction
        if not self._keeps or self.kept is None:
            return False
        place = self._place = self.kept.take(self.wanted.search_path)
        self.connection, self._asserted = place.connection, place.asserted
        if self.connection is None:
            return False
        if self._hung_up():
            place.empty()
            self.connection = self._asserted = None
            return False
        self._begin_anew()
        return True

    def _begin_anew(self) -> None:
        """Do as Django does for a connection that it opens."""
        self.autocommit = True
        self.in_atomic_block = self.closed_in_transaction = self.needs_rollback = False
        self.savepoint_ids: list[str] = []
        self.atomic_blocks: list[Any] = []
        self.run_on_commit: list[Any] = []

    def _discard(self) -> None:
        """Close a connection whose scope is unknown; it must not be used again, here or through the pool."""
        self.connection.close()
        self.close()

    def _cursor(self, name: str | None = None) -> CursorWrapper:
        """Make a cursor; it belongs to its connection, so make that ready first."""
        self.ready()
        made: CursorWrapper = super()._cursor(name)
        return made

    @async_unsafe
    def set_autocommit(self, autocommit: bool, *args: Any, **options: Any) -> None:  # noqa: FBT001 - their signature
        """Begin or end a transaction; make the connection ready before, since it cannot be replaced within."""
        if not autocommit:
            self.ready()
        super().set_autocommit(autocommit, *args, **options)

    # --- django-tenants' own switching: superseded, so that no second statement is ever sent.
    def _handle_search_path(self, cursor: Any = None) -> None:
        self.assert_scope()

    def set_tenant(self, tenant: Any, include_public: bool = True) -> None:  # noqa: FBT001, FBT002 - their signature
        """Switch the schema for django-tenants' migrations; everything else enters a scope."""
        self.tenant = tenant
        self.schema_name = tenant.schema_name
        self.include_public_schema = include_public
        self.set_settings_schema(self.schema_name)
        path = self.schema_name if self.schema_name == "public" else f"{self.schema_name}, public"
        self.wanted = DatabaseScope(search_path=path, role=NO_ROLE)

    # --- Forget the asserted scope whenever the server may have lost it.
    def connect(self) -> None:
        """Take a connection or open one, and enter the wanted scope. Of those that are taken, all may be dead."""
        if self._take():
            with suppress(OperationalError, InterfaceError):
                self.assert_scope()
                return
        self._asserted = None
        super().connect()
        self._place.connection = self.connection
        if self._keeps:
            self.connection.prepared_max = PLANS_MAX
        taken = self.connection
        try:
            self.assert_scope()
        except (OperationalError, InterfaceError):
            if self.pool is None:
                raise
            self.pool.distrust(taken)
            super().connect()
            self.assert_scope()

    @property
    def pool(self) -> Pool | None:
        """The connections that this process shares, if it does; Django would create its usual kind of pool."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if options and self.alias not in {NO_DB_ALIAS, *self._connection_pools}:
            made = Pool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                configure=self._configure_connection,
                open=False,
                **options,
            )
            self._connection_pools.setdefault(self.alias, made)
        found: Pool | None = super().pool
        return found

    @property
    def kept(self) -> KeptConnections | None:
        """The connections that keep to tenants, if this process has any."""
        size = self.settings_dict.get("KEPT_CONNECTIONS", 0)
        if size and self.alias not in self._all_kept:
            self._all_kept.setdefault(self.alias, KeptConnections(size))
        return self._all_kept.get(self.alias)

    def close(self) -> None:
        """Close, or give back to the pool."""
        self._asserted = None
        super().close()
        # In a transaction Django forgets a closed connection only at the end, and then without a word.
        if self.connection is None or self.closed_in_transaction:
            self._leave_place()

    @async_unsafe
    def rollback(self) -> None:
        """Roll back; settings made in the transaction are lost."""
        try:
            super().rollback()
        finally:
            self._asserted = None

    @async_unsafe
    def savepoint_rollback(self, sid: str) -> None:
        """Roll back to a savepoint; settings made since are lost."""
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


def _readable(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))
