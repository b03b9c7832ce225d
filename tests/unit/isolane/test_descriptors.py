"""isolane.descriptors: the standard descriptors return."""

import os

import pytest

from isolane.descriptors import Descriptors


def files() -> list[tuple[int, int]]:
    return [(os.fstat(number).st_dev, os.fstat(number).st_ino) for number in range(3)]


def test_they_return_with_their_flags() -> None:
    before, descriptors = files(), Descriptors()
    flags = os.get_blocking(1)
    reading, writing = os.pipe()
    try:
        os.set_blocking(1, not flags)
        os.dup2(writing, 1)
        os.close(0)
        assert files_of(1) != before[1]
    finally:
        descriptors.restore()
        os.close(reading)
        os.close(writing)
    assert files() == before
    assert os.get_blocking(1) is flags
    assert os.get_inheritable(1)


def test_copies_that_are_gone_are_an_error() -> None:
    before, descriptors = files(), Descriptors()
    for kept in descriptors._kept.values():
        os.close(kept.copy)
    with pytest.raises(OSError, match="Bad file descriptor"):
        descriptors.restore()
    reading, writing = os.pipe()
    for kept in descriptors._kept.values():
        os.dup2(reading, kept.copy)
    with pytest.raises(OSError, match="the copy of descriptor 0 is another file"):
        descriptors.restore()
    for number in (reading, writing, *(kept.copy for kept in descriptors._kept.values())):
        os.close(number)
    assert files() == before


def files_of(number: int) -> tuple[int, int]:
    return os.fstat(number).st_dev, os.fstat(number).st_ino
