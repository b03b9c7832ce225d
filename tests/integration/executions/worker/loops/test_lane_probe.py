"""The loop that probes its own lane; what comes back is shown with real workers."""

import pytest
import redis

from executions.placement.admission import admit
from executions.placement.models import Worker
from executions.worker.boot import WorkerBoot
from executions.worker.loops.lane_probe import LaneProbe, LaneProbeLoop
from executions.worker.loops.lease import LeaseLoop
from orchestrator.celery import app
from tenants.scope import TenantRef, platform_scope
from tests.factories import held_by, make_run


def reachable(machine: WorkerBoot) -> bool:
    with platform_scope():
        return Worker.objects.get(boot=machine.id).reachable


def test_a_probe_is_a_message_in_the_lane(machine: WorkerBoot, broker: "redis.Redis") -> None:
    LaneProbeLoop(
        machine.lane_probe, machine.lane, machine.clocks, on_unreachable=pytest.fail
    ).turn()
    assert broker.llen(machine.lane) == 1
    assert machine.lane_probe.is_healthy


def test_redis_that_does_not_answer_is_unavailable(
    machine: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
    LaneProbeLoop(
        machine.lane_probe, machine.lane, machine.clocks, on_unreachable=pytest.fail
    ).turn()
    assert not machine.lane_probe.is_healthy
    assert machine.lane_probe.unanswered_seconds == 0


@pytest.mark.usefixtures("broker")
def test_an_unreachable_lane_is_reported_once(machine: WorkerBoot) -> None:
    now = [0.0]
    said: list[str] = []
    clocks = machine.clocks
    quiet = LaneProbe(unsure=clocks.unsure, now=lambda: now[0])
    loop = LaneProbeLoop(
        quiet, machine.lane, clocks, on_unreachable=lambda: said.append("unreachable")
    )
    loop.turn()
    now[0] += clocks.unreachable - 1
    loop.turn()
    assert said == []
    now[0] += 1
    loop.turn()
    loop.turn()
    assert said == ["unreachable"]


@pytest.mark.usefixtures("broker")
def test_nothing_is_placed_on_a_worker_whose_lane_is_not_healthy(
    acme: TenantRef, globex: TenantRef, machine: WorkerBoot
) -> None:
    runs = {make_run(acme), make_run(globex)}
    machine.lane_probe.broker_unavailable()
    LeaseLoop(machine).turn()
    assert not reachable(machine)
    assert admit() == []
    machine.lane_probe.received()
    LeaseLoop(machine).turn()
    assert reachable(machine)
    admit()
    assert held_by(machine) == runs
