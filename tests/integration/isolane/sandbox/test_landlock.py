"""Landlock, applied for real: what it refuses, what goes on, and that without it the same uses succeed."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isolane.sandbox import landlock
from tests.accounts import KINDS, ORDINARY, Account

PROBE = "tests.integration.isolane.sandbox.paths"
READING = {"read", "list", "execute"}
ABSTRACT = f"isolane-outside-{os.getpid()}"

pytestmark = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock")


@pytest.fixture(params=KINDS)
def account(request: pytest.FixtureRequest) -> Account:
    return Account.of(request.param)


@pytest.fixture
def home(account: Account) -> Iterator[Path]:
    with account.home() as path:
        for name in ("readable", "writable", "closed"):
            fill(path / name)
        (path / "alone").write_text("content")
        for made in (path, *path.rglob("*")):
            os.chown(made, account.uid, -1)
        yield path


def fill(folder: Path) -> None:
    (folder / "folder").mkdir(parents=True)
    for name in ("file", "spare"):
        (folder / name).write_text("content")
    (folder / "program").write_text("#!/bin/sh\nexit 0\n")
    (folder / "program").chmod(0o755)


def probe(
    account: Account, home: Path, act: str, *, restricted: bool, prepared: bool = True
) -> Any:
    asked = {
        "home": str(home), "act": act, "restricted": restricted, "prepared": prepared, "abstract": ABSTRACT,
    }  # fmt: skip
    done = account.python(
        account.interpreter(),
        "-m",
        PROBE,
        given=json.dumps(asked),
        TMPDIR=str(home / "writable"),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def listener() -> Iterator[None]:
    """A process outside that listens on an abstract socket."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{ABSTRACT}")
        server.listen()
        yield


def refused(outcomes: dict[str, str], *, error: str = "EACCES") -> set[str]:
    return {use for use, found in outcomes.items() if found == error}


@pytest.mark.usefixtures("listener")
def test_files_are_used_as_the_rules_say(account: Account, home: Path) -> None:
    found = probe(account, home, "look", restricted=True)
    assert found["restricted"] == "ok"
    assert refused(found["readable"]) == set(found["readable"]) - READING
    assert refused(found["writable"]) == {"execute"}
    assert refused(found["closed"]) == set(found["closed"])
    for folder in ("readable", "writable", "closed"):
        assert set(found[folder].values()) <= {"ok", "EACCES"}


@pytest.mark.usefixtures("listener")
def test_single_files_and_devices_have_rules_of_their_own(account: Account, home: Path) -> None:
    found = probe(account, home, "look", restricted=True)["others"]
    assert found["read a file rule"] == found["write to the null device"] == "ok"
    assert found["append to a file rule"] == found["write to the zero device"] == "EACCES"
    assert found["interpret what is writable"] == "ok"
    if landlock.abi() >= 5:
        assert found["ask a readable device"] == "EACCES"


@pytest.mark.skipif(landlock.abi() < 6, reason="this kernel's Landlock has no scopes")
@pytest.mark.usefixtures("listener")
def test_signals_and_abstract_sockets_stay_within(account: Account, home: Path) -> None:
    found = probe(account, home, "look", restricted=True)["others"]
    assert found["signal the parent"] == found["connect to a socket outside"] == "EPERM"
    assert found["signal a child"] == found["connect to a socket within"] == "ok"


@pytest.mark.usefixtures("listener")
def test_without_landlock_the_same_uses_succeed(account: Account, home: Path) -> None:
    """So Landlock, and nothing else, refuses in the tests above."""
    found = probe(account, home, "look", restricted=False)
    # An ordinary user may not signal the tests' process, which may be root's.
    if account.uid != os.geteuid():
        assert found["others"].pop("signal the parent") == "EPERM"
    for part in ("readable", "writable", "closed", "others"):
        assert set(found[part].values()) == {"ok"}, found[part]


@pytest.mark.parametrize("restricted", [True, False])
def test_ordinary_work_goes_on(account: Account, home: Path, restricted: bool) -> None:
    assert probe(account, home, "everyday", restricted=restricted)["failures"] == {}


def test_without_no_new_privs_an_ordinary_user_restricts_nothing() -> None:
    account = Account(ORDINARY if os.geteuid() == 0 else os.geteuid())
    with account.home() as home:
        found = probe(account, home, "none", restricted=True, prepared=False)
    assert found["restricted"] == "EPERM"
