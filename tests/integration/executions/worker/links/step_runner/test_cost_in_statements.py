"""The cost of a run in statements: one per claim, checkpoint or both, and at most ten others."""

from collections import Counter
from uuid import UUID

import psycopg
import pytest

from executions.placement.dispatch import admit_and_send
from executions.states import ExecutionState
from executions.submission.submit import RunRequest, submit
from executions.worker.boot import WorkerBoot
from executions.worker.links.runner import LinkRunner
from tenants.scope import TenantRef
from tests.factories import held_by, run_of, set_quota, start
from tests.integration.executions.statements import counted, is_named
from tests.integration.executions.worker.driving import drive, run_link

Server = psycopg.Connection[tuple[object, ...]]
STEPS = 3
OTHERS = 10  # than claims, checkpoints and the entering of tenants, however many steps there are

pytestmark = pytest.mark.usefixtures("neighbour", "broker")


@pytest.fixture(autouse=True)
def _warm(acme: TenantRef, boot: WorkerBoot, links: LinkRunner, neighbour: None) -> None:
    """A run before: the connection is open, and what is remembered per process is known."""
    for express in (False, True):
        drive(acme, links, start(acme, boot, *[{}] * STEPS, express=express))


def submit_flow(tenant: TenantRef) -> UUID:
    request = RunRequest(blueprint="flow", inputs={}, requested_by="tests")
    return submit(tenant, request).execution.id


def listed(statements: "Counter[str]") -> str:
    return "\n".join(f"{n} x {text[:160]}" for text, n in statements.most_common())


def assert_few(statements: "Counter[str]") -> None:
    """The first step is claimed by itself, each further one with the checkpoint before it; and few others."""
    claims = sum(n for text, n in statements.items() if is_named(text, "claim"))
    checkpoints = sum(n for text, n in statements.items() if is_named(text, "checkpoint"))
    entered = sum(n for text, n in statements.items() if "'isolane_t_" in text)
    assert (claims, checkpoints) == (1, STEPS), listed(statements)
    assert entered <= 1, listed(statements)
    assert statements.total() - (STEPS + 1) - entered <= OTHERS, listed(statements)


@pytest.mark.parametrize("express", [False, True])
def test_a_run_from_its_placement_to_its_close(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, superuser: Server, express: bool
) -> None:
    placement = start(acme, boot, *[{}] * STEPS, express=express)
    with counted(superuser) as statements:
        for number in range(1, 2 if express else STEPS + 1):
            run_link(links, placement, f"s{number}")
    assert run_of(acme, placement.execution_id).state == ExecutionState.SUCCEEDED
    assert_few(statements)


def test_a_run_that_lets_the_next_one_in(
    acme: TenantRef, boot: WorkerBoot, links: LinkRunner, superuser: Server
) -> None:
    """As it is when runs wait: the end of each places and sends another."""
    set_quota(acme, 1)
    placement = start(acme, boot, *[{}] * STEPS)
    following = submit_flow(acme)
    with counted(superuser) as statements:
        for number in range(1, STEPS + 1):
            run_link(links, placement, f"s{number}")
    assert following in held_by(boot)
    assert_few(statements)


def test_a_submission_and_its_placement(
    acme: TenantRef, boot: WorkerBoot, superuser: Server
) -> None:
    with counted(superuser) as submission:
        run = submit_flow(acme)
    # Two of them because the connection goes back to the pool while inputs are checked, and comes again.
    assert submission.total() <= 8, listed(submission)
    with counted(superuser) as placement:
        admit_and_send()
    assert run in held_by(boot)
    assert placement.total() <= 9, listed(placement)
