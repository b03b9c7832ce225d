"""A second PostgreSQL that plays a customer's server: demos and tests open resources on it.

Timing: created and filled in two to three seconds, then a server like any other.
Model: sync.
Guarantee: each `prepare` starts with empty data.
Failure: bubble; a demo cannot run without its server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from secrets import token_urlsafe

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from orchestrator.embedded.account import server_account
from orchestrator.embedded.child import ServerProcess, log_path
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.ports import LOOPBACK, ReservedPort
from orchestrator.embedded.postgres_cluster import NOT_DURABLE, Cluster
from orchestrator.embedded.postgres_install import usable_install

NAME = "customer"
DATABASE = "shop"
SUPERUSER = "postgres"
ADMIN = "shop_admin"  # CREATEROLE and no more: the login that a customer gives to a platform that mints roles
READER = "shop_reader"  # a fixed login, for resources without minted roles
REPORTING = "reporting"  # the role that both pass on: it may read

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    # The server's own log of connections; statements that create roles are in it, too.
    "log_connections": "on",
    "log_disconnections": "on",
    "log_statement": "ddl",
    "log_line_prefix": "%m [%p] %q%u@%d %a ",
    **NOT_DURABLE,
}

TABLES = """
    CREATE TABLE invoice (
        id integer PRIMARY KEY, customer text NOT NULL, total numeric(10, 2) NOT NULL,
        paid boolean NOT NULL DEFAULT false, issued_on date NOT NULL
    );
    INSERT INTO invoice (id, customer, total, paid, issued_on) VALUES
        (1, 'Ada', 120.00, true, '2026-01-05'), (2, 'Ada', 75.50, false, '2026-02-11'),
        (3, 'Grace', 310.25, true, '2026-02-20'), (4, 'Edsger', 18.90, false, '2026-03-02'),
        (5, 'Grace', 64.00, false, '2026-03-09');
    GRANT SELECT ON invoice TO reporting;
"""


@dataclass(frozen=True, kw_only=True)
class CustomerLogin:
    """A login; its representation shows no password."""

    user: str
    password: str = field(repr=False, default_factory=lambda: token_urlsafe(24))


class CustomerPostgres:
    """Call `prepare`, start `child`, call `bootstrap`; its data is beside that of the stack of `paths`.

    Each object generates new passwords, so the data of an earlier one is removed.
    """

    def __init__(self, paths: EmbeddedPaths, *, sockets: Path | None = None) -> None:
        self._paths = paths
        self._sockets = sockets  # a folder for a Unix socket, too
        self._port = ReservedPort()
        self.superuser = CustomerLogin(user=SUPERUSER)
        self.admin = CustomerLogin(user=ADMIN)
        self.reader = CustomerLogin(user=READER)

    @property
    def host(self) -> str:
        return LOOPBACK

    @property
    def port(self) -> int:
        return self._port.number

    @property
    def log(self) -> Path:
        """The path of the server's log, with every connection."""
        return log_path(self._paths.logs, NAME)

    def url(self, login: CustomerLogin, database: str = DATABASE) -> str:
        """Return the connection string of a login, for libpq."""
        return make_conninfo(
            host=self.host,
            port=self.port,
            user=login.user,
            password=login.password,
            dbname=database,
            connect_timeout=5,
        )

    def prepare(self) -> None:
        """Create the cluster anew."""
        self._paths.prepare()
        self._cluster.remove()
        self._cluster.prepare(self.superuser.password, durable=False)
        if self._sockets:
            self._sockets.mkdir(mode=0o755, exist_ok=True)
            if self._cluster.account:
                self._cluster.account.take(self._sockets, 0o755)

    def child(self) -> ServerProcess:
        """Return the server process, for the supervisor."""
        settings = {**SETTINGS, "port": str(self.port)}
        if self._sockets:
            settings["unix_socket_directories"] = str(self._sockets)
        return self._cluster.child(NAME, settings, ready=self.is_ready)

    def is_ready(self) -> bool:
        """Say whether the server answers a query."""
        try:
            with psycopg.connect(self.url(self.superuser, "postgres")) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def bootstrap(self) -> None:
        """Create the roles and the database with its invoices, as the customer would."""
        with psycopg.connect(self.url(self.superuser, "postgres"), autocommit=True) as superuser:
            _create_login(superuser, self.admin, sql.SQL("CREATEROLE"))
            database, owner = sql.Identifier(DATABASE), sql.Identifier(ADMIN)
            superuser.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, owner))
            superuser.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
        # Roles created by the administrator: since PostgreSQL 16 it may grant no others.
        with psycopg.connect(self.url(self.admin)) as admin:
            reporting = sql.Identifier(REPORTING)
            admin.execute(sql.SQL("CREATE ROLE {}").format(reporting))
            _create_login(admin, self.reader, sql.SQL("IN ROLE {}").format(reporting))
            admin.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, reporting))
            admin.execute(TABLES)

    @cached_property
    def _cluster(self) -> Cluster:
        account = server_account()
        install = usable_install(self._paths.postgres, account)
        return Cluster(data=self._paths.customer_data, install=install, account=account)


def _create_login(
    connection: psycopg.Connection[tuple[object, ...]], login: CustomerLogin, rights: sql.Composable
) -> None:
    # Hashed here, so that the password is not in the log.
    hashed = connection.pgconn.encrypt_password(
        login.password.encode(), login.user.encode(), b"scram-sha-256"
    ).decode()
    connection.execute(
        sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} {}").format(
            sql.Identifier(login.user), sql.Literal(hashed), rights
        )
    )
