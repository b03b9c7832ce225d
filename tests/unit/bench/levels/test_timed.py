"""Timed runtimes."""

import threading
import time
from pathlib import Path

import pytest

from bench.levels.starts import STARTS, Starts
from bench.levels.timed import TimedRuntime
from isolane.protocol import Run
from resources.runtimes.stub import StubBackend, succeeds
from tests.placements import ACME, a_placement

RUN = Run(
    step="s1", uses="clock", parameters={}, variables={}, attempt=0, seed=1, timeout_s=5.0, idempotency_key="k"
)  # fmt: skip


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Starts:
    monkeypatch.setenv(STARTS, str(tmp_path))
    return Starts(tmp_path)


def run_twice(output: object) -> None:
    backend = StubBackend(level="shared", script={"clock": succeeds(output)})
    began = time.monotonic()
    runtime = TimedRuntime(backend.start(a_placement(), identity=ACME), began, counts_itself=False)
    runtime.open()
    for _ in range(2):
        runtime.run(RUN, deadline=began + 5, cancelled=threading.Event(), on_frame=lambda _: None)
    runtime.close(1.0)
    runtime.close(1.0)


def test_the_first_step_of_a_runtime_tells_its_start(starts: Starts) -> None:
    run_twice(time.monotonic() + 3.0)
    (start,) = starts.found()
    assert 2_900 < start.ms < 3_100
    assert start.sandbox_ms == 0.0


def test_a_step_without_a_time_tells_none(starts: Starts) -> None:
    run_twice({"no": "time"})
    assert starts.found() == []
