"""isolane.sockets: what was opened and not closed is counted."""

import gc
import os
import socket
import weakref
from collections.abc import Iterator

import pytest

from isolane import sockets
from isolane.sockets import Sockets


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    """Other tests' garbage is not this one's."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_sockets_that_were_left_open_are_counted() -> None:
    with socket.socket():
        before = Sockets()
        with socket.socket(), open(os.devnull):  # noqa: PTH123 - a descriptor that is no socket
            assert before.left() == 1
            ours, theirs = socket.socketpair()
            with ours, theirs:
                assert before.left() == 3
        assert before.left() == 0


def test_a_copy_of_a_descriptor_is_no_new_socket() -> None:
    with socket.socket() as one:
        before = Sockets()
        with one.dup():
            assert before.left() == 0


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_what_only_a_cycle_holds_is_collected_first() -> None:
    class Client:
        def __init__(self) -> None:
            self.socket, self.me = socket.socket(), self

    before = Sockets()
    gone = weakref.ref(Client())
    assert gone() is not None
    assert before.left() == 0
    assert gone() is None


def test_nothing_is_collected_where_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a collection takes long"))
    assert Sockets().left() == 0


def test_systems_list_descriptors_in_other_places_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "_DESCRIPTORS", ("/nowhere/fd", "/dev/fd"))
    before = Sockets()
    with socket.socket():
        assert before.left() == 1
        monkeypatch.setattr(sockets, "_DESCRIPTORS", ("/nowhere/fd",))
        assert before.left() == 0
