"""A run with one database opens exactly one connection, however many steps ask: counted at the customer's server."""

import re
from collections import Counter
from typing import Any

import pytest

from executions.models import Execution
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from resources.services.secrets import put_secret
from tenants.scope import TenantRef, tenant_scope
from tests.acceptance.conftest import StartWorker
from tests.acceptance.runs import ended, no_slot_is_held, start_run
from tests.customer import Customer
from tests.waiting import wait_for

STEPS = 10
RUNS = 3  # of each tenant, at the same time
RESOURCE = {"type": "database", "definition": "one-shop", "scope": "execution"}
ASK = {"uses": "bench.scoped", "with": {"slow": False}}
_CAME = re.compile(r"\[(\d+)\].* connection authorized: ")
_LEFT = re.compile(r"\[(\d+)\].* disconnection: ")


@pytest.fixture(autouse=True)
def _nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of these tests offer the step that tells which session of the server it used."""
    monkeypatch.setenv("ISOLANE_NODE_PACKAGES", "tests.nodes bench.context.nodes")


def define(tenant: TenantRef, customer: Customer) -> None:
    """A fixed login on the customer's server."""
    put_secret(tenant, "one-shop", customer.reader.password, actor="tests")
    config = {
        "host": customer.host,
        "port": customer.port,
        "dbname": customer.dbname,
        "user": customer.reader.user,
    }
    wanted = DefinitionInput(
        name="one-shop",
        type="database",
        config=config,
        secrets={"password": "one-shop"},
        scope="execution",
    )
    create_definition(tenant, wanted, actor="tests")


def sessions_used(tenant: TenantRef, run: Execution) -> Counter[int]:
    """Count the steps that each session of the server answered."""
    with tenant_scope(tenant):
        return Counter(int(output or 0) for output in run.steps.values_list("output", flat=True))


def sessions_in_log(customer: Customer, run: Execution, kind: re.Pattern[str]) -> list[int]:
    """The sessions of this run that the server's log has such a line of."""
    found = (kind.search(line) for line in customer.log_lines(run.pk))
    return [int(match[1]) for match in found if match]


@pytest.mark.parametrize("express", [False, True], ids=["chain", "express"])
def test_ten_steps_share_one_connection(
    acme: TenantRef,
    globex: TenantRef,
    start_worker: StartWorker,
    customer: Customer,
    main_level: str,
    *,
    express: bool,
) -> None:
    for tenant in (acme, globex):
        define(tenant, customer)
    start_worker()
    start_worker()
    fields: dict[str, Any] = {"express": express, "resources": {"shop": RESOURCE}}
    runs = [
        (tenant, start_run(tenant, *[ASK] * STEPS, **fields)) for tenant in (acme, globex) * RUNS
    ]
    seen: Counter[int] = Counter()
    for tenant, run in runs:
        found = ended(tenant, run, seconds=60)
        assert (found.state, found.isolation) == ("succeeded", main_level), found.message
        used = sessions_used(tenant, run)
        assert list(used.values()) == [STEPS]
        assert sessions_in_log(customer, run, _CAME) == list(used)
        # The last line of a session is written after its client has left.
        wait_for(
            lambda run=run: sessions_in_log(customer, run, _LEFT),  # type: ignore[misc]  # a bound loop variable
            f"the session of {tenant.schema} to end",
        )
        assert customer.activity(run.pk) == []
        seen.update(used)
    # No run was given the connection of another, of whichever tenant.
    assert list(seen.values()) == [STEPS] * len(runs)
    no_slot_is_held()
