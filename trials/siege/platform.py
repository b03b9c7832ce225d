"""The platform under siege: started by `isolane up`, furnished by the command line, watched from outside.

Timing: a long-running process of its own. Model: sync, main thread. Guarantee: it ends with the block, also when the
siege is killed; its directory goes, unless the siege is killed. Failure: a platform that cannot start ends the siege
with its log's tail.
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
# What most systems give a process that asks for no more; it may raise its own limit.
SOFT_DESCRIPTORS = 1024
KEPT_LOG_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A platform that runs."""

    paths: EmbeddedPaths
    logs: Path  # of the siege itself
    environ: Mapping[str, str]
    supervisor: Supervisor
    web: int  # ports
    flower: int

    @property
    def web_pid(self) -> int | None:
        """Web as it is now: one that died was started again."""
        state = read_running(self.paths.state_file)
        return state.children.get("web") if state else None

    def command(self, *arguments: str) -> str:
        """What `isolane …` prints."""
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
        """Make a tenant; the key of one of its authors."""
        self.command("tenants", "create", name, "--trusted")
        return self.command("api-keys", "create", name, "--name", "siege", "--role", "author")

    def call(self, key: str, path: str, body: bytes | None, seconds: float) -> tuple[int, Any]:
        """One request of the siege itself: status, and the document if there is one; 0 if nobody answers."""
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
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310 - likewise
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, None
        except OSError:
            return 0, None

    def log_bytes(self) -> dict[str, int]:
        """How long each log is."""
        return {path.stem: path.stat().st_size for path in self.paths.logs.glob("*.log")}


@contextmanager
def running_platform(*, workers: int, kept_logs: Path | None) -> Iterator[Platform]:
    """Everything on ports of its own, from nothing."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(SOFT_DESCRIPTORS, hard), hard))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isolane-siege-")))
        paths = EmbeddedPaths(folder / "home")
        logs = folder / "logs"
        logs.mkdir()
        stack.callback(_put_away, paths, logs, kept_logs)
        environ = {**environment.clean(os.environ), "ISOLANE_HOME": str(paths.home)}
        supervisor = stack.enter_context(Supervisor(logs))
        # Held until the end, so that nobody else gets them.
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


def _put_away(paths: EmbeddedPaths, logs: Path, kept: Path | None) -> None:
    """Keep the ends of the logs if somebody wants them; all else goes."""
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        for log in (*paths.logs.glob("*.log"), *logs.glob("*.log")):
            _keep_end(log, kept / log.name)
    paths.remove()


def _keep_end(log: Path, copy: Path) -> None:
    with log.open("rb") as source, copy.open("wb") as target:
        source.seek(max(0, log.stat().st_size - KEPT_LOG_BYTES))
        shutil.copyfileobj(source, target)
