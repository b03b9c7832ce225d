"""An embedded Valkey for the entries of runs: on loopback, in memory only, never the broker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.ports import LOOPBACK, ReservedPort
from orchestrator.embedded.secrets import Secrets
from orchestrator.embedded.valkey_server import ValkeyServer, quoted

MAX_MEMORY = "128mb"


class EmbeddedRunCache(ValkeyServer):
    """Runs reach it over TCP as users that the worker makes; the password is the worker's alone.

    Nothing is kept: entries and users of runs are gone with the process, and a run that goes on
    finds its password refused.
    """

    def __init__(self, paths: EmbeddedPaths, secrets: Secrets) -> None:
        super().__init__("run-cache", paths.run_cache)
        self._secrets = secrets

    @property
    def address(self) -> str:
        """Where it listens, fit to be shown."""
        return f"{LOOPBACK}:{self._port.number}"

    @property
    def url(self) -> str:
        """`ISOLANE_CACHE_URL`."""
        return f"redis://:{self._secrets.run_cache_password}@{self.address}/0"

    def settings(self) -> Mapping[str, str]:
        """A port that is ours, a bound on memory, and no word of it on disk."""
        return {
            "bind": LOOPBACK,
            "port": str(self._port.number),
            "requirepass": quoted(self._secrets.run_cache_password),
            "maxmemory": MAX_MEMORY,
            # To make room is to take another run's entries, unnoticed; a full cache refuses instead.
            "maxmemory-policy": "noeviction",
            "appendonly": "no",
        }

    @cached_property
    def _port(self) -> ReservedPort:
        return ReservedPort()
