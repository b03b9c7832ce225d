"""A worker whose Python is its own user's: steps cannot change it, though they run in it."""

import json
import shutil
from pathlib import Path

from tests.accounts import Account

MODULE = "tests.integration.resources.runtimes.process.own_interpreter"
MODE = 0o755


def test_a_step_cannot_change_the_file_of_the_interpreter() -> None:
    account = Account.of("ordinary user")
    with account.home() as home:
        own = home / "python3"
        shutil.copy(Path(account.interpreter()).resolve(), own)
        shutil.chown(own, account.uid, account.uid)
        own.chmod(MODE)
        done = account.python(str(own), "-m", MODULE, TMPDIR=str(home))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {"output": "/memfd:python (deleted)", "message": "", "mode": MODE}
