"""A server that cannot be used is reported in one line, without its password."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import redis
from django.core.exceptions import ImproperlyConfigured

from orchestrator.preflight import (
    ServerUnusable,
    check_cache,
    check_postgres,
    check_redis,
    external_servers,
)


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
    return port


def one_line(refused: pytest.ExceptionInfo[ServerUnusable]) -> str:
    message = str(refused.value)
    assert "\n" not in message
    assert "hunter2" not in message
    return message


def test_a_postgres_that_is_away(closed_port: int) -> None:
    with pytest.raises(ServerUnusable) as refused:
        check_postgres(f"postgresql://u:hunter2@127.0.0.1:{closed_port}/shop", "DATABASE_URL")
    expected = f"PostgreSQL at 127.0.0.1:{closed_port} does not answer: Connection refused"
    assert one_line(refused) == f"DATABASE_URL: {expected}"


def test_a_postgres_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object, **__: object) -> None:
        raise psycopg.errors.ConnectionTimeout("connection timeout expired")

    monkeypatch.setattr(psycopg, "connect", connect)
    with pytest.raises(ServerUnusable) as refused:
        check_postgres("postgresql://u:hunter2@192.0.2.1/shop", "DATABASE_URL")
    expected = "PostgreSQL at 192.0.2.1:5432 does not answer: connection timeout expired"
    assert one_line(refused) == f"DATABASE_URL: {expected}"


def test_a_postgres_socket_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ServerUnusable) as refused:
        check_postgres(f"postgresql:///shop?host={tmp_path}&port=7", "DATABASE_URL")
    assert f"{tmp_path}:7 does not answer: No such file or directory" in one_line(refused)


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_a_redis_that_is_away(closed_port: int, scheme: str) -> None:
    with pytest.raises(ServerUnusable) as refused:
        check_redis(f"{scheme}://:hunter2@127.0.0.1:{closed_port}/0")
    assert one_line(refused).startswith(
        f"REDIS_URL: Redis at 127.0.0.1:{closed_port} does not answer: "
    )


def test_a_redis_socket_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ServerUnusable) as refused:
        check_redis(f"unix://:hunter2@{tmp_path}/redis.sock")
    assert "redis.sock does not answer" in one_line(refused)


def test_a_redis_url_with_a_wrong_port() -> None:
    with pytest.raises(ServerUnusable) as refused:
        check_redis("redis://:hunter2@localhost:many/0")
    assert "localhost:many does not answer" in one_line(refused)


class Answering:
    """A server that reports its version."""

    def __init__(self, version: Any) -> None:
        self.info_of_server = version

    def __enter__(self) -> "Answering":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def info(self, _section: str) -> dict[str, str]:
        return {"redis_version": self.info_of_server}


def test_a_postgres_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    old = Answering(None)
    old.info = SimpleNamespace(server_version=130_011)  # type: ignore[assignment, method-assign]
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: old)
    with pytest.raises(ServerUnusable) as refused:
        check_postgres("postgresql://db/shop", "DATABASE_OWNER_URL")
    expected = "DATABASE_OWNER_URL: PostgreSQL 13 is too old; use 14 or newer."
    assert one_line(refused) == expected


@pytest.mark.parametrize("version", ["5.0.14", "6.0.16"])
def test_a_redis_that_is_too_old(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(redis.Redis, "from_url", lambda *_, **__: Answering(version))
    with pytest.raises(ServerUnusable) as refused:
        check_redis("redis://h/0")
    assert (
        one_line(refused) == f"REDIS_URL: Redis {version} is too old; use 6.2 or newer, or Valkey."
    )


@pytest.mark.parametrize("version", ["6.2.0", "7.2.4", "10.0.1"])
def test_a_redis_that_will_do(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(redis.Redis, "from_url", lambda *_, **__: Answering(version))
    check_redis("redis://h/0")


def test_a_cache_that_is_away_is_named(closed_port: int) -> None:
    with pytest.raises(ServerUnusable) as refused:
        check_cache(f"redis://:hunter2@127.0.0.1:{closed_port}/0", "redis://broker/0")
    assert one_line(refused).startswith(f"ISOLANE_CACHE_URL: Redis at 127.0.0.1:{closed_port} does")


def test_a_cache_alone_is_half_of_the_servers() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^DATABASE_URL is not set, but ISOLANE_CACHE"):
        external_servers({"ISOLANE_CACHE_URL": "redis://:hunter2@cache:6379/0"})
    assert external_servers({}) is None
