"""resources.gate.loop: one loop, whoever asks first."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from resources.gate import loop as module
from resources.gate.loop import GateLoop, gate_loop
from tests.waiting import wait_for


def test_threads_that_ask_at_once_get_the_same_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        threading.Event().wait(0.02)  # for the others to come, too
        return made[-1]

    monkeypatch.setattr(module, "GateLoop", make)
    module._only_loop.cache_clear()
    try:
        together = threading.Barrier(4)

        def ask(_: int) -> object:
            together.wait()
            return gate_loop()

        with ThreadPoolExecutor(4) as pool:
            found = set(map(id, pool.map(ask, range(4))))
    finally:
        module._only_loop.cache_clear()
    assert (len(made), len(found)) == (1, 1)


def test_a_gate_that_cannot_be_swept_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    swept: list[str] = []

    class Fails:
        def sweep(self) -> None:
            swept.append("fails")
            raise ZeroDivisionError

    class Works:
        def sweep(self) -> None:
            swept.append("works")

    loop = GateLoop()
    # In this order: the one that fails comes between two others.
    loop.call(lambda: setattr(loop, "gates", [Works(), Fails(), Works()]))
    wait_for(lambda: len(swept) >= 6, "two looks")
    loop.call(loop._loop.stop)
    wait_for(lambda: not loop._loop.is_running(), "its end")
    loop._loop.close()
    assert swept[:6] == ["works", "fails", "works"] * 2
    assert "a gate was not swept" in caplog.text


def test_an_error_of_one_gate_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    loop = GateLoop()
    loop.call(lambda: 1 // 0)

    async def answer() -> int:
        return 7

    assert loop.submit(answer()).result(5) == 7
    wait_for(lambda: "gate: " in caplog.text, "a line of the log")
    assert caplog.records[0].levelno == logging.ERROR
    loop.call(loop._loop.stop)
    wait_for(lambda: not loop._loop.is_running(), "its end")
    loop._loop.close()
