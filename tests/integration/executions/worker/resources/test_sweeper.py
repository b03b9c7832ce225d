"""What ended placements have left at far sides is swept."""

import pytest

from executions.models import ResourceRecord
from executions.states import ExecutionState
from executions.worker.links import Links
from executions.worker.machine import Machine
from executions.worker.reaper import reap
from executions.worker.sweeper import sweep
from resources.ledger.models import Issued
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import let_lapse
from tests.integration.executions.worker.driving import drive, run_link
from tests.integration.executions.worker.resources.far_side import FarSide, begin, issued, records

pytestmark = pytest.mark.usefixtures("broker")


def test_a_far_side_that_is_away_at_the_end_is_swept_later(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "open", "close")
    run_link(links, placement, "s1")
    far.away = True
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert records(acme) == [("cache.user", "", 1), ("cache", "disposed", 1)]
    assert sweep() == 1
    with tenant_scope(acme):
        left = ResourceRecord.objects.get(type="cache.user")
    assert (left.ended, left.error) == ("", "revoke: the far side is away")
    assert sweep() == 0  # not at once again
    far.away = False
    with platform_scope():
        Issued.objects.update(sweep_at="2020-01-01T00:00:00Z")
    assert sweep() == 1
    assert far.there == set()
    assert records(acme)[0] == ("cache.user", "swept", 1)


def test_what_was_issued_under_an_old_key_is_revoked_with_the_new_one(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "open", "close")
    run_link(links, placement, "s1")
    far.key = "changed while the run went on"
    drive(acme, links, placement)
    assert records(acme)[0] == ("cache.user", "", 1)
    assert sweep() == 1
    assert (far.there, records(acme)[0]) == (set(), ("cache.user", "swept", 1))


def test_what_a_lost_worker_left_is_swept_under_its_own_epoch(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "open", "close")
    run_link(links, placement, "s1")
    let_lapse(machine)
    assert sweep() == 0  # while it is placed it is not the sweeper's
    reap()
    assert records(acme) == [("cache.user", "", 1), ("cache", "swept", 1)]
    far.there.add(f"{placement.execution_id}/2/scratch")  # the next placement's
    assert sweep() == 1
    assert far.there == {f"{placement.execution_id}/2/scratch"}
    assert records(acme) == [("cache.user", "swept", 1), ("cache", "swept", 1)]


def test_a_stopped_worker_that_issues_late_is_swept_a_second_time(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "open", "close")
    run_link(links, placement, "s1")
    let_lapse(machine)
    reap()
    sweep()
    far.there.add(f"{placement.execution_id}/1/scratch")  # made after it was revoked
    with platform_scope():
        Issued.objects.update(sweep_at="2020-01-01T00:00:00Z")
    sweep()
    assert (far.there, issued()) == (set(), 0)
