"""The provider `cache` against a real Valkey, as a user with an allow-list, seen from the server's side."""

import hashlib
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from isolane.protocol import Grant
from isolane.providers.cache import SECONDS, Cache, CacheHandle
from isolane.results import Code, StepError
from isolane.tags import tag
from tests.plugin import SERVERS
from tests.waiting import wait_for

PASSWORD = "correct-horse"
ALLOWED = (
    "get", "set", "del", "exists", "incrby", "expire", "pttl", "ping", "client|setname", "client|id", "hello", "auth",
)  # fmt: skip


def command(cache: Any, *words: str) -> None:
    """Through a parameter of any type: redis-py does not type it."""
    cache.execute_command(*words)


def make_user(cache: "redis.Redis", execution_id: str) -> Grant:
    """A user as the worker makes it, and the grant for it."""
    user, prefix = f"exec-{execution_id}-1", f"exec:{execution_id}:1:"
    digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
    rules = ["reset", "on", f"#{digest}", f"~{prefix}*", "resetchannels", "-@all"]
    command(cache, "ACL", "SETUSER", user, *rules, *(f"+{name}" for name in ALLOWED))
    where = urlsplit(SERVERS.cache_url)
    config = {
        "ttl_s": 60,
        "host": where.hostname,
        "port": where.port,
        "tls": False,
        "username": user,
        "prefix": prefix,
    }
    return Grant(
        name="cache",
        type="cache",
        definition="run-cache",
        scope="execution",
        config=config,
        secrets={"password": PASSWORD},
    )


def mark_of(execution_id: str) -> str:
    return tag(tenant_id="acme", execution_id=execution_id, epoch=1)


def clients(cache: "redis.Redis", execution_id: str) -> list[dict[str, str]]:
    return [one for one in cache.client_list() if execution_id in one["name"]]


@pytest.fixture
def execution_id() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def handle(run_cache: "redis.Redis", execution_id: str) -> Iterator[CacheHandle]:
    handle = Cache().create(make_user(run_cache, execution_id), mark_of(execution_id))
    yield handle
    handle.close()


def test_the_server_sees_one_tagged_client_while_it_is_open(
    run_cache: "redis.Redis", execution_id: str
) -> None:
    provider, grant = Cache(), make_user(run_cache, execution_id)
    command(run_cache, "ACL", "LOG", "RESET")
    handle = provider.create(grant, mark_of(execution_id))
    said = provider.check(handle)
    (client,) = clients(run_cache, execution_id)
    assert said == {"client_id": int(client["id"]), "user": client["user"]}
    assert client["name"] == mark_of(execution_id)
    assert run_cache.acl_log() == []  # it asks for nothing that it may not
    provider.dispose(handle)
    provider.dispose(handle)
    wait_for(lambda: not clients(run_cache, execution_id), "the client to go")
    for use in (lambda: handle.get("a"), lambda: handle.set("a", 1), handle.check):
        with pytest.raises(RuntimeError, match="this cache handle is closed"):
            use()
    assert clients(run_cache, execution_id) == []


@pytest.mark.parametrize("value", [0, 1.5, "text", "ü", None, True, [1, {"a": None}], {}])
def test_values_are_json(handle: CacheHandle, value: Any) -> None:
    handle.set("key", value)
    assert handle.get("key") == value
    assert type(handle.get("key")) is type(value)


def test_keys_live_below_the_prefix_for_their_time(
    handle: CacheHandle, run_cache: "redis.Redis", execution_id: str
) -> None:
    prefix = f"exec:{execution_id}:1:"
    handle.set("long", 1)
    handle.set("short", 1, ttl_s=0.05)
    assert handle.incr("counted", 5) == 5
    assert 59_000 < run_cache.pttl(f"{prefix}long") <= 60_000
    assert 59_000 < run_cache.pttl(f"{prefix}counted") <= 60_000
    wait_for(lambda: not handle.exists("short"), "the key to end")
    assert handle.get("short") is None
    assert set(run_cache.keys()) == {f"{prefix}long", f"{prefix}counted"}


def test_numbers_are_counted_from_any_thread(handle: CacheHandle) -> None:
    with ThreadPoolExecutor(8) as threads:
        counted = list(threads.map(lambda _: handle.incr("n"), range(100)))
    assert sorted(counted) == list(range(1, 101))
    assert handle.incr("n", -100) == 0
    handle.set("n", 41)
    assert handle.incr("n") == 42
    assert handle.get("n") == 42


def test_keys_are_deleted_and_looked_for(handle: CacheHandle) -> None:
    assert not handle.delete("key")
    assert not handle.exists("key")
    handle.set("key", None)
    assert handle.exists("key")
    assert handle.delete("key")
    assert handle.get("key") is None


