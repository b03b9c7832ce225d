"""An embedded Valkey on a Unix socket: broker and channel of live events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from orchestrator.broker_users import FLOWER, WEB, WORKER, line
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.secrets import Secrets
from orchestrator.embedded.valkey_server import ValkeyServer, quoted


class EmbeddedValkey(ValkeyServer):
    """The platform's own Valkey, unknown to runs; each kind of process has its own user."""

    def __init__(self, paths: EmbeddedPaths, secrets: Secrets, *, durable: bool = True) -> None:
        super().__init__("valkey", paths.valkey)
        self._paths = paths
        self._secrets = secrets
        self._durable = durable

    @property
    def socket(self) -> Path:
        return self._paths.sockets / "valkey.sock"

    @property
    def url(self) -> str:
        """The administrator's URL for redis-py: `unix://:password@/path`.

        Kombu (Celery, Flower) takes the same URL with the scheme `redis+socket`; another database
        than 0 is `?db=1` for redis-py and `?virtual_host=1` for Kombu.
        """
        return self._url("", self._secrets.valkey_password)

    def url_of(self, user: str) -> str:
        """Return the URL of one of the users in `orchestrator.broker_users`."""
        return self._url(user, self._passwords[user])

    def settings(self) -> Mapping[str, str]:
        """Return a Unix socket, and persistence."""
        return {
            "port": "0",
            "unixsocket": quoted(str(self.socket)),
            "unixsocketperm": "700",
            "requirepass": quoted(self._secrets.valkey_password),
            "maxmemory-policy": "noeviction",  # a broker must not drop messages
            "appendonly": "yes" if self._durable else "no",
        }

    def users(self) -> Sequence[str]:
        """Return the lines of the configuration that create the users."""
        return [line(user, f">{password}") for user, password in self._passwords.items()]

    @property
    def _passwords(self) -> Mapping[str, str]:
        return {
            WEB: self._secrets.valkey_web_password,
            WORKER: self._secrets.valkey_worker_password,
            FLOWER: self._secrets.valkey_flower_password,
        }

    def _url(self, user: str, password: str) -> str:
        return f"unix://{user}:{password}@{quote(str(self.socket))}"
