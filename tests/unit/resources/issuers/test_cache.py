"""resources.issuers.cache: what it refuses before it requests the cache."""

from uuid import UUID

import pytest
from pytest_django import Settings

from resources.issuers.base import IssueError, ResourceRequest
from resources.issuers.cache import CacheIssuer

ASK = ResourceRequest(
    tenant="acme",
    execution_id=UUID(int=7),
    epoch=3,
    name="handle",
    type="cache",
    definition="notes",
    scope="execution",
    eager=False,
    config={"ttl_s": 60},
    secrets={},
    address="",
    seconds_left=10,
)


def test_without_a_cache_nothing_is_promised(settings: Settings) -> None:
    settings.CACHE_URL = ""
    with pytest.raises(IssueError, match="ISOLANE_CACHE_URL"):
        CacheIssuer().plan(ASK)


def test_a_unix_socket_is_refused_without_its_password() -> None:
    with pytest.raises(IssueError, match="not a TCP address") as caught:
        CacheIssuer("unix://:precious@/run/valkey.sock").plan(ASK)
    assert "precious" not in str(caught.value)


def test_the_names_hold_execution_epoch_and_definition() -> None:
    keys, user = CacheIssuer("redis://:x@cache/0").plan(ASK)
    assert (keys.kind, keys.remote_id) == ("cache.keys", f"exec:{UUID(int=7)}:3:notes:")
    assert (user.kind, user.remote_id) == ("cache.user", f"exec:{UUID(int=7)}:3:notes")
