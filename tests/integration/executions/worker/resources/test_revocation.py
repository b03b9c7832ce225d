"""executions.worker.resources.revocation: credentials are issued, revoked and recorded, whatever ends a placement."""

from dataclasses import replace
from typing import Any

import pytest
from celery.exceptions import Ignore

from executions.semantics.reasons import EndReason
from executions.states import ExecutionState
from executions.submission.cancel import request_cancel
from executions.transitions.restart import restart
from executions.worker.boot import WorkerBoot
from executions.worker.links.closing import close_context
from executions.worker.links.runner import LinkRunner
from resources.ledger.models import IssuedCredential
from tenants.scope import TenantRef, tenant_scope
from tests.factories import backend_of, run_of, start
from tests.integration.executions.worker.driving import drive, run_link
from tests.integration.executions.worker.resources.fake_remote import (
    FakeRemote,
    begin,
    issued,
    records,
    says,
)

pytestmark = pytest.mark.usefixtures("broker")


def test_what_is_issued_is_granted_used_and_revoked(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "use", "close")
    run_link(links, placement, "s1")
    (grant,) = backend_of(boot).runtimes[0].grants
    assert (grant.name, grant.scope, grant.secrets) == (
        "tmp",
        "execution",
        {"password": "issued-password"},
    )
    assert remote.there == {f"{placement.execution_id}/1/scratch"}
    assert (issued(), records(acme)) == (1, [("cache.user", "", 1), ("cache", "", 1)])
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert remote.there == set()
    assert issued() == 0
    assert records(acme) == [("cache.user", "disposed", 1), ("cache", "disposed", 1)]
    assert records(globex) == []


def test_two_tenants_have_their_own_ledgers(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    ours, theirs = begin(acme, boot, "open", "rest"), begin(globex, boot, "open", "rest")
    run_link(links, ours, "s1")
    run_link(links, theirs, "s1")
    assert len(remote.there) == 2
    with tenant_scope(acme):
        assert [row.execution_id for row in IssuedCredential.objects.all()] == [ours.execution_id]
    drive(acme, links, ours)
    assert remote.there == {f"{theirs.execution_id}/1/scratch"}
    drive(globex, links, theirs)
    assert remote.there == set()
    assert records(acme) == records(globex)


def test_nothing_exists_before_the_ledger_says_so(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[int, list[tuple[str, str, int]]]] = []
    issue = remote.issue

    def looking(*args: Any) -> Any:
        seen.append((issued(), records(acme)))
        return issue(*args)

    monkeypatch.setattr(remote, "issue", looking)
    drive(acme, links, begin(acme, boot, "work"))
    assert seen == [(1, [("cache.user", "", 1)])]


def test_a_run_without_resources_has_no_ledger(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = start(acme, boot, {"uses": "break", "on_failure": "continue"}, {"uses": "break"})
    drive(acme, links, placement)
    assert (remote.seen, records(acme)) == ([], [])


def test_a_failure_disposes_as_a_success_does(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    run = drive(acme, links, begin(acme, boot, "open", "break"))
    assert run.state == ExecutionState.FAILED
    assert (remote.there, issued()) == (set(), 0)
    # The stub's runtime closes without a word of its handles: they went with it.
    assert records(acme) == [("cache.user", "disposed", 1), ("cache", "killed", 1)]


def test_a_runtime_that_dies_is_followed_by_a_context_of_its_own(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "work")
    backend = backend_of(boot)

    def dies(run: Any, cancelled: Any, on_frame: Any) -> Any:
        backend.runtimes[-1].kill()
        return says(backend, ("allocated", 1))(run, cancelled, on_frame)

    backend.script = {**backend.script, "open": dies}
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert [runtime.grants[0].name for runtime in backend.runtimes] == ["tmp", "tmp"]
    assert (
        records(acme)
        == [
            ("cache.user", "disposed", 1),
            ("cache", "killed", 1),
            ("cache.user", "disposed", 2),
            # The second context's handle has the first one's number, as no real one would.
        ]
        or records(acme)[0:3:2] == [("cache.user", "disposed", 1), ("cache.user", "disposed", 2)]
    )
    assert (remote.there, issued()) == (set(), 0)


def test_a_cancelled_run_is_issued_nothing_more(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "work")
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="tests")
    with pytest.raises(Ignore):
        run_link(links, placement, "s1")
    assert remote.seen == []


def test_a_run_is_terminal_only_when_its_resources_are_gone(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = begin(acme, boot, "work")
    order: list[str] = []
    revoke = remote.revoke

    def revoking(credential: Any) -> None:
        order.append(run_of(acme, placement.execution_id).state)
        assert backend_of(boot).runtimes[0].alive is False
        revoke(credential)

    monkeypatch.setattr(remote, "revoke", revoking)
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert order == [ExecutionState.RUNNING]


def test_a_late_close_of_an_old_placement_touches_nothing_of_the_new_one(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    placement = begin(acme, boot, "open", "open", "close")
    run_link(links, placement, "s1")
    old = boot.contexts.get(placement.key)
    assert old is not None
    new = replace(placement, epoch=2)
    with tenant_scope(acme):
        assert restart(placement, reason=EndReason.WORKER_STOPPED) == 2
    run_link(links, new, "s2")
    assert f"{placement.execution_id}/2/scratch" in remote.there
    boot.contexts.abandon(old)
    close_context(boot, old)
    assert remote.there == {f"{placement.execution_id}/2/scratch"}
    assert ("cache.user", "", 2) in records(acme)
