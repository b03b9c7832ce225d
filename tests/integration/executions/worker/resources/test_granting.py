"""The grants that a placement gets for its resources, and those that are refused."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from celery.exceptions import Ignore
from django.db import OperationalError

from executions.states import ExecutionState
from executions.submission.cancel import request_cancel
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner, StepFailed
from executions.worker.links.step_runner import StepRunner
from executions.worker.loops.lease import LeaseLoop, kill_runtimes
from executions.worker.loops.sweeper import sweep
from executions.worker.resources import granting
from isolane.protocol import Grant
from isolane.results import Code
from resources.issuers.base import Credential, ResourceRequest
from resources.ledger.models import IssuedCredential
from resources.models import ResourceDefinition
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import backend_of, run_of, start, step_of
from tests.integration.executions.worker.driving import drive, run_link
from tests.integration.executions.worker.resources.fake_remote import (
    TMP,
    FakeRemote,
    begin,
    define,
    issued,
    records,
)

pytestmark = pytest.mark.usefixtures("broker")


def test_a_remote_server_that_is_away_fails_the_step_and_leaves_nothing(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    remote.away = True
    placement = begin(acme, boot, "work")
    with pytest.raises(StepFailed, match=Code.RESOURCE_ERROR):
        run_link(links, placement, "s1")
    assert backend_of(boot).runtimes == []
    assert step_of(acme, placement.execution_id, "s1").code == Code.RESOURCE_ERROR
    remote.away = False
    with platform_scope():
        IssuedCredential.objects.update(sweep_at="2020-01-01T00:00:00Z")
    sweep()
    assert records(acme) == [("cache.user", "swept", 1)]


def test_a_database_that_is_away_while_a_context_opens_fails_nothing(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("gone")

    placement = begin(acme, boot, "work")
    monkeypatch.setattr(granting, "commit_issue", away)
    with pytest.raises(OperationalError):
        links.begin("s1", placement, "s1")
    with pytest.raises(Ignore):
        links.run("s1", "s1", [])
    links.end("s1")
    assert boot.contexts.get(placement.key) is None
    assert step_of(acme, placement.execution_id, "s1").code == ""
    assert (remote.seen, records(acme)) == ([], [])


def test_an_issuer_of_others_that_breaks_fails_the_step_without_its_words(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("a secret, perhaps")

    monkeypatch.setattr(remote, "plan", breaks)
    placement = begin(acme, boot, "work")
    with pytest.raises(StepFailed, match=Code.UNKNOWN_ERROR):
        run_link(links, placement, "s1")
    assert "perhaps" not in step_of(acme, placement.execution_id, "s1").message


def test_what_was_certainly_not_made_is_not_revoked(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    define(acme, "other")
    remote.unreachable = "other"
    both = {**TMP, "next": {"type": "cache", "definition": "other"}}
    placement = begin(acme, boot, "work", resources=both)
    with pytest.raises(StepFailed, match=Code.RESOURCE_ERROR):
        run_link(links, placement, "s1")
    # Of two, the first could not even be asked for: so neither was made.
    assert remote.seen == []
    assert records(acme) == [("cache.user", "failed", 1), ("cache.user", "failed", 1)]
    assert issued() == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scope": "step"}, "narrow a scope, not widen"),
        ({"type": "database"}, "is of type 'database'"),
        (None, "there is no definition 'scratch'"),
    ],
)
def test_a_definition_that_no_longer_fits_fails_the_step(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    change: dict[str, str] | None,
    reason: str,
) -> None:
    placement = begin(acme, boot, "work", resources={"tmp": {**TMP["tmp"], "scope": "execution"}})
    with tenant_scope(acme):
        found = ResourceDefinition.objects.filter(name="scratch")
        found.update(**change) if change else found.delete()
    with pytest.raises(StepFailed, match=Code.POLICY_VIOLATION):
        run_link(links, placement, "s1")
    step = step_of(acme, placement.execution_id, "s1")
    assert reason in step.message
    assert remote.seen == []


def test_names_of_one_definition_are_issued_once(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, remote: FakeRemote
) -> None:
    twice = {**TMP, "again": {**TMP["tmp"], "scope": "step"}}
    drive(acme, links, begin(acme, boot, "work", resources=twice))
    assert remote.seen == ["issue", "revoke"]
    grants = backend_of(boot).runtimes[0].grants
    assert [(grant.name, grant.scope) for grant in grants] == [
        ("again", "step"),
        ("tmp", "execution"),
    ]
    assert len({grant.secrets["password"] for grant in grants}) == 1


def test_secrets_are_resolved_for_declared_resources_only(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tenant_scope(acme):
        ResourceDefinition.objects.filter(name="scratch").update(secrets={"password": "env:MINE"})
        ResourceDefinition.objects.create(
            name="other", type="cache", config={}, secrets={"password": "env:OTHER"}
        )
    asked: list[str] = []

    def resolve(tenant: str, refs: dict[str, str], _sealed: dict[str, str]) -> dict[str, str]:
        asked.extend(refs.values())
        return dict.fromkeys(refs, "resolved-secret")

    monkeypatch.setattr("resources.services.secrets.resolve", resolve)
    drive(acme, links, begin(acme, boot, "work"))
    assert asked == ["env:MINE"]


def test_a_retry_asks_the_remote_server_when_its_time_has_come(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = {"uses": "work", "on_failure": "retry", "retry": {"attempts": 2}}
    placement = start(acme, boot, step, resources=TMP)
    remote.away = True
    run_link(links, placement, "s1")
    assert remote.seen == ["issue", "revoke"]
    waited: list[float] = []

    def wait(_: StepRunner, seconds: float, deadline: float) -> None:
        waited.append(seconds)
        assert remote.seen == [
            "issue",
            "revoke",
        ]  # nothing is asked for, and nothing held, until then
        remote.away = False

    monkeypatch.setattr(StepRunner, "_wait", wait)
    run_link(links, replace(placement, epoch=2), "s1")
    assert len(waited) == 1
    assert waited[0] > 0
    assert remote.seen == ["issue", "revoke", "issue", "revoke"]
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED


def test_a_cancel_while_it_is_granted_cancels_the_run(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = begin(acme, boot, "work")
    credentials = remote.plan

    def cancelling(request: ResourceRequest) -> Sequence[Credential]:
        with tenant_scope(acme):
            request_cancel(placement.execution_id, actor="tests")
        return credentials(request)

    monkeypatch.setattr(remote, "plan", cancelling)
    with pytest.raises(Ignore):
        run_link(links, placement, "s1")
    assert (remote.seen, backend_of(boot).runs) == ([], [])
    LeaseLoop(boot).turn()
    assert run_of(acme, placement.execution_id).state == ExecutionState.CANCELLED


def test_a_worker_that_was_fenced_while_it_granted_begins_no_step(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = begin(acme, boot, "work")
    issue = remote.issue

    def slowly(request: ResourceRequest, credentials: Sequence[Credential]) -> Grant:
        boot.renewed_at -= boot.clocks.self_fence
        kill_runtimes(boot)
        return issue(request, credentials)

    monkeypatch.setattr(remote, "issue", slowly)
    with pytest.raises(Ignore):
        run_link(links, placement, "s1")
    assert backend_of(boot).runs == []
    assert remote.there == set()


def test_an_issuer_that_plans_one_name_twice_is_refused_before_anything_is_made(
    acme: TenantRef,
    boot: WorkerBoot,
    links: LinkRunner,
    remote: FakeRemote,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    credentials = remote.plan
    monkeypatch.setattr(
        remote, "plan", lambda request: [*credentials(request), *credentials(request)]
    )
    placement = begin(acme, boot, "work")
    with pytest.raises(StepFailed, match=Code.RESOURCE_ERROR):
        run_link(links, placement, "s1")
    assert (remote.seen, issued(), records(acme)) == ([], 0, [])
