"""Every line that is written for a run carries its ids, whichever thread of the worker writes it."""

import pytest
from django.db import OperationalError

from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from executions.worker.loops import lease, reaper
from executions.worker.loops.closer_pool import CloserPool
from executions.worker.loops.lease import LeaseLoop
from executions.worker.loops.log_flush import LogFlushLoop
from executions.worker.loops.reaper import reap
from resources.placement import Placement
from resources.runtimes.stub import StubRuntime
from tenants.scope import TenantRef
from tests.factories import let_lapse, make_boot, make_placed
from tests.integration.executions.worker.driving import drive, run_link
from tests.integration.executions.worker.lines import LIBRARY, Lines, are_of, say_something
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture
def placement(acme: TenantRef, boot: WorkerBoot) -> Placement:
    return make_placed(acme, boot)


def test_in_the_threads_that_end_placements(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        say_something()
        raise OperationalError("gone")

    run_link(links, placement, "one")
    monkeypatch.setattr(lease, "dispose", fail)
    endings = CloserPool()
    boot.submit_close = endings.submit
    boot.draining.set()
    LeaseLoop(boot).turn()
    wait_for(lambda: lines.of("executions.worker.loops.closer_pool"), "the ending to fail")
    endings.stop()
    assert are_of(lines.of(LIBRARY), acme, placement)
    assert are_of(lines.of("executions.worker.loops.closer_pool", "not ended"), acme, placement)


def test_in_the_lease_loop(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        say_something()
        raise ValueError("a bug")

    run_link(links, placement, "one")
    monkeypatch.setattr(LeaseLoop, "_end", fail)
    boot.draining.set()
    LeaseLoop(boot).turn()
    assert are_of(lines.of(LIBRARY), acme, placement)
    assert are_of(
        lines.of("executions.worker.loops.lease", "placement not checked"), acme, placement
    )


def test_when_a_placement_is_lost_and_when_idle_ones_are_handed_back(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_link(links, placement, "one")
    context = boot.contexts.get(placement.key)
    assert context is not None
    loop = LeaseLoop(boot)
    monkeypatch.setattr(LeaseLoop, "_end", say_something)
    loop.hand_back_idle()
    monkeypatch.setattr(lease, "tear_down", say_something)
    loop._drop(context)
    assert len(lines.of(LIBRARY)) == 2
    assert are_of(lines.of(LIBRARY), acme, placement)


def test_in_the_reaper(
    acme: TenantRef, lines: Lines, boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = make_boot(name="lost@test")
    placement = make_placed(acme, lost)
    let_lapse(lost)
    monkeypatch.setattr(reaper, "end_without_link", say_something)
    reap("w2@test")
    assert are_of(lines.of(LIBRARY), acme, placement)


def test_while_what_a_step_says_is_written(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, placement: Placement, lines: Lines
) -> None:
    links.begin("one", placement, "one")
    context = boot.contexts.get(placement.key)
    assert context is not None
    context.write_to(type("Log", (), {"flush": say_something, "withheld": False})())
    LogFlushLoop(boot).turn()
    links.end("one")
    assert are_of(lines.of(LIBRARY), acme, placement)


def test_of_what_a_teardown_could_not_do(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    placement: Placement,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    close = StubRuntime.close

    def hang(runtime: StubRuntime, timeout: float) -> tuple[str, ...]:
        close(runtime, timeout)
        return ("resource shop was not closed", "thread t was left running")

    monkeypatch.setattr(StubRuntime, "close", hang)
    drive(acme, links, placement)
    told = lines.of("executions.worker.links.closing", "teardown: ")
    assert [line["message"] for line in told] == [
        "teardown: resource shop was not closed",
        "teardown: thread t was left running",
    ]
    assert are_of(told, acme, placement)
