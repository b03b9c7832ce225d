"""resources.issuers.cache against the run cache, and what its users try there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import redis
from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.retry import Retry

from isolane.protocol import Grant
from resources.issuers.base import Credential, IssueError, ResourceRequest
from resources.issuers.cache import COMMANDS, CacheIssuer
from tests.integration.resources.issuers.resource_requests import cache_request
from tests.plugin import SERVERS
from tests.tls_certificates import TestAuthority
from tests.tls_servers.relays import TlsRedis

ISSUER = CacheIssuer()
MANY = 2500  # more than one batch


def issue(request: ResourceRequest) -> tuple[Grant, Sequence[Credential]]:
    credentials = ISSUER.plan(request)
    return ISSUER.issue(request, credentials), credentials


def revoke(credentials: Sequence[Credential]) -> None:
    for credential in reversed(credentials):
        ISSUER.revoke(credential)


def enter(grant: Grant) -> "redis.Redis":
    """Connect as a runtime would."""
    client = redis.Redis(
        host=grant.config["host"],
        port=grant.config["port"],
        username=grant.config["username"],
        password=grant.secrets["password"],
        client_name="run",
        protocol=2,
        decode_responses=True,
        single_connection_client=True,
        retry=Retry(NoBackoff(), 0),
    )
    client.ping()
    return client


def test_a_run_works_on_its_own_keys(run_cache: "redis.Redis") -> None:
    request = cache_request()
    grant, credentials = issue(request)
    key = grant.config["prefix"] + "a"
    assert key.startswith(f"exec:{request.execution_id}:1:")
    with enter(grant) as client:
        assert client.set(key, "1", px=60_000)
        assert client.incrby(key, 2) == 3
        assert client.get(key) == "3"
        assert client.exists(key) == 1
        assert client.expire(key, 30)
        assert 0 < client.pttl(key) <= 30_000
        assert client.delete(key) == 1
        assert client.client_id() > 0
    revoke(credentials)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_can_connect_with_either_protocol(run_cache: "redis.Redis", protocol: int) -> None:
    grant, credentials = issue(cache_request())
    with redis.Redis(
        host=grant.config["host"],
        port=grant.config["port"],
        username=grant.config["username"],
        password=grant.secrets["password"],
        protocol=protocol,
    ) as client:
        assert client.ping()
    revoke(credentials)


@pytest.mark.parametrize(
    "command",
    [
        "SCAN 0", "KEYS *", "RANDOMKEY", "DBSIZE", "FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "SELECT 1", "INFO", "MONITOR",
        "EVAL return(1) 0", "SCRIPT FLUSH", "FUNCTION LIST", "SUBSCRIBE a", "PSUBSCRIBE *", "PUBLISH a b",
        "PUBSUB CHANNELS", "CLIENT LIST", "CLIENT KILL TYPE normal", "CLIENT NO-EVICT on", "CLIENT TRACKING on BCAST",
        "CONFIG GET *", "ACL LIST", "ACL WHOAMI", "ACL SETUSER x on nopass ~* +@all", "MULTI", "WATCH a", "SORT {own}a",
        "MIGRATE h 1 {own}a 0 10", "MOVE {own}a 1", "RENAME {own}a b", "COPY {own}a b", "OBJECT FREQ {own}a",
        "DUMP {own}a", "MGET {own}a", "SHUTDOWN", "SAVE", "REPLICAOF NO ONE", "MODULE LIST",
    ],
)  # fmt: skip
def test_everything_that_is_not_on_the_list_is_refused(
    run_cache: "redis.Redis", command: str
) -> None:
    grant, credentials = issue(cache_request())
    with enter(grant) as client:
        words = command.format(own=grant.config["prefix"]).split()
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*words)
    revoke(credentials)


def test_the_remote_server_knows_of_no_other_command(run_cache: "redis.Redis") -> None:
    grant, credentials = issue(cache_request())
    user: Any = run_cache.acl_getuser(grant.config["username"])
    assert set(user["commands"]) == {f"+{command}" for command in COMMANDS}
    assert user["categories"] == ["-@all"]
    assert user["keys"] in (f"~{grant.config['prefix']}*", [f"~{grant.config['prefix']}*"])
    assert not user["channels"]
    assert "nopass" not in user["flags"]
    revoke(credentials)


def test_keys_of_others_are_out_of_reach(run_cache: "redis.Redis") -> None:
    request = cache_request()
    grant, credentials = issue(request)
    other, other_credentials = issue(cache_request())
    next_epoch, next_credentials = issue(cache_request(execution_id=request.execution_id, epoch=11))
    sibling, sibling_credentials = issue(
        cache_request(execution_id=request.execution_id, definition="other")
    )
    foreign = [one.config["prefix"] + "k" for one in (other, next_epoch, sibling)]
    with enter(grant) as client:
        for key in [*foreign, "k", f"exec:{request.execution_id}:1", "exec:*"]:
            run_cache.set(key, "precious")
            for words in (["GET", key], ["SET", key, "x"], ["DEL", key], ["EXISTS", key], ["INCRBY", key, "1"],
                          ["EXPIRE", key, "1"], ["PTTL", key],
                          ["DEL", grant.config["prefix"] + "k", key]):  # fmt: skip
                with pytest.raises(redis.exceptions.NoPermissionError):
                    client.execute_command(*words)
            assert run_cache.get(key) == "precious"
    for made in (credentials, other_credentials, next_credentials, sibling_credentials):
        revoke(made)


def test_after_revocation_neither_an_old_session_nor_a_saved_login_works(
    run_cache: "redis.Redis",
) -> None:
    request = cache_request()
    grant, credentials = issue(request)
    again, again_credentials = issue(cache_request(execution_id=request.execution_id, epoch=2))
    with enter(grant) as old, enter(again) as new:
        old.set(grant.config["prefix"] + "a", "1")
        new.set(again.config["prefix"] + "a", "2")
        revoke(credentials)
        revoke(credentials)
        with pytest.raises(redis.exceptions.ConnectionError):
            old.get(grant.config["prefix"] + "a")
        assert new.get(again.config["prefix"] + "a") == "2"
    with pytest.raises(redis.exceptions.AuthenticationError):
        enter(grant)
    users = {client["user"] for client in run_cache.client_list()}
    assert grant.config["username"] not in users
    assert grant.config["username"] not in run_cache.acl_users()
    assert run_cache.keys() == [again.config["prefix"] + "a"]
    revoke(again_credentials)
    assert run_cache.keys() == []


def test_all_keys_are_evicted_and_no_others(run_cache: "redis.Redis") -> None:
    grant, credentials = issue(cache_request())
    pipeline = run_cache.pipeline()
    for number in range(MANY):
        pipeline.set(f"{grant.config['prefix']}{number}", "x")
        pipeline.set(f"exec:{uuid4()}:1:notes:{number}", "x")
    pipeline.execute()
    revoke(credentials)
    assert run_cache.dbsize() == MANY
    assert run_cache.keys(grant.config["prefix"] + "*") == []


def test_the_user_goes_before_its_keys(run_cache: "redis.Redis") -> None:
    credentials = ISSUER.plan(cache_request())
    assert [credential.kind for credential in reversed(credentials)] == ["cache.user", "cache.keys"]


def test_the_password_is_hashed_before_it_is_sent(
    run_cache: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    send: Any = Connection.send_packed_command

    def recording(self: Connection, command: object, check_health: bool = True) -> object:
        sent.append(command)
        return send(self, command, check_health)

    monkeypatch.setattr(Connection, "send_packed_command", recording)
    grant, credentials = issue(cache_request())
    assert grant.config["username"] in str(sent)
    assert grant.secrets["password"] not in str(sent)
    assert grant.secrets["password"] not in repr(grant)
    revoke(credentials)


def test_the_grant_says_where_and_as_whom(run_cache: "redis.Redis") -> None:
    request = cache_request()
    grant, credentials = issue(request)
    assert set(grant.config) == {"ttl_s", "host", "port", "tls", "ca", "username", "prefix"}
    assert grant.config["ttl_s"] == 60
    assert (grant.config["tls"], grant.config["ca"]) == (False, "")
    assert f":{grant.config['port']}/" in SERVERS.cache_url
    assert grant.secrets["password"] not in SERVERS.cache_url
    revoke(credentials)


def test_authorities_of_the_operators_own_are_those_of_runs(
    run_cache: "redis.Redis", tmp_path: Path
) -> None:
    authority = TestAuthority(tmp_path)
    parts = urlsplit(SERVERS.cache_url)
    relay = TlsRedis(authority.issue("localhost"), to_host="127.0.0.1", to_port=parts.port or 0)
    with relay.serving() as server:
        url = f"rediss://:{parts.password}@localhost:{server.port}/0?ssl_ca_certs={authority.file}"
        issuer = CacheIssuer(url)
        request = cache_request()
        credentials = issuer.plan(request)
        grant = issuer.issue(request, credentials)
        assert (grant.config["tls"], grant.config["ca"]) == (True, authority.file.read_text())
        for credential in reversed(credentials):
            issuer.revoke(credential)
    assert server.server_names == ["localhost"] * 3


def test_authorities_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    missing, request = tmp_path / "ca.pem", cache_request()
    issuer = CacheIssuer(f"rediss://:precious-word@localhost:1/0?ssl_ca_certs={missing}")
    with pytest.raises(IssueError, match=f"ssl_ca_certs={missing} cannot be read: No such file"):
        issuer.issue(request, issuer.plan(request))


def test_a_cache_that_is_away_is_told_without_its_password() -> None:
    issuer = CacheIssuer("redis://:precious-word@127.0.0.1:1/0")
    request = cache_request()
    credentials = issuer.plan(request)
    with pytest.raises(IssueError, match=r"run cache at 127\.0\.0\.1:1") as caught:
        issuer.issue(request, credentials)
    assert "precious-word" not in str(caught.value)
    with pytest.raises(IssueError):
        issuer.revoke(credentials[0])
