"""The resources of a placement: granted, held, revoked and written down, whatever ends it."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from celery.exceptions import Ignore
from django.db import OperationalError

from executions.models import ResourceRecord
from executions.services.executions import request_cancel
from executions.states import ExecutionState
from executions.transitions.close import restart
from executions.transitions.fence import Placement
from executions.worker import granting, sweeper
from executions.worker.closing import close_context
from executions.worker.links import Links, StepFailed
from executions.worker.machine import Machine
from executions.worker.reaper import reap
from executions.worker.sweeper import sweep
from isolane.results import Code
from resources.ledger.models import Issued
from resources.models import ResourceDefinition
from resources.runtimes.stub import StubBackend, fails, succeeds
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.factories import LEVEL, backend_of, let_lapse, make_machine, start, step_of
from tests.integration.executions.worker.driving import drive, run_link
from tests.integration.executions.worker.far_side import FarSide, define, handle, says

pytestmark = pytest.mark.usefixtures("broker")
TMP = {"tmp": {"type": "cache", "definition": "scratch"}}


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> FarSide:
    found = FarSide()
    for module in (granting, sweeper):
        monkeypatch.setattr(module, "issuer_of", lambda _type: found)
    return found


@pytest.fixture
def machine(database: None, acme: TenantRef, globex: TenantRef, far: FarSide) -> Machine:
    backend = StubBackend(level=LEVEL, script={})
    backend.script = {
        "work": says(backend, ("allocated", 1), ("disposed", 1)),
        "open": says(backend, ("allocated", 1)),
        "use": says(backend, ("reused", 1)),
        "close": says(backend, ("disposed", 1)),
        "break": fails(Code.UNKNOWN_ERROR, "broke"),
        "leak": succeeds({"mine": "issued-password"}),
        "rest": succeeds(None),
        "forge": says(backend, ("disposed", 9)),
    }
    for tenant in (acme, globex):
        define(tenant)
    return make_machine(backend=backend)


def begin(tenant: TenantRef, machine: Machine, *uses: str, **fields: Any) -> Placement:
    steps = [{"uses": node} for node in uses]
    return start(tenant, machine, *steps, resources=fields.pop("resources", TMP), **fields)


def records(tenant: TenantRef) -> list[tuple[str, str, int]]:
    with tenant_scope(tenant):
        found = ResourceRecord.objects.order_by("id").values_list("type", "ended", "epoch")
        return list(found)


def issued() -> int:
    with platform_scope():
        return Issued.objects.count()


# --- the ordinary way
def test_what_is_issued_is_granted_used_and_revoked(
    acme: TenantRef, globex: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "open", "use", "close")
    run_link(links, placement, "s1")
    (grant,) = backend_of(machine).runtimes[0].grants
    assert (grant.name, grant.scope, grant.secrets) == (
        "tmp",
        "execution",
        {"password": "issued-password"},
    )
    assert far.there == {f"{placement.execution_id}/1/scratch"}
    assert (issued(), records(acme)) == (1, [("cache.user", "", 1), ("cache", "", 1)])
    assert drive(acme, links, placement).state == ExecutionState.SUCCEEDED
    assert far.there == set()
    assert issued() == 0
    assert records(acme) == [("cache.user", "disposed", 1), ("cache", "disposed", 1)]
    assert records(globex) == []


def test_two_tenants_have_their_own_ledgers(
    acme: TenantRef, globex: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    ours, theirs = begin(acme, machine, "open", "rest"), begin(globex, machine, "open", "rest")
    run_link(links, ours, "s1")
    run_link(links, theirs, "s1")
    assert len(far.there) == 2
    with tenant_scope(acme):
        assert [row.execution_id for row in Issued.objects.all()] == [ours.execution_id]
    drive(acme, links, ours)
    assert far.there == {f"{theirs.execution_id}/1/scratch"}
    drive(globex, links, theirs)
    assert far.there == set()
    assert records(acme) == records(globex)


def test_nothing_exists_before_the_ledger_says_so(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, list[tuple[str, str, int]]]] = []
    issue = far.issue

    def looking(*args: Any) -> Any:
        seen.append((issued(), records(acme)))
        return issue(*args)

    monkeypatch.setattr(far, "issue", looking)
    drive(acme, links, begin(acme, machine, "work"))
    assert seen == [(1, [("cache.user", "", 1)])]


def test_a_run_without_resources_has_no_ledger(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = start(acme, machine, {"uses": "break", "on_failure": "continue"}, {"uses": "break"})
    drive(acme, links, placement)
    assert (far.seen, records(acme)) == ([], [])


# --- all the ways to end
def test_a_failure_disposes_as_a_success_does(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    run = drive(acme, links, begin(acme, machine, "open", "break"))
    assert run.state == ExecutionState.FAILED
    assert (far.there, issued()) == (set(), 0)
    # The stub's runtime closes without a word of its handles: they went with it.
    assert records(acme) == [("cache.user", "disposed", 1), ("cache", "killed", 1)]


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


def test_a_runtime_that_dies_is_followed_by_a_context_of_its_own(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "open", "work")
    backend = backend_of(machine)

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
    assert (far.there, issued()) == (set(), 0)


def test_a_cancelled_run_is_issued_nothing_more(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "work")
    with tenant_scope(acme):
        request_cancel(placement.execution_id, actor="tests")
    with pytest.raises(Ignore):
        run_link(links, placement, "s1")
    assert far.seen == []


# --- what cannot be granted
def test_a_far_side_that_is_away_fails_the_step_and_leaves_nothing(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    far.away = True
    placement = begin(acme, machine, "work")
    with pytest.raises(StepFailed, match=Code.RESOURCE_ERROR):
        run_link(links, placement, "s1")
    assert backend_of(machine).runtimes == []
    assert step_of(acme, placement.execution_id, "s1").code == Code.RESOURCE_ERROR
    far.away = False
    with platform_scope():
        Issued.objects.update(sweep_at="2020-01-01T00:00:00Z")
    sweep()
    assert records(acme) == [("cache.user", "swept", 1)]


def test_a_database_that_is_away_while_a_context_opens_fails_nothing(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("gone")

    placement = begin(acme, machine, "work")
    monkeypatch.setattr(granting, "commit_issue", away)
    with pytest.raises(OperationalError):
        links.begin("s1", placement, "s1")
    with pytest.raises(Ignore):
        links.run("s1", "s1", [])
    links.end("s1")
    assert machine.contexts.get(placement.key) is None
    assert step_of(acme, placement.execution_id, "s1").code == ""
    assert (far.seen, records(acme)) == ([], [])


def test_an_issuer_of_others_that_breaks_fails_the_step_without_its_words(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("a secret, perhaps")

    monkeypatch.setattr(far, "things", breaks)
    placement = begin(acme, machine, "work")
    with pytest.raises(StepFailed, match=Code.UNKNOWN_ERROR):
        run_link(links, placement, "s1")
    assert "perhaps" not in step_of(acme, placement.execution_id, "s1").message


def test_what_was_certainly_not_made_is_not_revoked(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    define(acme, "other")
    far.unreachable = "other"
    both = {**TMP, "next": {"type": "cache", "definition": "other"}}
    placement = begin(acme, machine, "work", resources=both)
    with pytest.raises(StepFailed, match=Code.RESOURCE_ERROR):
        run_link(links, placement, "s1")
    # Of two, the first could not even be asked for: so neither was made.
    assert far.seen == []
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
    machine: Machine,
    links: Links,
    far: FarSide,
    change: dict[str, str] | None,
    reason: str,
) -> None:
    placement = begin(
        acme, machine, "work", resources={"tmp": {**TMP["tmp"], "scope": "execution"}}
    )
    with tenant_scope(acme):
        found = ResourceDefinition.objects.filter(name="scratch")
        found.update(**change) if change else found.delete()
    with pytest.raises(StepFailed, match=Code.POLICY_VIOLATION):
        run_link(links, placement, "s1")
    step = step_of(acme, placement.execution_id, "s1")
    assert reason in step.message
    assert far.seen == []


def test_names_of_one_definition_are_issued_once(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    twice = {**TMP, "again": {**TMP["tmp"], "scope": "step"}}
    drive(acme, links, begin(acme, machine, "work", resources=twice))
    assert far.seen == ["issue", "revoke"]
    grants = backend_of(machine).runtimes[0].grants
    assert [(grant.name, grant.scope) for grant in grants] == [
        ("again", "step"),
        ("tmp", "execution"),
    ]
    assert len({grant.secrets["password"] for grant in grants}) == 1


# --- what a step may not do
def test_an_output_with_an_injected_secret_is_refused_and_not_stored(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "leak")
    with pytest.raises(StepFailed, match=Code.POLICY_VIOLATION):
        run_link(links, placement, "s1")
    step = step_of(acme, placement.execution_id, "s1")
    assert step.output is None
    assert "contain a secret of a resource" in step.message
    assert "issued-password" not in step.message


def test_a_runtime_that_tells_of_handles_it_does_not_have_is_not_believed(
    acme: TenantRef, machine: Machine, links: Links
) -> None:
    placement = begin(acme, machine, "forge")
    with pytest.raises(StepFailed):
        run_link(links, placement, "s1")
    assert ("cache", "disposed", 1) not in records(acme)


# --- told
def test_every_event_is_a_line_with_both_ids(
    acme: TenantRef, machine: Machine, links: Links, caplog: pytest.LogCaptureFixture
) -> None:
    placement = begin(acme, machine, "open", "use", "close")
    with caplog.at_level(logging.INFO, logger="executions.worker.resources"):
        drive(acme, links, placement)
    told = [vars(line) for line in caplog.records if line.name == "executions.worker.resources"]
    assert [(line["event"], line["resource_type"]) for line in told] == [
        ("RESOURCE_ALLOCATED", "cache.user"),
        ("RESOURCE_ALLOCATED", "cache"),
        ("RESOURCE_REUSED", "cache"),
        ("RESOURCE_DISPOSED", "cache"),
        ("RESOURCE_DISPOSED", "cache.user"),
    ]
    assert {(line["execution_id"], line["tenant_id"]) for line in told} == {
        (str(placement.execution_id), acme.schema)
    }
    assert {line["resource_id"] for line in told} == {
        handle(1, epoch=1),
        f"{placement.execution_id}/1/scratch",
    }


def test_a_late_close_of_an_old_placement_touches_nothing_of_the_new_one(
    acme: TenantRef, machine: Machine, links: Links, far: FarSide
) -> None:
    placement = begin(acme, machine, "open", "open", "close")
    run_link(links, placement, "s1")
    old = machine.contexts.get(placement.key)
    assert old is not None
    new = replace(placement, epoch=2)
    with tenant_scope(acme):
        assert restart(placement, reason="tests") == 2
    run_link(links, new, "s2")
    assert f"{placement.execution_id}/2/scratch" in far.there
    machine.contexts.abandon(old)
    close_context(machine, old)
    assert far.there == {f"{placement.execution_id}/2/scratch"}
    assert ("cache.user", "", 2) in records(acme)
