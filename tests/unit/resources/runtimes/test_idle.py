"""resources.runtimes.idle: which runners are kept, and which are ended."""

from types import SimpleNamespace
from typing import cast

import pytest

from resources.runtimes import idle
from resources.runtimes.idle import RUNNER_MB, UNUSED_SECONDS, IdleRunners, usual_idle_mb
from resources.runtimes.shared_runner import SharedRunner


def a_runner(grown_mb: float = 0.0) -> SharedRunner:
    """A runner that is never used."""
    return cast("SharedRunner", SimpleNamespace(grown_mb=grown_mb))


def test_a_tenant_gets_its_own_and_the_last_used_first() -> None:
    runners = IdleRunners(most_mb=100)
    first, other, second = a_runner(), a_runner(), a_runner()
    for runner, tenant_id in ((first, 1), (other, 2), (second, 1)):
        runners.add(runner, tenant_id, now=0.0)
    assert [runners.take(1) for _ in range(3)] == [second, first, None]
    assert list(runners) == [other]


def test_all_are_kept_as_long_as_they_fit() -> None:
    runners = IdleRunners(most_mb=3 * RUNNER_MB)
    for tenant_id in range(3):
        runners.add(a_runner(), tenant_id, now=0.0)
    assert runners.take_surplus() == []
    assert len(runners) == 3


@pytest.mark.parametrize(("at_once", "kept"), [(1, 3), (2, 2), (8, 0)])
def test_of_too_many_the_longest_idle_are_ended_some_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int, kept: int
) -> None:
    monkeypatch.setattr(idle, "_AT_ONCE", at_once)
    runners, added = IdleRunners(most_mb=3 * RUNNER_MB), [a_runner() for _ in range(4)]
    for tenant_id, runner in enumerate(added):
        runners.add(runner, tenant_id, now=0.0)
    assert runners.take_surplus() == added[: 4 - kept]
    assert list(runners) == added[4 - kept :]
    assert runners.take_surplus() == []


def test_one_that_has_grown_takes_the_room_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_AT_ONCE", 1)
    runners, small = IdleRunners(most_mb=6 * RUNNER_MB), [a_runner() for _ in range(4)]
    for tenant_id, runner in enumerate(small):
        runners.add(runner, tenant_id, now=0.0)
    runners.add(large := a_runner(grown_mb=3 * RUNNER_MB), 9, now=0.0)
    assert runners.take_surplus() == small[:2]
    runners.add(
        a_runner(grown_mb=-5.0), 10, now=0.0
    )  # one that has shrunk counts as one that has not grown
    assert runners.take_surplus() == [small[2]]
    assert runners.take(9) is large


def test_none_is_kept_without_room() -> None:
    runners = IdleRunners(most_mb=0)
    runners.add(only := a_runner(), 1, now=0.0)
    assert runners.take_surplus() == [only]


@pytest.mark.parametrize(("usable", "found"), [(4096, 256), (24_576, 1536), (262_144, 1536)])
def test_their_room_depends_on_the_machine(usable: float, found: float) -> None:
    assert usual_idle_mb(usable) == found


def test_the_unused_are_ended() -> None:
    runners = IdleRunners(most_mb=100)
    old, new = a_runner(), a_runner()
    runners.add(old, 1, now=0.0)
    runners.add(new, 2, now=10.0)
    assert runners.take_unused(UNUSED_SECONDS) == []
    assert runners.take_unused(UNUSED_SECONDS + 1) == [old]
    assert runners.take_all() == [new]
    assert len(runners) == 0
