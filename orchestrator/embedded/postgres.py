"""An embedded PostgreSQL on a Unix socket, with the roles that the platform needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import psycopg

from orchestrator.embedded import postgres_roles
from orchestrator.embedded.account import server_account
from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.postgres_cluster import NOT_DURABLE, Cluster
from orchestrator.embedded.postgres_install import usable_install
from orchestrator.embedded.secrets import Secrets

# Part of the socket's name. Set explicitly, because PGPORT in the environment changes the default.
PORT = 5432


class EmbeddedPostgres:
    """One cluster: created if it is missing, started by the supervisor, then given its roles."""

    def __init__(
        self,
        paths: EmbeddedPaths,
        secrets: Secrets,
        *,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._paths = paths
        self._secrets = secrets
        self._durable = durable
        self._settings = dict(settings or {})

    @property
    def superuser_url(self) -> str:
        """For bootstrap and tests; the platform itself never needs it."""
        return self._url("postgres", self._secrets.postgres_superuser_password, "postgres")

    @property
    def owner_url(self) -> str:
        """`DATABASE_OWNER_URL`: migrations and provisioning."""
        password = self._secrets.postgres_owner_password
        return self._url(postgres_roles.OWNER, password, postgres_roles.DATABASE)

    @property
    def login_url(self) -> str:
        """`DATABASE_URL` of web, and of commands."""
        password = self._secrets.postgres_login_password
        return self._url(postgres_roles.LOGIN, password, postgres_roles.DATABASE)

    @property
    def worker_url(self) -> str:
        """`DATABASE_URL` of workers, which `isolane migrate` knows as `DATABASE_WORKER_URL`."""
        password = self._secrets.postgres_worker_password
        return self._url(postgres_roles.WORKER, password, postgres_roles.DATABASE)

    def prepare(self) -> None:
        """Create the cluster if there is none, and clear what a killed server left behind."""
        self._cluster.prepare(self._secrets.postgres_superuser_password, durable=self._durable)

    def command(self) -> list[str]:
        """Return the argv that runs the server in the foreground."""
        return self._cluster.command(self._all_settings)

    def child(self) -> ServerProcess:
        """Return the server process, for the supervisor."""
        return self._cluster.child("postgres", self._all_settings, ready=self.is_ready)

    def is_ready(self) -> bool:
        """Say whether the server answers a query."""
        try:
            with psycopg.connect(self.superuser_url, connect_timeout=5) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def bootstrap(self) -> None:
        """Create the database and roles, or correct them; may run at every start."""
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            postgres_roles.bootstrap(
                connection,
                owner_password=self._secrets.postgres_owner_password,
                login_password=self._secrets.postgres_login_password,
                worker_password=self._secrets.postgres_worker_password,
            )
        with psycopg.connect(
            self.superuser_url, dbname=postgres_roles.DATABASE, autocommit=True
        ) as connection:
            postgres_roles.bootstrap_database(connection)

    @property
    def _all_settings(self) -> dict[str, str]:
        return {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": _list_item(self._paths.postgres_sockets),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            **({} if self._durable else NOT_DURABLE),
            **self._settings,
        }

    @cached_property
    def _cluster(self) -> Cluster:
        account = server_account()
        install = usable_install(self._paths.postgres, account)
        return Cluster(data=self._paths.postgres_data, install=install, account=account)

    def _url(self, user: str, password: str, database: str) -> str:
        host = quote(str(self._paths.postgres_sockets))
        return f"postgresql://{user}:{quote(password)}@:{PORT}/{database}?host={host}"


def _list_item(path: Path) -> str:
    escaped = str(path).replace('"', '""')
    return f'"{escaped}"'
