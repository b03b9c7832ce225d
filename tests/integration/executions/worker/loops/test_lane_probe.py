"""The loop that calls into its own lane; what comes back is shown with real workers."""

import pytest
import redis

from executions.placement.admission import admit
from executions.placement.models import Worker
from executions.worker.boot import WorkerBoot
from executions.worker.loops import lane_probe
from executions.worker.loops.lane_probe import LaneProbe, LaneProbeLoop
from executions.worker.loops.lease import LeaseLoop
from orchestrator.celery import app
from tenants.scope import TenantRef, platform_scope
from tests.factories import held_by, make_run


def reachable(machine: WorkerBoot) -> bool:
    with platform_scope():
        return Worker.objects.get(boot=machine.boot).reachable


def test_a_call_is_a_message_in_the_lane(machine: WorkerBoot, broker: "redis.Redis") -> None:
    LaneProbeLoop(machine.echo, machine.lane, on_deaf=pytest.fail).turn()
    assert broker.llen(machine.lane) == 1
    assert machine.echo.is_sure


def test_redis_that_does_not_answer_is_away(
    machine: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
    LaneProbeLoop(machine.echo, machine.lane, on_deaf=pytest.fail).turn()
    assert not machine.echo.is_sure
    assert machine.echo.silent_seconds == 0


@pytest.mark.usefixtures("broker")
def test_a_worker_that_hears_nothing_says_so_once(machine: WorkerBoot) -> None:
    now = [0.0]
    said: list[str] = []
    quiet = LaneProbe(lambda: now[0])
    loop = LaneProbeLoop(quiet, machine.lane, on_deaf=lambda: said.append("deaf"))
    loop.turn()
    now[0] += lane_probe.DEAF_SECONDS - 1
    loop.turn()
    assert said == []
    now[0] += 1
    loop.turn()
    loop.turn()
    assert said == ["deaf"]


@pytest.mark.usefixtures("broker")
def test_nothing_is_placed_on_a_worker_that_does_not_hear(
    acme: TenantRef, globex: TenantRef, machine: WorkerBoot
) -> None:
    runs = {make_run(acme), make_run(globex)}
    machine.echo.is_away()
    LeaseLoop(machine).turn()
    assert not reachable(machine)
    assert admit() == []
    machine.echo.heard()
    LeaseLoop(machine).turn()
    assert reachable(machine)
    admit()
    assert held_by(machine) == runs
