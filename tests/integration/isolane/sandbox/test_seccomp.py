"""Loading a filter: it holds everywhere in the process and cannot be lifted."""

import json
import os
from typing import Any

import pytest

from tests.accounts import KINDS, ORDINARY, Account

PROBE = "tests.integration.isolane.sandbox.loading"
REFUSED = -42  # glibc passes the error of this call on as it is


def loading(account: Account, how: str) -> Any:
    done = account.python(account.interpreter(), "-m", PROBE, how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_holds_in_threads_and_children_and_is_never_lifted(kind: str) -> None:
    found = loading(Account.of(kind), "prepared")
    assert all(parent > 0 for parent in found["before"].values())
    assert found["loaded"] == found["lifted"] == "ok"
    assert found["after"] == dict.fromkeys(("self", "thread", "child"), REFUSED)
    assert found["nonsense"] == "EINVAL"
    assert found["mode"] == "2"


def test_without_no_new_privs_an_ordinary_user_loads_nothing() -> None:
    found = loading(Account(ORDINARY if os.geteuid() == 0 else os.geteuid()), "unprepared")
    assert found["loaded"] == "EACCES"
    assert REFUSED not in found["after"].values()
    assert found["mode"] == "0"
