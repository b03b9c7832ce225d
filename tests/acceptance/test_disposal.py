"""Whatever ends a run, nothing of it is left at the remote servers, and its ledger balances; on real workers.

The runs have the level `process`; the storm has them at `shared`, too.
"""

import re
from typing import Any

import pytest
import redis

from executions.models import Execution, ResourceRecord
from executions.semantics.approval_reply import ApprovalReply
from executions.services.approvals import answer
from executions.submission.cancel import request_cancel
from resources.ledger.models import IssuedCredential
from tenants.scope import TenantRef, platform_scope, tenant_scope
from tests.acceptance.conftest import StartWorker
from tests.acceptance.remote_servers import RESOURCES, RemoteServers, balance_of, define
from tests.acceptance.runs import ended, no_slot_is_held, reload, start_run
from tests.customer import Customer
from tests.waiting import wait_for

USE: dict[str, Any] = {"uses": "ending.use"}
USED = 5  # a role and its session, a cache user, its client and its key


@pytest.fixture(autouse=True)
def _nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.nodes tests.acceptance.disposal_nodes")


@pytest.fixture
def remote(
    customer: Customer, run_cache: "redis.Redis", acme: TenantRef, globex: TenantRef
) -> RemoteServers:
    return RemoteServers(customer, run_cache)


@pytest.fixture
def tenants(
    acme: TenantRef, globex: TenantRef, customer: Customer, main_level: str
) -> tuple[TenantRef, TenantRef]:
    """Both with the same definitions, and runs of that level."""
    for tenant in (acme, globex):
        define(tenant, customer)
    return acme, globex


def begin(tenant: TenantRef, *steps: dict[str, Any], **fields: Any) -> Execution:
    return start_run(tenant, *steps, resources=RESOURCES, **fields)


def uses_all(remote: RemoteServers, run: Execution) -> None:
    """Wait until its step has used everything."""
    wait_for(lambda: len(remote.left_of(run.pk)) == USED, f"{run.pk} to use all")


def visitors(remote: RemoteServers, run: Execution) -> list[str]:
    """Return the names under which callbacks of the run have visited the customer's server, in order."""
    lines = remote.customer.log_lines("application_name=")
    found = (re.search(rf"application_name=(\w+) {run.pk}", line) for line in lines)
    return [match[1] for match in found if match]


def settled(tenant: TenantRef, run: Execution, remote: RemoteServers, state: str) -> dict[str, int]:
    """It has ended so; nothing is left, here or there. Returns how its resources ended."""
    found = ended(tenant, run, 40)
    assert found.state == state, found.message

    # What was killed with its runtime is seen by the server a moment later, what was swept by a later turn.
    wait_for(lambda: remote.left_of(run.pk) == [], f"nothing to be left of {run.pk}", 40)
    wait_for(lambda: balance_of(tenant, run).is_clean, f"the ledger of {run.pk} to balance", 20)
    found_balance = balance_of(tenant, run)
    assert found_balance.allocated == found_balance.disposed > 0
    assert found_balance.failed == 0
    return found_balance.ended


def test_every_ending_leaves_nothing(
    tenants: tuple[TenantRef, TenantRef],
    remote: RemoteServers,
    start_worker: StartWorker,
    main_level: str,
) -> None:
    acme, globex = tenants
    start_worker()
    hang = {"uses": "ending.hang", "timeout": "1s"}
    runs = {
        "success": (acme, begin(acme, USE, USE), "succeeded"),
        "failure": (globex, begin(globex, USE, {"uses": "ending.raise"}), "failed"),
        "step timeout": (acme, begin(acme, USE, hang), "timed_out"),
        "run timeout": (globex, begin(globex, {"uses": "ending.hang"}, timeout="8s"), "timed_out"),
        "kill of the runtime": (acme, begin(acme, USE, {"uses": "ending.kill"}), "failed"),
        "exception in dispose": (
            globex,
            begin(globex, {"uses": "ending.bad_close"}),
            "succeeded",
        ),
        "express": (acme, begin(acme, USE, USE, express=True), "succeeded"),
    }
    how = {name: settled(tenant, run, remote, state) for name, (tenant, run, state) in runs.items()}
    # A role, a cache user, its keys; and the two handles.
    disposed = {"disposed": 5}
    assert how["success"] == how["failure"] == how["express"] == disposed
    assert how["exception in dispose"] == disposed
    _, bad_close, _ = runs["exception in dispose"]
    assert visitors(remote, bad_close) == ["last", "first"]
    levels = {reload(tenant, run).isolation for tenant, run, _ in runs.values()}
    assert levels == {main_level}
    killed = {"disposed": 3, "killed": 2}
    assert how["step timeout"] == how["run timeout"] == how["kill of the runtime"] == killed
    no_slot_is_held()
    with platform_scope():
        assert not IssuedCredential.objects.exists()


def test_a_disposer_that_hangs_stops_no_other(
    tenants: tuple[TenantRef, TenantRef],
    remote: RemoteServers,
    start_worker: StartWorker,
) -> None:
    acme, _ = tenants
    start_worker()
    run = begin(acme, {"uses": "ending.hanging_close"})
    assert settled(acme, run, remote, "succeeded") == {"disposed": 5}
    assert visitors(remote, run) == ["first"]


def test_a_cancel_and_a_suspension_leave_nothing(
    tenants: tuple[TenantRef, TenantRef],
    remote: RemoteServers,
    start_worker: StartWorker,
) -> None:
    acme, globex = tenants
    start_worker()
    cancelled = begin(acme, {"uses": "ending.hang"})
    asks = begin(globex, USE, {"uses": "human.approval", "with": {"prompt": "Go on?"}}, USE)
    uses_all(remote, cancelled)
    with tenant_scope(acme):
        request_cancel(cancelled.pk, actor="test")
    assert settled(acme, cancelled, remote, "cancelled") == {"disposed": 3, "killed": 2}
    wait_for(lambda: reload(globex, asks).state == "suspended", "the run to be suspended")
    # While a person is asked, nothing of it exists.
    assert remote.left_of(asks.pk) == []
    assert balance_of(globex, asks).ended == {"disposed": 5}
    answer(globex, asks.public_id, 1, ApprovalReply(approved=True, by="test"))
    assert settled(globex, asks, remote, "succeeded") == {"disposed": 10}
    with tenant_scope(globex):
        epochs = set(ResourceRecord.objects.filter(execution=asks).values_list("epoch", flat=True))
    assert len(epochs) == 2


def test_a_worker_that_drains_leaves_nothing_and_its_runs_go_on(
    tenants: tuple[TenantRef, TenantRef],
    remote: RemoteServers,
    start_worker: StartWorker,
) -> None:
    """The storm has the workers that are killed."""
    drained = start_worker()
    hang = {"uses": "ending.hang", "with": {"seconds": 1.5}}
    runs = {tenant: begin(tenant, hang, USE) for tenant in tenants}
    for run in runs.values():
        uses_all(remote, run)
    drained.terminate()  # the step under way ends in time, the next one runs elsewhere
    start_worker()
    for tenant, run in runs.items():
        assert settled(tenant, run, remote, "succeeded") == {"disposed": 10}
