"""The tick: in one worker at a time, and it judges others only when it may."""

from dataclasses import replace

import psycopg
import pytest

from executions.states import TicketState
from executions.worker.boot import WorkerBoot
from executions.worker.loops import tick
from executions.worker.loops.tick import TICK_LOCK, Tick
from tenants.scope import TenantRef
from tests.factories import held_by, let_lapse, make_boot, make_placed, make_run, ticket_of
from tests.waiting import wait_for

Server = psycopg.Connection[tuple[object, ...]]
LONG_AGO = 1000

pytestmark = pytest.mark.usefixtures("broker")


def test_a_turn_reaps_and_admits(acme: TenantRef, globex: TenantRef, boot: WorkerBoot) -> None:
    lost = make_boot(name="lost@test")
    runs = {make_placed(tenant, lost).execution_id for tenant in (acme, globex)}
    let_lapse(lost)
    boot.renewing_since -= LONG_AGO
    Tick(boot).turn()
    assert held_by(boot) == runs


def test_who_has_not_renewed_long_enough_reaps_nobody(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    lost = make_boot(name="lost@test")
    placed = make_placed(acme, lost)
    waiting = make_run(globex)
    let_lapse(lost)
    Tick(boot).turn()
    assert held_by(lost) == {placed.execution_id}
    assert held_by(boot) == {waiting}


def test_while_another_ticks_it_does_nothing_and_afterwards_it_lets_go(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, superuser: Server
) -> None:
    runs = {make_run(tenant) for tenant in (acme, globex)}
    ticking = Tick(boot)
    superuser.execute("SELECT pg_advisory_lock(%s)", [TICK_LOCK])
    ticking.turn()
    assert {getattr(ticket_of(run_id), "state", None) for run_id in runs} == {TicketState.WAITING}
    superuser.execute("SELECT pg_advisory_unlock(%s)", [TICK_LOCK])
    ticking.turn()
    assert held_by(boot) == runs
    held = superuser.execute("SELECT pg_try_advisory_lock(%s)", [TICK_LOCK]).fetchone()
    assert held == (True,)


def test_a_worker_that_was_stopped_in_its_tick_keeps_nobody_from_theirs(
    acme: TenantRef,
    globex: TenantRef,
    boot: WorkerBoot,
    superuser: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its session is silent, and the server ends it, with the lock."""
    boot.clocks = replace(boot.clocks, tick_silence=1)
    runs = {make_run(tenant) for tenant in (acme, globex)}

    def stopped() -> None:
        wait_for(lambda: not is_held(superuser), "the lock to be free")

    monkeypatch.setattr(tick, "admit_and_send", stopped)
    Tick(boot).turn()  # it goes on over a new connection, and without the lock
    monkeypatch.undo()
    Tick(boot).turn()
    assert held_by(boot) == runs


def is_held(superuser: Server) -> bool:
    found = superuser.execute(
        "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", [TICK_LOCK]
    )
    return found.fetchone() is not None
