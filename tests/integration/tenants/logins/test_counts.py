"""Failures are counted in Redis as in one process; a Redis that is away does not evade the limit."""

from collections.abc import Callable, Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from foundation.backoff import Counted, CountedSubject, doubling
from foundation.failure_counts import FailureCounts
from orchestrator.broker_users import WEB
from tenants.logins.counts import PREFIX, REST_SECONDS, SharedCounts
from tests.plugin import SERVERS

PAIR = CountedSubject(name="account:x", backoff=doubling(free=2, longest=8_000, memory=60_000))
ADDRESS = CountedSubject(name="address:x", backoff=doubling(free=4, longest=2_000, memory=30_000))
Counts = SharedCounts | FailureCounts


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["redis", "process"])
def make(request: pytest.FixtureRequest, clock: Clock) -> Callable[[], Counts]:
    """Counts as one more web process has them; in a process alone there is but one."""
    if request.param == "process":
        own = FailureCounts(clock=clock)
        return lambda: own
    request.getfixturevalue("broker")
    return lambda: SharedCounts(as_web(), clock=clock)


def as_web() -> redis.Redis:
    """The broker with the rights of web, which are few; an error is one, and no reason to count elsewhere."""
    return redis.Redis.from_url(SERVERS.redis_url_of(WEB), retry=Retry(NoBackoff(), 0))


@pytest.fixture(autouse=True)
def nobody_counts_alone(
    caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Redis takes part in all tests but those in which it is away or wrong."""
    yield
    if "away" not in request.node.name and "nonsense" not in request.node.name:
        assert caplog.records == []


def test_each_failure_is_counted_and_brings_its_wait(
    make: Callable[[], Counts], clock: Clock
) -> None:
    found = []
    for _ in range(5):
        counted = make().count([PAIR])
        found.append(counted.failures)
        wait = make().count([PAIR]).wait if counted.failures > (2,) else 0
        found.append((wait // 1000,))
        clock.now += wait / 1000
    assert found == [(1,), (0,), (2,), (0,), (3,), (1,), (4,), (2,), (5,), (4,)]


def test_nothing_is_counted_while_one_subject_waits(
    make: Callable[[], Counts], clock: Clock
) -> None:
    counts = make()
    for _ in range(5):
        counts.count([ADDRESS])
    assert counts.count([PAIR, ADDRESS]).waits == (0, 1000)
    clock.now += 1
    assert counts.count([PAIR, ADDRESS]).failures == (1, 6)


def test_one_is_given_back_and_all_are_forgotten(make: Callable[[], Counts]) -> None:
    counts = make()
    for _ in range(3):
        counts.count([PAIR])
    counts.give_back(PAIR.name)
    assert counts.count([PAIR]).failures == (3,)
    counts.forget(PAIR.name)
    assert counts.count([PAIR]).failures == (1,)
    counts.forget(PAIR.name)
    counts.give_back(PAIR.name)
    assert counts.count([PAIR]).failures == (1,)


def test_a_clock_that_was_wrong_makes_nobody_wait_for_long(
    make: Callable[[], Counts], clock: Clock
) -> None:
    counts = make()
    clock.now += 86_400
    for _ in range(3):
        counts.count([PAIR])
    clock.now -= 86_400
    assert counts.count([PAIR]).wait == 8_000


def test_who_comes_at_the_same_time_with_a_clock_behind_does_not_wait(
    make: Callable[[], Counts], clock: Clock
) -> None:
    make().count([PAIR])
    clock.now -= 5
    assert make().count([PAIR]) == Counted(waits=(0,), failures=(2,))


def test_a_process_forgets_in_time(clock: Clock) -> None:
    counts = FailureCounts(clock=clock)
    for _ in range(3):
        counts.count([PAIR])
    clock.now += 60
    assert counts.count([PAIR]).failures == (1,)


def test_redis_forgets_in_time(broker: redis.Redis, clock: Clock) -> None:
    SharedCounts(as_web(), clock=clock).count([PAIR, ADDRESS])
    SharedCounts(as_web(), clock=clock).give_back(PAIR.name)
    assert {name.decode() for name in broker.scan_iter()} == {
        PREFIX + PAIR.name,
        PREFIX + ADDRESS.name,
    }
    assert 59_000 < broker.pttl(PREFIX + PAIR.name) <= 60_000
    assert 29_000 < broker.pttl(PREFIX + ADDRESS.name) <= 30_000


def test_while_redis_is_away_the_process_counts_by_itself(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = redis.Redis(unix_socket_path="/nowhere/redis.sock", retry=Retry(NoBackoff(), 0))
    counts = SharedCounts(nowhere, clock=clock, monotonic=clock)
    assert [counts.count([PAIR]).failures for _ in range(3)] == [(1,), (2,), (3,)]
    assert counts.count([PAIR]).wait == 1000
    counts.give_back(PAIR.name)
    counts.forget(PAIR.name)
    assert counts.count([PAIR]).failures == (1,)
    assert [vars(line)["event"] for line in caplog.records] == ["LOGIN_COUNTS_OWN"]
    clock.now += REST_SECONDS
    counts.count([PAIR])
    assert len(caplog.records) == 2


def test_nonsense_of_redis_is_no_error(broker: redis.Redis, clock: Clock) -> None:
    broker.set(PREFIX + PAIR.name, "not of ours")
    assert SharedCounts(as_web(), clock=clock).count([PAIR]).failures == (1,)
    broker.delete(PREFIX + PAIR.name)
    broker.lpush(PREFIX + PAIR.name, "not even a text")
    assert SharedCounts(as_web(), clock=clock).count([PAIR]).failures == (1,)
