"""isolane.pipes: what is written to a descriptor is read."""

import os
import threading
from collections.abc import Iterator

import pytest

from isolane.output_lock import OutputLock
from isolane.pipes import Pipes


@pytest.fixture
def number() -> Iterator[int]:
    """A descriptor to be replaced."""
    found = os.open(os.devnull, os.O_WRONLY)
    yield found
    os.close(found)


def readers() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "isolane-output"}


def test_what_is_there_is_handed_on_by_whoever_asks(number: int) -> None:
    texts: list[str] = []
    pipes = Pipes(OutputLock(), {number: texts.append})
    pipes.install()
    os.write(number, "über".encode()[:1])
    pipes.drain()
    os.write(number, "über".encode()[1:])
    pipes.drain()
    assert "".join(texts) == "über"
    os.write(number, b"\xc3")
    pipes.finish()
    assert "".join(texts) == "über\ufffd"


def test_it_is_handed_on_though_nobody_asks(number: int) -> None:
    heard = threading.Event()
    Pipes(OutputLock(), {number: lambda text: heard.set()}).install()
    os.write(number, b"x")
    assert heard.wait(10)


def test_nothing_is_read_while_this_thread_sends(number: int) -> None:
    texts: list[str] = []
    busy = [True]
    guard = OutputLock(lambda: busy[0])
    pipes = Pipes(guard, {number: texts.append})
    pipes.install()
    with guard.lock:
        os.write(number, b"x")
        pipes.drain()
        assert texts == []
        busy[0] = False
        pipes.drain()
        assert texts == ["x"]


def test_the_reader_ends_with_its_pipes() -> None:
    before = readers()
    descriptor = os.open(os.devnull, os.O_WRONLY)
    Pipes(OutputLock(), {descriptor: len}).install()
    (reader,) = readers() - before
    os.close(descriptor)
    reader.join(10)
    assert not reader.is_alive()


def test_a_forked_child_does_not_read(number: int) -> None:
    texts: list[str] = []
    before, guard = readers(), OutputLock()
    pipes = Pipes(guard, {number: texts.append})
    pipes.install()
    (reader,) = readers() - before
    with guard.lock:
        os.write(number, b"x")
        pipes.forked()
        pipes.drain()
    reader.join(10)
    assert texts == []
