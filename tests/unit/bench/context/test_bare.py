"""Runners without a context: a run finds what the one before left."""

import threading
import time
from collections.abc import Iterator

import pytest

from bench.context.bare import BareBackend
from isolane.protocol import Grant
from resources.placement import Placement
from resources.runtimes.base import RuntimeStartError
from resources.runtimes.shared import SharedBackend
from tests.integration.resources.runtimes.conftest import a_run
from tests.placements import ACME, a_placement, run_id
from tests.plugin import ROOT


def placed(number: int) -> Placement:
    return a_placement(f"run-{number}")


@pytest.fixture(params=[SharedBackend, BareBackend])
def backend(request: pytest.FixtureRequest) -> Iterator[SharedBackend]:
    made: SharedBackend = request.param(
        level="shared", size=1, packages=["tests.nodes"], paths=[ROOT]
    )
    yield made
    made.stop()


def ran(backend: SharedBackend, number: int, uses: str) -> dict[str, object]:
    """Run one step in a run of its own and return its output."""
    runtime = backend.start(placed(number), identity=ACME)
    runtime.open()
    result = runtime.run(
        a_run(uses),
        deadline=time.monotonic() + 30,
        cancelled=threading.Event(),
        on_frame=lambda _: None,
    )
    assert runtime.close(10) == ()
    return dict(result.output or {})


def test_only_without_a_context_a_run_finds_what_another_left(backend: SharedBackend) -> None:
    ran(backend, 1, "test.leave_traces")
    found = ran(backend, 2, "test.find_traces")
    left = isinstance(backend, BareBackend)
    assert (found["environ"] == "acme") is left
    assert ("trace.txt" in str(found["files"])) is left


def test_a_runner_is_opened_once(backend: SharedBackend) -> None:
    first, second = (ran(backend, number, "test.identity") for number in (1, 2))
    assert first["pid"] == second["pid"]
    expected = "run-1" if isinstance(backend, BareBackend) else "run-2"
    assert second["execution_id"] == str(run_id(expected))


def test_there_are_no_resources_without_a_context() -> None:
    backend = BareBackend(level="shared", size=1)
    grant = Grant(
        name="shop", type="database", definition="shop", scope="execution", config={}, secrets={}
    )
    with pytest.raises(RuntimeStartError, match="nothing that could hold resources"):
        backend.start(placed(1), identity=ACME, grants=[grant])
