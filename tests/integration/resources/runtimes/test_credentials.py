"""A step finds no credential of its worker in /proc, whether both run as root or as an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin import ROOT

NOBODY = 65534
HOST = "tests.integration.resources.runtimes.host"
CREDENTIALS = {
    "DATABASE_URL": "postgresql://login:hunter2@db.example.com/shop",
    "REDIS_URL": "redis://:hunter2@broker.example.com/0",
    "ENCRYPTION_KEYS": "a2V5" * 10 + "a2U=",
    "BASE_HOST": "isolane.example.com",
    "SECRET_KEY": "hunter2-" * 7,
}


class Account:
    """The user that runs the worker, and so the step."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self._changes: dict[str, Any] = {}
        if uid != os.geteuid():
            self._changes = {"user": uid, "group": uid, "extra_groups": []}

    def python(self, interpreter: str, *arguments: str, **environ: str) -> Any:
        """Run the interpreter as this user, with our packages."""
        return subprocess.run(
            [interpreter, *arguments],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": sysconfig.get_path("purelib"), **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            **self._changes,
        )

    def interpreter(self) -> str:
        """One of our version that this user may run; our own may lie in a folder that is closed to others."""
        if not self._changes:
            return sys.executable
        own_version = f"python3.{sys.version_info.minor}"
        for found in (sys.executable, shutil.which(own_version, path="/usr/local/bin:/usr/bin")):
            try:
                if found and self.python(found, "-c", "import psycopg").returncode == 0:
                    return found
            except PermissionError:
                continue
        pytest.skip("no interpreter is open to an ordinary user")


@pytest.fixture(params=["as we are", "ordinary user"])
def account(request: pytest.FixtureRequest) -> Account:
    """Root where the tests run as root; and an ordinary user."""
    if request.param == "as we are":
        return Account(os.geteuid())
    if os.geteuid() != 0:
        pytest.skip("only root can become another user, and we are an ordinary one")
    return Account(NOBODY)


@pytest.fixture
def home(account: Account) -> Iterator[Path]:
    """A directory that this user can reach and write."""
    path = Path(tempfile.mkdtemp(dir="/tmp", prefix="isolane-host-"))
    os.chown(path, account.uid, -1)
    yield path
    shutil.rmtree(path)


def test_a_step_cannot_look_into_its_worker(account: Account, home: Path) -> None:
    done = account.python(account.interpreter(), "-m", HOST, TMPDIR=str(home), **CREDENTIALS)
    assert done.returncode == 0, done.stderr
    none = "0" * 16
    assert json.loads(done.stdout) == {
        "opened": [],
        "uid": account.uid,
        "CapPrm": none,
        "CapEff": none,
        "CapInh": none,
        "CapAmb": none,
        "NoNewPrivs": "1",
    }
