"""isolane.preload: packages are imported for a fork, and those that start threads are named."""

import os

import pytest

from isolane import preload as module
from isolane.discovery import NodeSource
from isolane.preload import ThreadsStarted, preload

VARIABLE = "OPENBLAS_NUM_THREADS"


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads of this process, as the test wants them."""
    found = [1]
    monkeypatch.setattr(module, "count_threads", lambda: found[0])
    monkeypatch.delenv(VARIABLE, raising=False)
    return found


def source(name: str, loaded: list[str]) -> NodeSource:
    def load() -> dict[str, str]:
        loaded.append(f"{name}: {os.environ.get(VARIABLE)}")
        return {name: "1.0"}

    return NodeSource(name, load)


def test_all_but_the_late_ones_are_imported_with_one_thread_asked_for(threads: list[int]) -> None:
    loaded: list[str] = []
    sources = [source(name, loaded) for name in ("a", "b", "c")]
    assert preload(sources, late=["b"]) == {"a": "1.0", "c": "1.0"}
    assert loaded == ["a: 1", "c: 1"]
    assert VARIABLE not in os.environ


def test_what_the_operator_asked_for_stays(
    threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "4")
    loaded: list[str] = []
    preload([source("a", loaded)], late=[])
    assert loaded == ["a: 4"]
    assert os.environ[VARIABLE] == "4"


def test_a_package_that_starts_threads_is_named(threads: list[int]) -> None:
    def load() -> dict[str, str]:
        threads[0] = 4
        return {}

    loaded: list[str] = []
    with pytest.raises(ThreadsStarted) as raised:
        preload([source("a", loaded), NodeSource("b", load), source("c", loaded)], late=[])
    assert (raised.value.name, raised.value.threads) == ("b", 3)
    assert raised.value.seconds >= 0
    assert loaded == ["a: 1"]
    assert VARIABLE not in os.environ
