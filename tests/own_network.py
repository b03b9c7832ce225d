"""A network of a test's own: all addresses are this machine's, forbidden targets listen, and nothing leaves it."""

import json
from typing import Any

from tests.accounts import Account
from tests.requirements import give_up

_HOST = "tests.network_host"


def run_in_own_network(function: str, given: Any = None, *, kind: str = "as we are") -> Any:
    """Call `module:function` there, in a process of its own; return what it returned and what the targets counted.

    `kind` is one of `tests.accounts.KINDS`. Where the machine does not allow such a namespace the test is given up.
    """
    account = Account.of(kind)
    with account.home() as home:
        home.chmod(0o755)  # a sandbox of root's is another user's
        done = account.python(
            account.interpreter(),
            "-m",
            _HOST,
            function,
            given=json.dumps(given),
            TMPDIR=str(home),
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if reason := told.get("unavailable"):
        give_up(f"there is no network namespace for tests: {reason}")
    return told
