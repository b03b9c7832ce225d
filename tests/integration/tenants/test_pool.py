"""The pool does not let callers wait for a server that is away, and uses it at once when it is back."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolTimeout

from tenants.postgresql.pool import Pool
from tests.plugin import SERVERS
from tests.waiting import wait_for

CALLERS = 6
NOWHERE = {"host": "/nowhere", "password": "hunter2"}


@pytest.fixture
def somewhere(servers: None) -> dict[str, Any]:
    """The address of the server."""
    return {**conninfo_to_dict(SERVERS.login_url), "autocommit": True}


@pytest.fixture
def pool(somewhere: dict[str, Any]) -> Iterator[Pool]:
    """A pool whose server is not there yet."""
    with Pool(kwargs={**somewhere, **NOWHERE}, min_size=1, max_size=3, timeout=20) as made:
        yield made


def refused(pool: Pool) -> str:
    """Ask for a connection and be refused."""
    with pytest.raises(psycopg.OperationalError) as raised:
        pool.getconn()
    return str(raised.value)


def test_who_asks_is_told_at_once_why_there_is_none(pool: Pool) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(CALLERS) as callers:
        reasons = [callers.submit(refused, pool) for _ in range(CALLERS)]
    assert time.monotonic() - began < 10  # of the 20 s that a caller would wait otherwise
    for reason in reasons:
        assert "/nowhere" in reason.result()
        assert "hunter2" not in reason.result()


def test_a_server_that_is_back_is_used_at_once(pool: Pool, somewhere: dict[str, Any]) -> None:
    for _ in range(3):
        refused(pool)
    pool.kwargs = somewhere
    began = time.monotonic()
    pool.putconn(pool.getconn())
    assert time.monotonic() - began < 5


def test_who_may_have_one_that_is_in_use_waits_for_it(
    somewhere: dict[str, Any],
) -> None:
    with Pool(kwargs=somewhere, min_size=0, max_size=3, timeout=20) as pool:
        used = pool.getconn()
        pool.kwargs = {**somewhere, **NOWHERE}  # no further one can be opened
        with ThreadPoolExecutor(1) as callers:
            waiting = callers.submit(pool.getconn)
            wait_for(lambda: pool.get_stats().get("connections_errors"), "a try to have failed")
            assert not waiting.done()
            pool.putconn(used)
            assert waiting.result(10) is used
        pool.putconn(used)


def test_a_server_that_takes_connections_and_says_nothing_is_waited_for_no_longer_than_said() -> (
    None
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = {"host": "127.0.0.1", "port": silent.getsockname()[1], "connect_timeout": 2}
        with Pool(kwargs=address, min_size=0, max_size=2, timeout=0.5) as pool:
            with pytest.raises(PoolTimeout):
                pool.getconn()


def test_one_that_is_dead_makes_the_pool_replace_the_others_once(somewhere: dict[str, Any]) -> None:
    with Pool(kwargs=somewhere, min_size=2, max_size=3, timeout=20) as pool:
        pool.wait(10)
        dead, older = pool.getconn(), pool.getconn()
        pool.distrust(dead)
        younger = pool.getconn()
        pool.distrust(older)  # found out later, of the same end
        for connection in (dead, older, younger):
            pool.putconn(connection)
        wait_for(lambda: pool.get_stats()["pool_available"] == 3, "all to be back")
        kept = [pool.getconn() for _ in range(3)]
        assert younger in kept
        assert dead not in kept
        assert older not in kept
        for connection in kept:
            pool.putconn(connection)
