"""isolane.preload: packages are imported for a fork, and those that leave something are named."""

import mmap
import os
import tempfile
import threading
from collections.abc import Callable

import pytest

from isolane.discovery import NodeSource
from isolane.preload import ImportLeft, ProcessState, preload

VARIABLE = "OPENBLAS_NUM_THREADS"


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count this process as one that had one thread before."""
    monkeypatch.delenv(VARIABLE, raising=False)
    others, look = ProcessState.now().threads - 1, ProcessState.now
    monkeypatch.setattr(
        ProcessState, "now", lambda: (found := look())._replace(threads=found.threads - others)
    )


def source(name: str, loaded: list[str]) -> NodeSource:
    def load() -> dict[str, str]:
        loaded.append(f"{name}: {os.environ.get(VARIABLE)}")
        return {name: "1.0"}

    return NodeSource(name, load)


def test_all_but_the_late_ones_are_imported_with_one_thread_asked_for() -> None:
    loaded: list[str] = []
    sources = [source(name, loaded) for name in ("a", "b", "c")]
    assert preload(sources, late=["b"]) == {"a": "1.0", "c": "1.0"}
    assert loaded == ["a: 1", "c: 1"]
    assert VARIABLE not in os.environ


def test_what_the_operator_asked_for_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "4")
    loaded: list[str] = []
    preload([source("a", loaded)], late=[])
    assert loaded == ["a: 4"]
    assert os.environ[VARIABLE] == "4"


def a_thread() -> Callable[[], object]:
    """Start one that waits."""
    end = threading.Event()
    threading.Thread(target=end.wait).start()
    return end.set


def a_file() -> Callable[[], object]:
    """Open one."""
    return tempfile.TemporaryFile().close


def some_memory() -> Callable[[], object]:
    """Share some with all forks."""
    return mmap.mmap(-1, 4096).close


@pytest.mark.parametrize(
    ("leave", "left"),
    [
        (a_thread, "starts 1 thread"),
        (a_file, "opens 1 file or socket"),
        (some_memory, "shares memory"),
    ],
)
def test_a_package_that_leaves_something_is_named(
    leave: Callable[[], Callable[[], object]], left: str
) -> None:
    ends, loaded = [], list[str]()

    def load() -> dict[str, str]:
        ends.append(leave())
        return {}

    with pytest.raises(ImportLeft) as raised:
        preload([source("a", loaded), NodeSource("b", load), source("c", loaded)], late=[])
    ends[0]()
    assert (raised.value.name, raised.value.left) == ("b", left)
    assert raised.value.seconds >= 0
    assert loaded == ["a: 1"]
    assert VARIABLE not in os.environ


def test_what_was_there_before_and_what_is_closed_again_is_not_its_fault() -> None:
    def load() -> dict[str, str]:
        a_file()()
        some_memory()()
        return {"b": "2.0"}

    with tempfile.TemporaryFile(), mmap.mmap(-1, 4096):
        assert preload([NodeSource("b", load)], late=[]) == {"b": "2.0"}


def test_several_things_are_all_named() -> None:
    before = ProcessState(1, frozenset(), frozenset())
    after = ProcessState(4, frozenset({"3 a", "4 b"}), frozenset({"7f-8f"}))
    assert (
        after.left_since(before)
        == "starts 3 threads and opens 2 files or sockets and shares memory"
    )
    assert before.left_since(before) == ""