def test_what_the_server_refuses_is_said_and_the_handle_goes_on(handle: CacheHandle) -> None:
    handle.set("text", "x")
    with pytest.raises(StepError, match=r"the cache refuses: .*not an integer") as caught:
        handle.incr("text")
    assert caught.value.code is Code.UNKNOWN_ERROR
    assert handle.get("text") == "x"


def test_two_placements_do_not_see_each_other(run_cache: "redis.Redis") -> None:
    one, other = (
        Cache().create(make_user(run_cache, name), mark_of(name)) for name in ("one", "other")
    )
    one.set("key", "mine")
    assert other.get("key") is None
    stolen = CacheHandle(other._connection, prefix="exec:one:1:", ttl_s=60, user="")
    with pytest.raises(StepError, match="the cache refuses: "):
        stolen.get("key")
    one.close()
    other.close()


def test_a_client_that_was_killed_never_connects_again(
    handle: CacheHandle, run_cache: "redis.Redis", execution_id: str
) -> None:
    (client,) = clients(run_cache, execution_id)
    run_cache.client_kill_filter(_id=client["id"])
    for _ in range(3):
        with pytest.raises(StepError, match="the cache cannot be asked: ") as caught:
            handle.get("key")
        assert caught.value.code is Code.TRANSIENT_ERROR
    assert clients(run_cache, execution_id) == []


def test_the_driver_does_not_connect_again_by_itself(
    handle: CacheHandle, run_cache: "redis.Redis", execution_id: str
) -> None:
    """As when another thread closes it between the look and the command."""
    handle._connection.disconnect()
    with pytest.raises(StepError, match="its connection is gone"):
        handle.get("key")
    with pytest.raises(redis.ConnectionError, match="its connection is gone"):
        handle._connection.connect()
    assert clients(run_cache, execution_id) == []


def test_a_server_that_does_not_answer_is_a_timeout_and_the_end(
    run_cache: "redis.Redis", execution_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolane.providers.cache.SECONDS", 0.2)
    handle = Cache().create(make_user(run_cache, execution_id), mark_of(execution_id))
    run_cache.client_pause(30_000, all=False)  # writes only: it must be possible to end it
    try:
        with pytest.raises(StepError, match=r"did not answer within 0\.2 s") as caught:
            handle.set("key", 1)
    finally:
        run_cache.client_unpause()
    assert caught.value.code is Code.TIMEOUT
    with pytest.raises(StepError, match="its connection is gone"):
        handle.get("key")


def test_it_is_closed_under_a_command_that_waits(
    handle: CacheHandle, run_cache: "redis.Redis"
) -> None:
    failed: list[BaseException] = []
    begun = threading.Event()

    def ask() -> None:
        begun.set()
        try:
            handle.set("key", 1)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is looked at
            failed.append(error)

    run_cache.client_pause(30_000, all=False)
    try:
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        begun.wait(5)
        wait_for(handle._lock.locked, "the command to be sent")
        handle.close()
        thread.join(SECONDS - 1)
        assert not thread.is_alive()
    finally:
        run_cache.client_unpause()
    assert [type(error) for error in failed] == [RuntimeError]


def test_a_wrong_password_leaves_no_client(run_cache: "redis.Redis", execution_id: str) -> None:
    grant = make_user(run_cache, execution_id)
    grant.secrets["password"] = "wrong-and-secret"
    before = len(run_cache.client_list())
    with pytest.raises(redis.AuthenticationError) as caught:
        Cache().create(grant, mark_of(execution_id))
    assert "wrong-and-secret" not in str(caught.value)
    wait_for(lambda: len(run_cache.client_list()) == before, "the client to go")


@pytest.mark.parametrize(
    ("use", "error", "reason"),
    [
        (lambda cache: cache.get(5), TypeError, "a key must be a str, not int"),
        (lambda cache: cache.get(""), ValueError, "key '' has 0 bytes, not 1 to 1024"),
        (lambda cache: cache.get("x" * 1025), ValueError, "has 1025 bytes"),
        (lambda cache: cache.set("k", {1, 2}), ValueError, "key 'k' cannot hold set: not JSON"),
        (lambda cache: cache.set("k", 1, ttl_s=0), ValueError, "ttl_s: 0 is not above 0"),
        (lambda cache: cache.set("k", 1, ttl_s="1h"), TypeError, "ttl_s must be a number, not str"),
        (lambda cache: cache.incr("k", 1.5), TypeError, "by must be an int, not float"),
    ],
)
def test_a_bad_argument_is_named(
    handle: CacheHandle, use: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        use(handle)
