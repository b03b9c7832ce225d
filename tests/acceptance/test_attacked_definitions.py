"""Definitions that point at the platform itself, or whose names are more than names: refused on every surface."""

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import psycopg
import pytest
from click.testing import CliRunner
from django.conf import settings

from foundation.errors import InvalidInput, IsolaneError
from orchestrator.cli.main import cli
from resources.addresses import AddressRefused, HostUnknown, policy_from_settings, resolve
from resources.models import ResourceDefinition
from resources.services.definition_rules import DefinitionInput
from resources.services.definitions import create_definition
from tenants.roles import Role
from tenants.scope import TenantRef, tenant_scope
from tests.integration.tenants.web import program

Server = psycopg.Connection[tuple[object, ...]]
RESOURCES = "/api/v1/resources"
CACHE = urlsplit(settings.CACHE_URL).port or 0
# Behind Unix sockets, both could listen at their usual ports as well.
OWN = {"cache": CACHE, "PostgreSQL": int(settings.DATABASES["default"]["PORT"] or 5432), "broker": 6379}  # fmt: skip
HOSTS = (
    "127.0.0.1", "127.1", "127.0.0.2", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1", "0.0.0.0", "0", "::1",
    "0:0:0:0:0:0:0:1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "localhost",
    "LOCALHOST", "localhost.", "a.localhost", "LocalHost.", "127.0.0.1.",
)  # fmt: skip
NO_HOSTS = (
    "/var/run/postgresql", "/tmp", "@abstract", "127.0.0.1,db.example.com", "db.example.com,127.0.0.1", "127.0.0.1 ",
    " localhost", "user@127.0.0.1", "user:secret@db.example.com", "127.0.0.1/32", "[::1]", "",
    "db.example.com\0", "db.example.com\n", "fe80::1%lo", "host=127.0.0.1", "\uff11\uff12\uff17.0.0.1",
)  # fmt: skip
URLS = (
    f"http://user:secret-word@db.example.com:{CACHE}", f"http://db.example.com@127.0.0.1:{CACHE}",
    f"http://127.0.0.1:{CACHE}\\@db.example.com", f"HTTP://LOCALHOST:{CACHE}/x",
    f"http://127.0.0.1:{CACHE}#@db.example.com", f"http://[::ffff:127.0.0.1]:{CACHE}", f"redis://127.0.0.1:{CACHE}",
    f"//127.0.0.1:{CACHE}", "unix:///tmp/x.sock", "file:///etc/passwd", f"http://127.0.0.1:0{CACHE}",
    f"http://\u2460\u2461\u2466.0.0.1:{CACHE}", f"http://127\u30020\u30020\u30021:{CACHE}", f"http://127.0.0.1%3A{CACHE}",
)  # fmt: skip
NAMES = (
    "../billing", "..", "a/b", "a\\b", "/etc/passwd", "a'; DROP TABLE resources_resourcedefinition; --", 'a"b', "a b",
    "a%00b", "a\0b", "a\nb", "A", "1a", "-a", "a" * 64, "münze", "a.b", "$(id)", "{{a}}", "acme.billing", "",
)  # fmt: skip


def machine_addresses() -> Iterator[str]:
    for addresses in psutil.net_if_addrs().values():
        for one in addresses:
            if one.family in {socket.AF_INET, socket.AF_INET6}:
                yield one.address.partition("%")[0]


def configs(host: str, port: int) -> dict[str, dict[str, Any]]:
    """The same place for every type that names one."""
    bracketed = f"[{host}]" if ":" in host else host
    url = f"http://{bracketed}:{port}"
    return {
        "database": {"host": host, "port": port, "dbname": "postgres", "user": "postgres"},
        "http_api": {"base_url": url},
        "model": {"provider": "openai", "base_url": url, "model": "m"},
    }


def refused(tenant: TenantRef, type_: str, config: dict[str, Any]) -> IsolaneError:
    with pytest.raises(IsolaneError) as error:
        create_definition(
            tenant, DefinitionInput(name="inside", type=type_, config=config), actor="tests"
        )
    with tenant_scope(tenant):
        assert not ResourceDefinition.objects.exists()
    return error.value


@pytest.mark.parametrize("server", OWN)
def test_the_platforms_own_servers_are_refused_by_every_name(
    acme: TenantRef, globex: TenantRef, server: str
) -> None:
    assert "127.0.0.0/8" in settings.RESOURCE_NETWORKS  # loopback as such is allowed here
    for host in (*HOSTS, *machine_addresses()):
        for type_, config in configs(host, OWN[server]).items():
            for tenant in (acme, globex):
                assert isinstance(refused(tenant, type_, config), AddressRefused), (host, type_)


def test_what_is_no_single_host_is_refused(acme: TenantRef, globex: TenantRef) -> None:
    for host in NO_HOSTS:
        for tenant in (acme, globex):
            refused(tenant, "database", configs(host, 5432)["database"])


def test_urls_that_lead_inside_are_refused_and_credentials_not_repeated(
    acme: TenantRef, globex: TenantRef
) -> None:
    for url in URLS:
        for type_ in ("http_api", "model"):
            config = {**configs("x", 1)[type_], "base_url": url}
            for tenant in (acme, globex):
                assert "secret-word" not in str(refused(tenant, type_, config)), url


def test_what_stands_for_no_address_is_refused_when_it_is_opened() -> None:
    for host in ("127.0.0.1:5432", "no.such.host.invalid"):
        with pytest.raises(HostUnknown):
            resolve(host, 5432, policy_from_settings())


def test_names_that_stand_for_the_platform_are_refused_when_they_are_opened() -> None:
    for host in ("localhost", "LOCALHOST", "127.1", "0x7f000001"):
        with pytest.raises(AddressRefused):
            resolve(host, CACHE, policy_from_settings())


def test_a_name_with_more_than_a_name_in_it_is_refused(
    acme: TenantRef, globex: TenantRef, superuser: Server
) -> None:
    client = program(acme, role=Role.ADMIN)
    for name in NAMES:
        body = {"name": name, "type": "cache", "config": {}, "secrets": {}}
        answer = client.post(RESOURCES, body, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input"), name
        for method in ("get", "delete"):
            found = getattr(client, method)(f"{RESOURCES}/{quote(name or ' ', safe='')}")
            assert found.status_code == 404, name
        create = ["resources", "create", "--tenant", "acme", "--type", "cache", "--", name]
        made = CliRunner().invoke(cli, create)
        assert isinstance(made.exception, InvalidInput), name
    for tenant in (acme, globex):
        rows = f"SELECT count(*) FROM {tenant.schema}.resources_resourcedefinition"
        assert superuser.execute(rows).fetchall() == [(0,)]
