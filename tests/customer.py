"""The customer's PostgreSQL, and looks at it from the remote server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from orchestrator.embedded.customer import DATABASE, CustomerLogin, CustomerPostgres
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.supervisor import Supervisor


class Customer:
    """A running server: its address, its login, and its records of the platform's visits."""

    dbname = DATABASE

    def __init__(self, server: CustomerPostgres, sockets: Path | None) -> None:
        self._server = server
        self.sockets = sockets  # the folder of its Unix socket
        self.host = server.host
        self.port = server.port
        self.admin = server.admin
        self.reader = server.reader

    @property
    def admin_user(self) -> str:
        return self.admin.user

    @property
    def admin_password(self) -> str:
        return self.admin.password

    def connect(self, login: CustomerLogin | None = None) -> "psycopg.Connection[DictRow]":
        """In autocommit with rows as dicts; the superuser unless told otherwise."""
        url = self._server.url(login or self._server.superuser)
        return psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def activity(self, execution_id: object) -> list[dict[str, Any]]:
        """The sessions that say they belong to this execution."""
        return self._rows(
            "SELECT * FROM pg_stat_activity WHERE strpos(application_name, %s) > 0 ORDER BY pid",
            str(execution_id),
        )

    def roles(self, prefix: str) -> list[str]:
        """The names of the roles that begin so."""
        rows = self._rows(
            "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s) ORDER BY rolname", prefix
        )
        return [row["rolname"] for row in rows]

    def log_lines(self, text: object) -> list[str]:
        """The lines of the server's log with this text; a session's last is written after its client has left."""
        lines = self._server.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if str(text) in line]

    def _rows(self, statement: str, *values: str) -> list[dict[str, Any]]:
        with self.connect() as connection:
            return connection.execute(statement, values).fetchall()


@contextmanager
def running_customer(paths: EmbeddedPaths, *, sockets: Path | None = None) -> Iterator[Customer]:
    """Start it beside the other servers of `paths`; stopped and removed at the end."""
    server = CustomerPostgres(paths, sockets=sockets)
    server.prepare()
    supervisor = Supervisor(paths.logs)
    try:
        supervisor.start(server.child())
        server.bootstrap()
        yield Customer(server, sockets)
    finally:
        supervisor.stop_all()
