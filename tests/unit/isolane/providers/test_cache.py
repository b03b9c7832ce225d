"""isolane.providers.cache: what a definition may say, and what redis-py is told."""

from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest
import redis.connection

from isolane.protocol import Grant
from isolane.providers.cache import Cache, CacheConfig
from isolane.shapes import ShapeError, build


def grant(*, tls: bool) -> Grant:
    config = {
        "ttl_s": 60,
        "host": "cache.example.com",
        "port": 6380,
        "tls": tls,
        "username": "user",
        "prefix": "exec:e1:1:",
    }
    return Grant(
        name="cache",
        type="cache",
        definition="run-cache",
        scope="execution",
        config=config,
        secrets={"password": "correct-horse"},
    )


@pytest.mark.parametrize(("tls", "name"), [(True, "SSLConnection"), (False, "Connection")])
def test_it_connects_as_the_grant_says(
    tls: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = MagicMock()
    monkeypatch.setattr(redis.connection, name, connection)
    Cache().create(grant(tls=tls), "the tag")
    expected = {
        "host": "cache.example.com", "port": 6380, "username": "user", "password": "correct-horse",
        "client_name": "the tag", "driver_info": None,
    }  # fmt: skip
    assert connection.call_args.kwargs.items() >= expected.items()
    connection.return_value.connect.assert_called_once_with()


def test_a_broker_has_the_user_and_speaks_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = MagicMock()
    monkeypatch.setattr(redis.connection, "Connection", connection)
    whole = grant(tls=True)
    del whole.config["username"]
    brokered = replace(whole, address="127.7.0.1", brokered=True, secrets={})
    handle = Cache().create(brokered, "the tag")
    said = connection.call_args.kwargs
    assert (said["host"], said["port"]) == ("127.7.0.1", 6380)
    assert {"username", "password"}.isdisjoint(said)
    assert handle._prefix == "exec:e1:1:"


def test_a_half_made_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = MagicMock()
    connection.return_value.connect.side_effect = KeyboardInterrupt
    monkeypatch.setattr(redis.connection, "Connection", connection)
    with pytest.raises(KeyboardInterrupt):
        Cache().create(grant(tls=False), "the tag")
    connection.return_value.disconnect.assert_called_once_with()


def test_a_definition_has_a_time_to_live_and_nothing_else() -> None:
    assert build(CacheConfig, {}, "config").ttl_s == 3600
    assert Cache.secrets == {}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"ttl_s": 0}, "ttl_s: 0.0 is not above 0"),
        ({"ttl_s": 1e12}, "ttl_s: 1000000000000.0 is not above 0, up to 31622400"),
        ({"ttl_s": "1h"}, "ttl_s: expected number"),
        ({"host": "elsewhere"}, "unknown field 'host'"),
    ],
)
def test_a_bad_config_names_the_field(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        build(CacheConfig, config, "config")
