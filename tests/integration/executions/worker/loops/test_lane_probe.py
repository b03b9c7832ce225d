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


def reachable(boot: WorkerBoot) -> bool:
    with platform_scope():
        return Worker.objects.get(boot=boot.id).reachable


def test_a_probe_is_a_message_in_the_lane(boot: WorkerBoot, broker: "redis.Redis") -> None:
    LaneProbeLoop(boot.lane_probe, boot.lane, boot.clocks, on_unreachable=pytest.fail).turn()
    assert broker.llen(boot.lane) == 1
    assert boot.lane_probe.is_healthy


def test_redis_that_does_not_answer_is_unavailable(
    boot: WorkerBoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
    LaneProbeLoop(boot.lane_probe, boot.lane, boot.clocks, on_unreachable=pytest.fail).turn()
    assert not boot.lane_probe.is_healthy
    assert boot.lane_probe.unanswered_seconds == 0


@pytest.mark.usefixtures("broker")
def test_an_unreachable_lane_is_reported_once(boot: WorkerBoot) -> None:
    now = [0.0]
    said: list[str] = []
    clocks = boot.clocks
    quiet = LaneProbe(unsure=clocks.unsure, now=lambda: now[0])
    loop = LaneProbeLoop(
        quiet, boot.lane, clocks, on_unreachable=lambda: said.append("unreachable")
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
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    runs = {make_run(acme), make_run(globex)}
    boot.lane_probe.broker_unavailable()
    LeaseLoop(boot).turn()
    assert not reachable(boot)
    assert admit() == []
    boot.lane_probe.received()
    LeaseLoop(boot).turn()
    assert reachable(boot)
    admit()
    assert held_by(boot) == runs
