"""executions.worker.links.opening: opened once; every fault becomes the failure of the step, or a loss."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import OperationalError

from executions.semantics.attempt import Failure
from executions.worker.boot import WorkerBoot
from executions.worker.links import opening
from executions.worker.links.context import OpenContext
from executions.worker.links.opening import open_context
from executions.worker.resources.granting import PlacementOver, ResourceNotGranted
from isolane.limits import RunLimits
from isolane.results import Code
from resources.runtimes.base import RunIdentity, RuntimeStartError
from resources.runtimes.stub import StubBackend, StubRuntime
from tests.factories import LEVEL, backend_of
from tests.unit.executions.worker.opened import a_context

SECONDS = 60.0


@pytest.fixture
def boot() -> WorkerBoot:
    return WorkerBoot(
        node_name="w", capacity=1, backends={LEVEL: StubBackend(level=LEVEL, script={})}
    )


@pytest.fixture
def context() -> OpenContext:
    return a_context()


@pytest.fixture(autouse=True)
def _known_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "schema_of", lambda _tenant_id: "acme")
    monkeypatch.setattr(opening, "log_ids", lambda _placement: {"tenant_id": "acme"})


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def refused(boot: WorkerBoot, context: OpenContext) -> Failure:
    """Open it; the failure of its step."""
    failure = open_context(boot, context, SECONDS)
    assert failure is not None
    return failure


def test_a_runtime_is_started_for_the_placement_and_opened(
    boot: WorkerBoot, context: OpenContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[StubRuntime] = []

    def note(runtime: StubRuntime) -> None:
        opened.append(runtime)

    monkeypatch.setattr(StubRuntime, "open", note)
    assert open_context(boot, context, SECONDS) is None
    (runtime,) = backend_of(boot).runtimes
    assert context.runtime is runtime
    assert opened == [runtime]
    assert runtime.placement is context.placement
    assert runtime.identity == RunIdentity(tenant="acme", user_id="user:ann", request_id="r1")
    assert not context.lost


def test_its_limits_are_the_runs_with_the_seconds_that_are_left(
    boot: WorkerBoot, context: OpenContext
) -> None:
    context.run = replace(context.run, limits=RunLimits(cpu=0.5, seconds=900.0))
    open_context(boot, context, 41.5)
    (runtime,) = backend_of(boot).runtimes
    assert runtime.limits == RunLimits(cpu=0.5, seconds=41.5)


def test_the_second_link_finds_it_open(boot: WorkerBoot, context: OpenContext) -> None:
    open_context(boot, context, SECONDS)
    assert open_context(boot, context, SECONDS) is None
    assert len(backend_of(boot).runtimes) == 1


def test_grants_know_how_long_the_run_may_last(
    boot: WorkerBoot, context: OpenContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def grant(_context: OpenContext, *, seconds_left: float) -> tuple[()]:
        asked.append(seconds_left)
        return ()

    monkeypatch.setattr(opening, "grant_resources", grant)
    open_context(boot, context, SECONDS)
    assert asked == [SECONDS]


def test_with_a_lease_that_is_not_fresh_any_more_it_is_lost_before_it_opens(
    boot: WorkerBoot, context: OpenContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StubRuntime, "open", raising(AssertionError("opened")))
    boot.renewed_at -= boot.clocks.self_fence
    assert open_context(boot, context, SECONDS) is None
    assert context.lost
    assert context.has_runtime  # and is closed with the context


def test_a_runtime_that_does_not_start_fails_the_step_without_its_reason(
    boot: WorkerBoot,
    context: OpenContext,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(backend_of(boot), "start", raising(RuntimeStartError("/no/python")))
    failure = refused(boot, context)
    assert failure.code == Code.RESOURCE_ERROR
    assert "/no/python" not in failure.message
    assert [record.getMessage() for record in caplog.records] == ["runtime not started: /no/python"]
    assert not context.lost


@pytest.mark.parametrize("ended_by_watchdog", [True, False])
def test_a_runtime_that_dies_while_it_opens_is_lost_only_if_the_lease_was(
    boot: WorkerBoot,
    context: OpenContext,
    monkeypatch: pytest.MonkeyPatch,
    ended_by_watchdog: bool,
) -> None:
    monkeypatch.setattr(StubRuntime, "open", raising(RuntimeStartError("it died")))
    monkeypatch.setattr(StubRuntime, "lost", ended_by_watchdog)
    failure = open_context(boot, context, SECONDS)
    assert (failure is None, context.lost) == (ended_by_watchdog, ended_by_watchdog)
    assert context.has_runtime


def test_a_resource_that_is_not_granted_fails_the_step_with_its_reason(
    boot: WorkerBoot,
    context: OpenContext,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    denied = ResourceNotGranted(Code.POLICY_VIOLATION, "not this one")
    monkeypatch.setattr(opening, "grant_resources", raising(denied))
    assert refused(boot, context) == Failure(code=Code.POLICY_VIOLATION, message="not this one")
    (line,) = caplog.records
    assert (line.levelno, line.__dict__["event"]) == (logging.WARNING, "RESOURCE_NOT_GRANTED")
    assert not context.has_runtime


def test_a_placement_that_is_over_is_lost_and_no_failure(
    boot: WorkerBoot, context: OpenContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "grant_resources", raising(PlacementOver()))
    assert open_context(boot, context, SECONDS) is None
    assert context.lost


def test_a_database_that_does_not_answer_loses_it_and_raises(
    boot: WorkerBoot, context: OpenContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "grant_resources", raising(OperationalError("away")))
    with pytest.raises(OperationalError):
        open_context(boot, context, SECONDS)
    assert context.lost


def test_a_fault_of_an_issuer_fails_the_step(
    boot: WorkerBoot,
    context: OpenContext,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(opening, "grant_resources", raising(ZeroDivisionError("secret text")))
    failure = refused(boot, context)
    assert failure.code == Code.UNKNOWN_ERROR
    assert "secret text" not in failure.message
    assert [record.__dict__["event"] for record in caplog.records] == ["CONTEXT_NOT_OPENED"]
