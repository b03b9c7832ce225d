"""A step finds no credential of its worker in /proc, whether both run as root or as an ordinary user."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.accounts import KINDS, Account

HOST = "tests.integration.resources.runtimes.host"
CREDENTIALS = {
    "DATABASE_URL": "postgresql://login:hunter2@db.example.com/shop",
    "REDIS_URL": "redis://:hunter2@broker.example.com/0",
    "ENCRYPTION_KEYS": "a2V5" * 10 + "a2U=",
    "BASE_HOST": "isolane.example.com",
    "SECRET_KEY": "hunter2-" * 7,
}


@pytest.fixture(params=KINDS)
def account(request: pytest.FixtureRequest) -> Account:
    return Account.of(request.param)


@pytest.fixture
def home(account: Account) -> Iterator[Path]:
    with account.home() as path:
        yield path


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
