"""The loop that calls into its own lane; what comes back is shown with real workers."""

import pytest
import redis

from executions.placement.admission import admit
from executions.placement.models import Worker
from executions.worker import echo
from executions.worker.echo import Echo, EchoLoop
from executions.worker.lease import LeaseLoop
from executions.worker.machine import Machine
from orchestrator.celery import app
from tenants.scope import TenantRef, platform_scope
from tests.factories import held_by, make_run


def hears(machine: Machine) -> bool:
    with platform_scope():
        return Worker.objects.get(boot=machine.boot).hears


def test_a_call_is_a_message_in_the_lane(machine: Machine, broker: "redis.Redis") -> None:
    EchoLoop(machine.echo, machine.lane, on_deaf=pytest.fail).turn()
    assert broker.llen(machine.lane) == 1
    assert machine.echo.is_sure


def test_redis_that_does_not_answer_is_away(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
    EchoLoop(machine.echo, machine.lane, on_deaf=pytest.fail).turn()
    assert not machine.echo.is_sure
    assert machine.echo.silent_seconds == 0


@pytest.mark.usefixtures("broker")
def test_a_worker_that_hears_nothing_says_so_once(machine: Machine) -> None:
    now = [0.0]
    said: list[str] = []
    quiet = Echo(lambda: now[0])
    loop = EchoLoop(quiet, machine.lane, on_deaf=lambda: said.append("deaf"))
    loop.turn()
    now[0] += echo.DEAF_SECONDS - 1
    loop.turn()
    assert said == []
    now[0] += 1
    loop.turn()
    loop.turn()
    assert said == ["deaf"]


@pytest.mark.usefixtures("broker")
def test_nothing_is_placed_on_a_worker_that_does_not_hear(
    acme: TenantRef, globex: TenantRef, machine: Machine
) -> None:
    runs = {make_run(acme), make_run(globex)}
    machine.echo.is_away()
    LeaseLoop(machine).turn()
    assert not hears(machine)
    assert admit() == []
    machine.echo.heard()
    LeaseLoop(machine).turn()
    assert hears(machine)
    admit()
    assert held_by(machine) == runs
