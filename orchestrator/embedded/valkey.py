"""An embedded Valkey on a Unix socket: broker and channel of live events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.secrets import Secrets
from orchestrator.embedded.valkey_server import ValkeyServer, quoted


class EmbeddedValkey(ValkeyServer):
    """The platform's own: no run ever learns of it."""

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
        """As redis-py wants it: `unix://:password@/path`.

        Kombu (Celery, Flower) takes the same URL with the scheme `redis+socket`; another database
        than 0 is `?db=1` for redis-py and `?virtual_host=1` for Kombu.
        """
        return f"unix://:{self._secrets.valkey_password}@{quote(str(self.socket))}"

    def settings(self) -> Mapping[str, str]:
        """A Unix socket, and nothing lost."""
        return {
            "port": "0",
            "unixsocket": quoted(str(self.socket)),
            "unixsocketperm": "700",
            "requirepass": quoted(self._secrets.valkey_password),
            "maxmemory-policy": "noeviction",  # a broker that drops messages is none
            "appendonly": "yes" if self._durable else "no",
        }
