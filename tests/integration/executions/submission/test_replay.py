"""Replaying: a new run of the same version, seed and inputs."""

import pytest

from executions.models.sealing import unseal
from executions.services.publishing import publish
from executions.submission.replay import replay
from executions.submission.submit import RunRequest, submit
from executions.worker.boot import WorkerBoot
from foundation.errors import NotFound
from tenants.scope import TenantRef, tenant_scope
from tests.factories import document, make_run, run_of, steps_of, ticket_of


@pytest.mark.usefixtures("neighbour")
def test_a_replay_is_a_new_run_of_the_same_version_seed_and_inputs(
    acme: TenantRef, boot: WorkerBoot
) -> None:
    schema = {"properties": {"password": {"type": "string", "sensitive": True}}}
    inputs = {"password": "hunter2", "id": 1}
    with tenant_scope(acme):
        publish({**document(), "inputs": schema})
    request = RunRequest(blueprint="flow", inputs=inputs, requested_by="ann")
    original = run_of(acme, submit(acme, request).execution.id)
    with tenant_scope(acme):
        publish(document("newer"))
    copy = run_of(acme, replay(acme, original.id, requested_by="bob", request_id="r1").execution.id)
    assert copy.id != original.id
    assert (copy.replay_of, copy.seed) == (original.id, original.seed)
    assert copy.blueprint_version_id == original.blueprint_version_id
    assert (copy.inputs, copy.requested_by, copy.request_id) == (original.inputs, "bob", "r1")
    assert unseal(copy.id, bytes(copy.sealed_inputs or b"")) == {"password": "hunter2", "id": 1}
    assert steps_of(acme, copy.id) == {"one": "pending", "two": "pending"}
    assert ticket_of(copy.id) is not None


@pytest.mark.usefixtures("neighbour")
def test_another_tenants_run_cannot_be_replayed(
    acme: TenantRef, globex: TenantRef, boot: WorkerBoot
) -> None:
    run_id = make_run(acme)
    with pytest.raises(NotFound, match=str(run_id)):
        replay(globex, run_id, requested_by="mallory")
