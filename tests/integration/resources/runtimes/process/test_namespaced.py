"""The level `process` for root of a container that has users of its own, as with `hostUsers: false` of Kubernetes."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from resources.runtimes.process import ProcessBackend
from tests.accounts import ONLY_ROOT, Account
from tests.integration.resources.runtimes.conftest import why_not
from tests.plugin import ROOT

HOST = "tests.integration.resources.runtimes.process.namespaced"
FIRST = 0x30000000  # of the machine's users that are the container's


def told_with(users: int) -> Any:
    """Try the level as root of a namespace with so many users."""
    if os.geteuid() != 0:
        pytest.skip(ONLY_ROOT)
    if reason := why_not(ProcessBackend):
        pytest.skip(f"the level process is not available: {reason}")
    account = Account(FIRST)
    with account.home() as home, subprocess.Popen(
        [account.interpreter(), "-m", HOST],
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "TMPDIR": str(home),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{process.pid}/{name}").write_text(f"0 {FIRST} {users}")
        out, _ = process.communicate("go\n", timeout=60)
    return json.loads(out)


def test_a_container_with_65536_users_gives_the_level() -> None:
    assert told_with(65536) == {"ok": True, "reason": "", "status": "succeeded"}


def test_a_container_with_too_few_users_says_so() -> None:
    told = told_with(1)
    assert not told["ok"]
    assert "no users for sandboxes" in told["reason"]
    assert "65536" in told["reason"]
