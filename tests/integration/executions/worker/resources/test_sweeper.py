"""The sweeper revokes the credentials that ended placements have left at remote servers."""

import logging

import pytest

from executions.models import ResourceRecord
from executions.states import ExecutionState
from executions.transitions.ledger import due_for_sweep, mark_swept
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from executions.worker.loops.reaper import reap
from executions.worker.loops.sweeper import sweep
from resources.credentials import Credential
from resources.ledger.models import IssuedCredential
from resources.placement import Placement
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import let_lapse
from tests.integration.executions.worker.driving import drive, run_link
from tests.integration.executions.worker.lines import LIBRARY, Lines, are_of, say_something
from tests.integration.executions.worker.resources.fake_remote import (
    FakeRemote,
    begin,
    issued,
    records,
)

pytestmark = pytest.mark.usefixtures("broker")


def test_a_remote_server_that_is_away_at_the_end_is_swept_later(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "close")
    run_link(links, placement, "s1")
    remote.away = True
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert records(acme) == [("cache.user", "", 1), ("cache", "disposed", 1)]
    assert sweep() == 1
    with tenant_scope(acme):
        left = ResourceRecord.objects.get(type="cache.user")
    assert (left.ended, left.error) == ("", "revoke: the remote server is away")
    assert sweep() == 0  # not at once again
    remote.away = False
    with platform_scope():
        IssuedCredential.objects.update(sweep_at="2020-01-01T00:00:00Z")
    assert sweep() == 1
    assert remote.there == set()
    assert records(acme)[0] == ("cache.user", "swept", 1)


def test_every_line_that_is_written_meanwhile_carries_both_ids(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    lines: Lines,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, logger="executions.worker.loops.sweeper")
    placement = begin(acme, boot, "open", "close")
    run_link(links, placement, "s1")
    remote.away = True
    drive(acme, links, placement)
    revoke = remote.revoke

    def say_and_revoke(credential: Credential) -> None:
        say_something()
        revoke(credential)

    monkeypatch.setattr(remote, "revoke", say_and_revoke)
    assert sweep() == 1
    remote.away = False
    with platform_scope():
        IssuedCredential.objects.update(sweep_at="2020-01-01T00:00:00Z")
    assert sweep() == 1
    told = lines.of("executions.worker.loops.sweeper")
    assert [line["event"] for line in told] == ["RESOURCE_FAILED", "RESOURCE_SWEPT"]
    assert are_of([*told, *lines.of(LIBRARY)], acme, placement)


def test_what_was_issued_under_an_old_key_is_revoked_with_the_new_one(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "close")
    run_link(links, placement, "s1")
    remote.key = "changed while the run went on"
    drive(acme, links, placement)
    assert records(acme)[0] == ("cache.user", "", 1)
    assert sweep() == 1
    assert (remote.there, records(acme)[0]) == (set(), ("cache.user", "swept", 1))


def test_what_a_lost_worker_left_is_swept_under_its_own_epoch(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "close")
    run_link(links, placement, "s1")
    let_lapse(boot)
    assert sweep() == 0  # while it is placed it is not the sweeper's
    reap("w2@test")
    assert records(acme) == [("cache.user", "", 1), ("cache", "swept", 1)]
    remote.there.add(f"{placement.execution_id}/2/scratch")  # the next placement's
    assert sweep() == 1
    assert remote.there == {f"{placement.execution_id}/2/scratch"}
    assert records(acme) == [("cache.user", "swept", 1), ("cache", "swept", 1)]


def test_a_stopped_worker_that_issues_late_is_swept_a_second_time(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "close")
    run_link(links, placement, "s1")
    let_lapse(boot)
    reap("w2@test")
    sweep()
    remote.there.add(f"{placement.execution_id}/1/scratch")  # made after it was revoked
    with platform_scope():
        IssuedCredential.objects.update(sweep_at="2020-01-01T00:00:00Z")
    sweep()
    assert (remote.there, issued()) == (set(), 0)


def left_by_a_lost_worker(
    boot: WorkerBoot, links: LinkRunner, *runs: tuple[TenantRef, Placement]
) -> None:
    for _, placement in runs:
        run_link(links, placement, "s1")
    let_lapse(boot)
    reap("w2@test")


def test_what_one_issuer_gets_wrong_stops_no_other(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ours, theirs = begin(acme, boot, "open", "rest"), begin(globex, boot, "open", "rest")
    left_by_a_lost_worker(boot, links, (acme, ours), (globex, theirs))
    revoke = remote.revoke

    def breaks(credential: Credential) -> None:
        if str(ours.execution_id) in credential.remote_id:
            raise KeyError("a bug")
        revoke(credential)

    monkeypatch.setattr(remote, "revoke", breaks)
    assert sweep() == 2
    assert remote.there == {f"{ours.execution_id}/1/scratch"}
    with tenant_scope(acme):
        assert ResourceRecord.objects.get(type="cache.user").error == "KeyError"
    assert sweep() == 0  # it waits for its next time


def test_a_remote_server_that_does_not_answer_is_asked_once_a_turn(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    runs = [(acme, begin(acme, boot, "open", "rest")) for _ in range(3)]
    left_by_a_lost_worker(boot, links, *runs)
    remote.away, remote.seen = True, []
    assert sweep() == 3
    assert remote.seen == ["revoke"]
    assert sweep() == 0
    remote.away = False
    with platform_scope():
        IssuedCredential.objects.update(sweep_at="2020-01-01T00:00:00Z")
    sweep()
    assert remote.there == set()


def test_a_definition_that_points_elsewhere_by_now_is_no_place_to_revoke_at(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "rest")
    left_by_a_lost_worker(boot, links, (acme, placement))
    remote.host = "the new server"
    assert sweep() == 1
    assert remote.there == {f"{placement.execution_id}/1/scratch"}
    assert records(acme)[0] == ("cache.user", "", 1)


def test_a_repeated_statement_keeps_the_second_look(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "rest")
    left_by_a_lost_worker(boot, links, (acme, placement))
    with platform_scope():
        (row,) = due_for_sweep()
    with tenant_scope(acme):
        assert mark_swept(row, again_s=600)
        assert not mark_swept(row, again_s=600)
    assert issued() == 1
