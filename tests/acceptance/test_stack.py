"""The two commands of a newcomer, and what an operator does around them."""

import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from orchestrator.embedded.child import runs
from orchestrator.embedded.paths import EmbeddedPaths
from orchestrator.embedded.state import read_running
from resources.runtimes.base import Availability
from tests.accounts import ONLY_ROOT, Account
from tests.plugin import ROOT, SERVERS
from tests.waiting import wait_for
from tests.without_namespaces import PREFIX

START_SECONDS = 60


def environment(home: Path, **extra: str) -> dict[str, str]:
    """A newcomer's environment: nothing of ours is set."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return {**kept, "ISOLANE_HOME": str(home), **extra}


def isolane(
    home: Path, *arguments: str, prefix: Sequence[str] = (), **extra: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end."""
    return subprocess.run(
        [*prefix, sys.executable, "-m", "orchestrator.cli", *arguments],
        cwd=ROOT,
        env=environment(home, **extra),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


class Up:
    """`isolane up`, running elsewhere."""

    def __init__(self, home: Path, *, prefix: Sequence[str] = (), **extra: str) -> None:
        self.home = home
        self.log = home.parent / "up.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "orchestrator.cli", "up"],
                cwd=ROOT,
                env=environment(home, **extra),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_for(
            self._running, f"the stack to run; its log is\n{self.log.read_text()}", START_SECONDS
        )

    def _running(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return read_running(self.home / "state.json") is not None

    @property
    def state(self) -> dict[str, Any]:
        """Return the content of its state file."""
        content: dict[str, Any] = json.loads((self.home / "state.json").read_text())
        return content

    def family(self) -> list[psutil.Process]:
        """The supervisor and all that it started."""
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def stop(self) -> None:
        """As Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)


def status_of(url: str, *, user: str = "", method: str = "GET") -> int:
    """The answer's status."""
    request = urllib.request.Request(url, method=method)
    if user:
        request.add_header("Authorization", "Basic " + b64encode(user.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The directory of the stack; if root starts it, some files are elsewhere."""
    yield tmp_path / "home"
    EmbeddedPaths(tmp_path / "home").remove()


@pytest.fixture
def taken_ports() -> Iterator[None]:
    """Somebody else has the usual ports."""
    sockets = []
    for port in (5432, 6379, 8000, 5555):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError:
            pass  # taken by somebody else already, which serves as well
        sockets.append(listener)
    yield
    for listener in sockets:
        listener.close()


def left_running(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if runs(process)]


def test_the_demo_runs_all_tenants_and_leaves_nothing(
    home: Path, process_level: Availability
) -> None:
    """Whatever packages the operator has."""
    result = isolane(home, "demo", ISOLANE_NODE_PACKAGES="none.such", ISOLANE_TASK_PACKAGES="none")
    assert_demo_succeeded(home, result, level="process" if process_level.ok else "shared")


def test_the_demo_where_user_namespaces_are_forbidden(home: Path) -> None:
    """It says so, trusts its own tenants, and succeeds."""
    result = isolane(home, "demo", prefix=PREFIX)
    assert_demo_succeeded(home, result, level="shared")
    assert "(allow user namespaces: " in result.stdout


def test_the_demo_of_an_ordinary_user(process_level: Availability) -> None:
    """In an environment of their own, as after `make demo`."""
    if os.geteuid() != 0:
        pytest.skip(ONLY_ROOT)  # else the first demo shows this
    user = Account(pwd.getpwnam("daemon").pw_uid)  # PostgreSQL wants one with a name
    with user.home() as folder:
        home, environment = folder / "home", folder / "environment"
        made = user.python(user.interpreter(), "-m", "venv", "--without-pip", str(environment))
        assert made.returncode == 0, made.stderr
        (packages,) = environment.glob("lib/python*/site-packages")
        (packages / "tests.pth").write_text(sysconfig.get_path("purelib"))
        python = str(environment / "bin" / "python")
        result = user.python(python, "-m", "orchestrator.cli", "demo", ISOLANE_HOME=str(home))
        assert_demo_succeeded(home, result, level="process" if process_level.ok else "shared")


def assert_demo_succeeded(
    home: Path, result: "subprocess.CompletedProcess[str]", *, level: str
) -> None:
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("Level process is not available: ") == int(level == "shared")
    assert result.stdout.count('"tracking": "TRACK-') == 6  # what each order gives back
    for tenant, answer, paid in (
        ("acme", "approved", '"30.00"'),
        ("globex", "rejected", "null"),
        ("initech", "rejected", "null"),
    ):
        rows = re.findall(rf"│ {tenant} +│ [^│]+│ {level} +│ succeeded", result.stdout)
        assert len(rows) == 4
        assert f"{tenant} asks 'Pay 30.00 for invoice 7?': {answer}" in result.stdout
        assert f'"paid": {paid}' in result.stdout
        assert re.search(f"{tenant} exec_[0-9a-f-]+ clean: 6 allocated, 6 gone", result.stdout)
    assert result.stdout.count("Dear Ada, invoice 2 of 75.50 is not paid") == 3
    for told in ("cache.keys", "cache.user", "database.role", "database", "cache", "model"):
        assert result.stdout.count(f"│ {told} ") == 1  # in the ledger of one run
    reached = re.findall(r"A connection to \S+ \((.+?)\) ended after ", result.stdout)
    assert sorted(reached) == (["notes", "shop-db"] if level == "process" else [])
    seen = "1 connection(s) of it in the log of the customer's PostgreSQL; left:"
    left = "0 connections, 0 roles, 0 cache users, 0 cache keys"
    assert result.stdout.count(f"{seen} {left}") == 3
    assert "nothing is left running" in result.stdout
    assert [path.name for path in home.rglob("*") if path.is_socket()] == []
    marked = [p for p in psutil.process_iter() if _mentions(p, str(home))]
    assert left_running(marked) == []


def _mentions(process: psutil.Process, text: str) -> bool:
    try:
        return text in " ".join(process.cmdline()) or process.environ().get("ISOLANE_HOME") == text
    except psutil.Error:
        return False


def _environ(process: psutil.Process) -> str:
    """Return the environment of a process; empty if it may not be read."""
    try:
        return json.dumps(process.environ())
    except psutil.AccessDenied:
        return ""


def _has_owner_url(pid: int) -> bool:
    """Return True if the process shows the owner's URL; an unreadable environment shows nothing."""
    try:
        return b"DATABASE_OWNER_URL" in Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return False


def test_up_with_taken_ports_and_all_that_an_operator_does_with_it(
    home: Path, taken_ports: None, process_level: Availability
) -> None:
    up = Up(home)
    try:
        wait_for(lambda: "Running;" in up.log.read_text(), "the last lines of the start")
        printed = up.log.read_text()
        assert "port 8000 is in use" in printed
        assert "port 5555 is in use" in printed
        web, flower = up.state["web_url"], up.state["flower_url"]
        assert web in printed
        password = json.loads((home / "secrets.json").read_text())["admin_password"]
        assert printed.count(password) == 1

        # Running means that a submission is taken: both workers can be placed on.
        assert printed.index("worker-1: ready") < printed.index("Running;")
        assert printed.index("worker-2: ready") < printed.index("Running;")
        for name in ("worker-1", "worker-2"):
            pid, node = (home / f"{name}.ready").read_text().split(" ")
            assert pid == str(up.state["children"][name])
            assert f"{name}: ready as {node}" in printed

        # The owner's credential is in one process alone.
        holders = {name for name, pid in up.state["children"].items() if _has_owner_url(pid)}
        assert holders == {"provisioner"}

        # What it serves.
        assert status_of(f"{web}/healthz") == 200
        assert status_of(f"{web}/api/docs/") == 200
        assert status_of(f"{web}/admin/login/") == 200
        assert status_of(f"{web}/static/admin/css/base.css") == 200
        assert status_of(f"{web}/api/v1/executions") == 401

        # Flower: a login, nothing to change, and no page without login.
        secret = json.loads((home / "secrets.json").read_text())["flower_password"]
        assert status_of(f"{flower}/") == 401
        assert status_of(f"{flower}/tasks", user=f"admin:{secret}") == 200
        for path in ("metrics", "healthcheck"):
            assert status_of(f"{flower}/{path}") == 401
            assert status_of(f"{flower}/{path}", user=f"admin:{secret}") == 404
        assert (
            status_of(f"{flower}/api/worker/shutdown/x", user=f"admin:{secret}", method="POST")
            == 403
        )

        # No environment and no file that tells of the stack holds a secret.
        secrets = json.loads((home / "secrets.json").read_text()).values()
        told = [(home / "state.json").read_text()]
        told += [_environ(process) for process in up.family()]
        assert [secret for secret in secrets for text in told if secret in text] == []

        # A second one beside it is refused; the first goes on.
        second = isolane(home, "up")
        assert (second.returncode, second.stderr.count("\n")) == (1, 1)
        assert str(up.process.pid) in second.stderr

        # Commands find it; a crashed child comes back, and runs go on without the broker's memory.
        trusted = [] if process_level.ok else ["--trusted"]
        assert isolane(home, "tenants", "create", "acme", *trusted).returncode == 0
        assert (
            isolane(
                home, "blueprints", "push", "examples/order.yaml", "--tenant", "acme"
            ).returncode
            == 0
        )
        os.kill(up.state["children"]["valkey"], signal.SIGKILL)
        order = (
            "executions",
            "submit",
            "order",
            "--tenant",
            "acme",
            "--input",
            "order_id=1",
            "--wait",
        )
        run = isolane(home, *order)
        assert "succeeded" in run.stdout, run.stdout + run.stderr
        shown = isolane(
            home, "executions", "show", run.stdout.split()[0], "--tenant", "acme"
        ).stdout
        level = "process" if process_level.ok else "shared"
        assert json.loads(shown)["isolation"] == level
        victim = up.state["children"]["worker-1"]
        os.kill(victim, signal.SIGKILL)
        wait_for(
            lambda: up.state["children"].get("worker-1") not in {None, victim},
            "worker-1 to be restarted",
        )
        assert "worker-1" in isolane(home, "status").stdout

        # Down from elsewhere, and data is kept.
        family = up.family()
        assert isolane(home, "down").returncode == 0
        assert left_running(family) == []
        assert isolane(home, "status").returncode == 3
        assert not (home / "credentials").exists()
    finally:
        up.stop()

    # Once more, as on a machine that forbids user namespaces: a line says so.
    printed = up.log.read_text()
    again = Up(home, prefix=PREFIX)
    try:
        assert "acme" in isolane(home, "tenants", "list").stdout
        assert again.log.read_text().count(password) == 1
        wait_for(
            lambda: again.log.read_text().count("Running;") == 2,
            "the last lines of the start",
            START_SECONDS,  # with a try of the level
        )
        told = again.log.read_text().removeprefix(printed).splitlines()
        (line,) = [line for line in told if "Level process is not available" in line]
        assert "(allow user namespaces: " in line
        assert "'isolane levels' tells more." in line
    finally:
        again.stop()
    assert again.process.returncode == 0


def test_a_killed_supervisor_takes_everything_with_it_and_the_next_start_works(home: Path) -> None:
    up = Up(home)
    family = up.family()
    assert len(family) > 6
    up.process.kill()
    up.process.wait()
    wait_for(lambda: not left_running(family), "all of its processes to be gone", 15)
    again = Up(home)
    again.process.send_signal(signal.SIGTERM)
    assert again.process.wait(timeout=60) == 0


@pytest.fixture
def elsewhere(servers: None) -> Iterator[None]:
    """Another database of the tests' server."""
    with psycopg.connect(SERVERS.superuser_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE elsewhere OWNER isolane_owner")
        yield
        connection.execute("DROP DATABASE elsewhere WITH (FORCE)")


def test_external_servers_are_used_when_they_are_named(home: Path, elsewhere: None) -> None:
    urls = {
        "DATABASE_URL": SERVERS.login_url.replace("/isolane?", "/elsewhere?"),
        "REDIS_URL": SERVERS.redis_url,
    }
    secret = home.parent / "owner-url"
    secret.write_text(SERVERS.owner_url.replace("/isolane?", "/elsewhere?") + "\n")
    result = isolane(home, "demo", DATABASE_OWNER_URL_FILE=str(secret), **urls)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "postgres: started" not in result.stdout
    assert "without its cache steps: there is no run cache (ISOLANE_CACHE_URL)" in result.stdout
    assert result.stdout.count("clean: 3 allocated, 3 gone") == 3
    assert "nothing is left running" in result.stdout
    assert (home / "secrets.json").exists()  # as the data stays, so does the key that reads it
    assert not (home / "demo" / "secrets.json").exists()


def test_a_worker_that_cannot_start_ends_the_stack_with_its_last_words(home: Path) -> None:
    result = isolane(home, "up", ISOLANE_NODE_PACKAGES="nosuchpackage")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Running" not in result.stdout
    assert re.match(r"Error: worker-[12] ended \(exit status 2\)\n", result.stderr)
    assert "the worker cannot start" in result.stderr
    assert "nosuchpackage" in result.stderr


@pytest.mark.parametrize("command", ["up", "demo"])
def test_an_unreachable_server_is_one_line_and_exit_2(home: Path, command: str) -> None:
    away = "postgresql://isolane:secret@127.0.0.1:1/isolane"
    urls = {"DATABASE_URL": away, "DATABASE_OWNER_URL": away, "REDIS_URL": "redis://127.0.0.1:1/0"}
    result = isolane(home, command, **urls)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "DATABASE_OWNER_URL: PostgreSQL at 127.0.0.1:1 " in result.stderr
    assert "Connection refused" in result.stderr
    assert "secret" not in result.stderr


def test_half_of_the_servers_named_is_refused(home: Path) -> None:
    result = isolane(home, "up", REDIS_URL="redis://127.0.0.1:1/0")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "DATABASE_URL" in result.stderr
