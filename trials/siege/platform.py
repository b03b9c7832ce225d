"""The platform under attack: started by `isolane up`, set up by the command line, observed from outside.

Timing: a long-running process of its own.
Model: sync, main thread.
Guarantee: the platform ends with the block, also when the siege is killed; then only its directory stays.
Failure: a platform that cannot start ends the siege with the tail of its log.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import environment
from orchestrator.embedded.child import ServerProcess
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.ports import ReservedPort
from orchestrator.embedded.state import read_running
from orchestrator.embedded.supervisor import Supervisor
from orchestrator.env import PROJECT_ROOT
from trials.siege.plan import ADDRESS

START_SECONDS = 180.0
STOP_SECONDS = 90.0
COMMAND_SECONDS = 120.0
# The default of most systems; a process may raise its own limit.
SOFT_DESCRIPTORS = 1024
KEPT_LOG_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A running platform."""

    paths: EmbeddedPaths
    logs: Path  # of the siege itself
    environ: Mapping[str, str]
    supervisor: Supervisor
    web: int  # ports
    flower: int

    @property
    def web_pid(self) -> int | None:
        """Return the pid of web; it changes when web is restarted."""
        state = read_running(self.paths.state_file)
        return state.children.get("web") if state else None

    def command(self, *arguments: str) -> str:
        """Run `isolane …` and return its output."""
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "orchestrator.cli", *arguments],
            cwd=PROJECT_ROOT,
            env=dict(self.environ),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"isolane {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout.strip()

    def tenant(self, name: str) -> str:
        """Create a tenant and return an API key of an author."""
        self.command("tenants", "create", name, "--trusted")
        return self.command("api-keys", "create", name, "--name", "siege", "--role", "author")

    def call(self, key: str, path: str, body: bytes | None, seconds: float) -> tuple[int, Any]:
        """Send a request of the siege itself; return status (0 without an answer) and document."""
        request = urllib.request.Request(
            f"http://{ADDRESS}:{self.web}{path}",
            data=body,
            headers={
                "Host": "localhost",
                "Authorization": f"Bearer {key}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310 - always http to this machine
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, None
        except OSError:
            return 0, None

    def log_bytes(self) -> dict[str, int]:
        """Return the size of each log."""
        return {path.stem: path.stat().st_size for path in self.paths.logs.glob("*.log")}


@contextmanager
def running_platform(*, workers: int, kept_logs: Path | None) -> Iterator[Platform]:
    """Start a new platform on free ports."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(SOFT_DESCRIPTORS, hard), hard))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isolane-siege-")))
        paths = EmbeddedPaths(folder / "home")
        logs = folder / "logs"
        logs.mkdir()
        stack.callback(_clean_up, paths, logs, kept_logs)
        environ = {**environment.clean(os.environ), "ISOLANE_HOME": str(paths.home)}
        supervisor = stack.enter_context(Supervisor(logs))
        # Reserved until the end, so that no other process gets them.
        web, flower = ReservedPort(), ReservedPort()
        supervisor.start(_child(environ, workers, paths, web.number, flower.number))
        yield Platform(
            paths=paths,
            logs=logs,
            environ=environ,
            supervisor=supervisor,
            web=web.number,
            flower=flower.number,
        )


def _child(
    environ: Mapping[str, str], workers: int, paths: EmbeddedPaths, web: int, flower: int
) -> ServerProcess:
    return ServerProcess(
        name="platform",
        argv=(
            sys.executable, "-m", "orchestrator.cli", "up", "--workers", str(workers),
            "--port", str(web), "--flower-port", str(flower),
        ),
        env=environ,
        cwd=PROJECT_ROOT,
        stop_timeout=STOP_SECONDS,
        death_signal=signal.SIGTERM,  # so that it stops its own children in order
        ready=lambda: read_running(paths.state_file) is not None,
        ready_timeout=START_SECONDS,
        restart=False,
    )  # fmt: skip


def _clean_up(paths: EmbeddedPaths, logs: Path, kept: Path | None) -> None:
    """Copy the end of each log if asked to, and remove everything."""
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        for log in (*paths.logs.glob("*.log"), *logs.glob("*.log")):
            _keep_end(log, kept / log.name)
    paths.remove()


def _keep_end(log: Path, copy: Path) -> None:
    with log.open("rb") as source, copy.open("wb") as target:
        source.seek(max(0, log.stat().st_size - KEPT_LOG_BYTES))
        shutil.copyfileobj(source, target)
