"""isolane.baseline: sockets that were left open are found, cheaply."""

import gc
import os
import signal
import socket
import statistics
import time
import weakref
from collections.abc import Iterator

import pytest

from isolane import baseline
from isolane.baseline import Baseline, end_timers


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    """Other tests' garbage is not this one's."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def sockets_left(before: Baseline) -> list[str]:
    return [left for left in before.restore() if "socket" in left]


def test_sockets_that_were_left_open_are_counted() -> None:
    with socket.socket():
        before = Baseline()
        with socket.socket(), open(os.devnull):  # noqa: PTH123 - a descriptor that is no socket
            assert sockets_left(before) == ["1 socket was left open"]
            ours, theirs = socket.socketpair()
            with ours, theirs:
                assert sockets_left(before) == ["3 sockets were left open"]
        assert sockets_left(before) == []


def test_a_copy_of_a_descriptor_is_no_new_socket() -> None:
    with socket.socket() as one:
        before = Baseline()
        with one.dup():
            assert sockets_left(before) == []


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_what_only_a_cycle_holds_is_collected_first() -> None:
    class Client:
        def __init__(self) -> None:
            self.socket, self.me = socket.socket(), self

    before = Baseline()
    gone = weakref.ref(Client())
    assert gone() is not None
    assert sockets_left(before) == []
    assert gone() is None


def test_nothing_is_collected_where_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a collection takes long"))
    assert sockets_left(Baseline()) == []


def test_systems_list_descriptors_in_other_places_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(baseline, "_DESCRIPTORS", ("/nowhere/fd", "/dev/fd"))
    before = Baseline()
    with socket.socket():
        assert sockets_left(before) == ["1 socket was left open"]
        monkeypatch.setattr(baseline, "_DESCRIPTORS", ("/nowhere/fd",))
        assert sockets_left(before) == []


def test_a_look_costs_little() -> None:
    """About 50 µs with two dozen descriptors; the bound is for a busy machine."""
    times = []
    for _ in range(200):
        start = time.perf_counter()
        baseline._sockets()
        times.append(time.perf_counter() - start)
    assert statistics.median(times) < 0.001


def test_timers_that_were_left_are_ended() -> None:
    signal.setitimer(signal.ITIMER_REAL, 60)
    end_timers()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
