"""Running an interpreter as we are, and as an ordinary user where the tests run as root."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.plugin import ROOT
from tests.requirements import give_up

ORDINARY = (
    4242  # not nobody's id, which the kernel also shows for users that a namespace does not have
)
KINDS = ("as we are", "ordinary user")
_SECONDS = 100  # on a slow machine
ONLY_ROOT = "only root can become another user, and we are an ordinary one"


class Account:
    """A user that runs our code in a process of its own."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self._changes: dict[str, Any] = {}
        if uid != os.geteuid():
            self._changes = {"user": uid, "group": uid, "extra_groups": []}

    @classmethod
    def of(cls, kind: str) -> "Account":
        """Root where the tests run as root; or an ordinary user."""
        if kind == "as we are":
            return cls(os.geteuid())
        if os.geteuid() != 0:
            pytest.skip(ONLY_ROOT)
        return cls(ORDINARY)

    def python(self, interpreter: str, *arguments: str, given: str = "", **environ: str) -> Any:
        """Run the interpreter as this user, with our packages and without a terminal."""
        return subprocess.run(
            [interpreter, *arguments],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": sysconfig.get_path("purelib"), **environ},
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
            start_new_session=True,
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
        return give_up("no interpreter is open to an ordinary user")

    @contextmanager
    def home(self) -> Iterator[Path]:
        """A directory that this user can reach and write."""
        path = Path(tempfile.mkdtemp(dir="/tmp", prefix="isolane-host-"))
        os.chown(path, self.uid, -1)
        try:
            yield path
        finally:
            shutil.rmtree(path)
