"""An embedded Valkey as the run cache: on loopback, in memory only, never the broker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.ports import LOOPBACK, ReservedPort
from orchestrator.embedded.secrets import Secrets
from orchestrator.embedded.valkey_server import ValkeyServer, quoted

MAX_MEMORY = "128mb"


class EmbeddedRunCache(ValkeyServer):
    """Runs reach it over TCP as users that the worker issues; only the worker has the password.

    Nothing is persisted: keys and users of runs are gone with the process, and a run that goes on
    finds its password refused.
    """

    def __init__(self, paths: EmbeddedPaths, secrets: Secrets) -> None:
        super().__init__("run-cache", paths.run_cache)
        self._secrets = secrets

    @property
    def address(self) -> str:
        """The address that it listens on, without the password."""
        return f"{LOOPBACK}:{self._port.number}"

    @property
    def url(self) -> str:
        """`ISOLANE_CACHE_URL`."""
        return f"redis://:{self._secrets.run_cache_password}@{self.address}/0"

    def settings(self) -> Mapping[str, str]:
        """Return a reserved port, a limit on memory, and no persistence."""
        return {
            "bind": LOOPBACK,
            "port": str(self._port.number),
            "requirepass": quoted(self._secrets.run_cache_password),
            "maxmemory": MAX_MEMORY,
            # An eviction would silently delete another run's keys; a full cache refuses instead.
            "maxmemory-policy": "noeviction",
            "appendonly": "no",
        }

    @cached_property
    def _port(self) -> ReservedPort:
        return ReservedPort()
