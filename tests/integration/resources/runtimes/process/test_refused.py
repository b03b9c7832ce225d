"""The level `process` on machines that refuse it: never offered, never weaker, and the way out is named."""

import json
import os
from typing import Any

import pytest

from resources.runtimes.process import ProcessBackend
from tests.accounts import KINDS, ORDINARY, Account
from tests.integration.resources.runtimes.conftest import why_not
from tests.requirements import give_up

MODULE = "tests.integration.resources.runtimes.process.obstructed"
REASONS = {
    "namespaces": (
        "making the namespaces: No space left on device",
        "(allow user namespaces: 'sysctl user.max_user_namespaces=65536'",
    ),
    "proc": (
        "mounting proc: Operation not permitted",
        "(/proc of this machine is masked, as in most containers: run the worker outside of one",
    ),
}


def told_behind(obstacle: str, account: Account) -> Any:
    with account.home() as home:
        done = account.python(account.interpreter(), "-m", MODULE, obstacle, TMPDIR=str(home))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(obstacle: str, account: Account) -> None:
    if reason := why_not(ProcessBackend):
        give_up(f"this machine refuses it for another reason: {reason}")
    told = told_behind(obstacle, account)
    problem, way_out = REASONS[obstacle]
    assert not told["ok"]
    assert told["reason"].startswith(f"the sandbox cannot be built: {problem} {way_out}")
    assert problem in told["run"]["process"]
    assert told["run"]["shared"] == "output 2"


def test_without_user_namespaces_it_is_refused() -> None:
    """As an ordinary user, who can forbid them in a namespace of its own; root has no zygote in such a one."""
    check("namespaces", Account(os.geteuid() or ORDINARY))


@pytest.mark.parametrize("kind", KINDS)
def test_behind_a_masked_proc_it_is_refused(kind: str) -> None:
    check("proc", Account.of(kind))
