"""The definitions of the demo, and the traces of runs that it finds at the remote servers."""

from uuid import UUID, uuid4

import psycopg
import pytest
import redis
from pytest_django import Settings

from orchestrator.cli.support.demo_resources import NETWORKS, RemoteServers, define
from orchestrator.embedded.customer import CustomerPostgres
from resources.selectors import all_definitions, definition
from resources.services.secrets import resolve
from tenants.scope import TenantRef, tenant_scope
from tests.customer import Customer
from tests.plugin import SERVERS
from tests.waiting import wait_for


@pytest.fixture
def server(customer: Customer) -> CustomerPostgres:
    """As the demo has started it."""
    return customer._server


def public_id(execution: UUID) -> str:
    return f"exec_{execution}"


def test_what_is_left_of_one_run_is_counted_and_nothing_of_another(
    server: CustomerPostgres, customer: Customer, run_cache: "redis.Redis"
) -> None:
    execution, other = uuid4(), uuid4()
    far_sides = RemoteServers(server, SERVERS.cache_url)
    role = f"iso_{execution.hex}_1_0"
    with customer.connect() as superuser:
        superuser.execute(f"CREATE ROLE {role}")
    run_cache.set(f"exec:{execution}:1:notes:a", "1")
    run_cache.acl_setuser(f"exec:{execution}:1:notes", enabled=True)
    tag = f"{public_id(execution)}/1/acme"
    held = psycopg.connect(server.url(server.reader), application_name=tag)

    left = {"connections": 1, "roles": 1, "cache users": 1, "cache keys": 1}
    assert far_sides.left(public_id(execution)) == left
    assert not any(far_sides.left(public_id(other)).values())
    assert set(RemoteServers(server, "").left(public_id(execution))) == {"connections", "roles"}

    held.close()
    with customer.connect() as superuser:
        superuser.execute(f"DROP ROLE {role}")
    run_cache.flushall()
    run_cache.acl_deluser(f"exec:{execution}:1:notes")
    wait_for(lambda: not any(far_sides.left(public_id(execution)).values()), "nothing to be left")
    # The log remembers the visitors.
    assert far_sides.connections(public_id(execution)) == 1
    assert far_sides.connections(public_id(other)) == 0


def test_definitions_of_an_earlier_demo_are_replaced_and_each_tenant_has_its_own(
    acme: TenantRef, globex: TenantRef, server: CustomerPostgres, settings: Settings
) -> None:
    settings.RESOURCE_NETWORKS = (NETWORKS,)
    assert define(acme, server, cache=True) == ["shop-db", "notes", "writer"]
    with tenant_scope(globex):
        assert not all_definitions().exists()
    assert define(globex, server, cache=False) == ["shop-db", "writer"]
    assert define(acme, server, cache=True) == ["shop-db", "notes", "writer"]
    with tenant_scope(acme):
        found = definition("shop-db")
        assert found.config["port"] == server.port
        password = resolve("acme", found.secrets)["password"]
    assert password == server.admin.password
    assert password not in str(found.config)
