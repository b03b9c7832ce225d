"""resources.runtimes.keepalive: the time until which runtimes may live, and a look back."""

import time

import pytest

from resources.runtimes.keepalive import KeepaliveTerm


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as the test wants it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_any_promise_nothing_lapses(clock: list[float]) -> None:
    term = KeepaliveTerm()
    clock[0] = 1e9
    assert not term.lapsed_since(0.0)


def test_renewed_in_time_it_has_not_lapsed(clock: list[float]) -> None:
    term = KeepaliveTerm()
    for _ in range(3):
        term.renew(clock[0] + 10)
        clock[0] += 9
    assert not term.lapsed_since(100.0)
    assert term.until == 128.0


def test_a_lapse_is_remembered_for_what_began_before_it(clock: list[float]) -> None:
    term = KeepaliveTerm()
    term.renew(110.0)
    clock[0] = 110.0
    assert term.lapsed_since(105.0)
    clock[0] = 120.0
    term.renew(130.0)
    assert term.lapsed_since(105.0)
    assert not term.lapsed_since(121.0)
