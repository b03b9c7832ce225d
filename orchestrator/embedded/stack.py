"""The embedded servers together, as the CLI and the tests use them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.postgres import EmbeddedPostgres
from orchestrator.embedded.run_cache import EmbeddedRunCache
from orchestrator.embedded.secrets import Secrets, load_secrets
from orchestrator.embedded.valkey import EmbeddedValkey


class EmbeddedServers:
    """Call `prepare`, start `children` in their order, call `bootstrap`, use the URLs."""

    def __init__(
        self,
        paths: EmbeddedPaths,
        *,
        durable: bool,
        postgres_settings: Mapping[str, str] | None = None,
    ) -> None:
        self.paths = paths
        self._durable = durable
        self._postgres_settings = postgres_settings

    def prepare(self) -> None:
        """Create directories, secrets, cluster and configuration where they are missing."""
        self.paths.prepare()
        self.postgres.prepare()
        self.valkey.prepare()
        self.run_cache.prepare()

    def children(self) -> list[ServerProcess]:
        """Return the servers for the supervisor; each is ready when it answers."""
        return [self.postgres.child(), self.valkey.child(), self.run_cache.child()]

    def bootstrap(self) -> None:
        """Create database and roles, or correct them; needs a running PostgreSQL."""
        self.postgres.bootstrap()

    @cached_property
    def secrets(self) -> Secrets:
        """The generated secrets of this stack; valid after `prepare`, like everything below."""
        return load_secrets(self.paths.secrets_file)

    @cached_property
    def postgres(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(
            self.paths, self.secrets, durable=self._durable, settings=self._postgres_settings
        )

    @cached_property
    def valkey(self) -> EmbeddedValkey:
        return EmbeddedValkey(self.paths, self.secrets, durable=self._durable)

    @cached_property
    def run_cache(self) -> EmbeddedRunCache:
        return EmbeddedRunCache(self.paths, self.secrets)

    @property
    def login_url(self) -> str:
        """`DATABASE_URL` of web, and of commands."""
        return self.postgres.login_url

    @property
    def worker_url(self) -> str:
        """`DATABASE_URL` of workers."""
        return self.postgres.worker_url

    @property
    def owner_url(self) -> str:
        """`DATABASE_OWNER_URL`."""
        return self.postgres.owner_url

    @property
    def superuser_url(self) -> str:
        """For tests that measure at the server."""
        return self.postgres.superuser_url

    @property
    def redis_url(self) -> str:
        """The URL of the broker's administrator: `unix://:password@/path`."""
        return self.valkey.url

    def redis_url_of(self, user: str) -> str:
        """`REDIS_URL` of one of the users in `orchestrator.broker_users`."""
        return self.valkey.url_of(user)

    @property
    def cache_url(self) -> str:
        """`ISOLANE_CACHE_URL`, as the administrator of users and keys."""
        return self.run_cache.url
