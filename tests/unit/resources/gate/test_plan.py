"""resources.gate.plan: where the routes of some grants lead, and what the runtime gets."""

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest

from isolane.gate.routes import Listener
from isolane.protocol import Grant
from isolane.sandbox.loopback import LOOPBACK_V6
from resources.gate import plan as module
from resources.gate.brokers.base import Broker
from resources.gate.brokers.share import Share
from resources.gate.plan import plan_gate

SECRETS = {"token": "s3cret"}


def a_grant(name: str, url: str, **changes: Any) -> Grant:
    fields: dict[str, Any] = {
        "name": name, "type": "http_api", "definition": name, "scope": "execution",
        "config": {"base_url": url}, "secrets": SECRETS, "address": "203.0.113.7",
    }  # fmt: skip
    return Grant(**fields | changes)


def led(grants: list[Grant]) -> Mapping[tuple[str, int], str]:
    """Return the definition to which each address and port leads."""
    plan = plan_gate(grants, Share())
    found = {}
    for listener in plan.table.listeners:
        for address in listener.address:
            assert (address, listener.port) not in found
            found[address, listener.port] = plan.routes[listener.route].definition
    return found


def test_a_definition_has_an_address_and_its_host_a_name() -> None:
    plan = plan_gate([a_grant("api", "https://API.example.com.")], Share())
    (route,) = plan.routes
    assert (route.definition, route.host, route.port) == ("api", "api.example.com", 443)
    assert (route.address, route.broker, route.is_platforms) == ("203.0.113.7", None, False)
    (own, named) = plan.table.listeners
    assert own == Listener(0, ("127.77.0.1", "fd69:736f:6c61:6e65::4d:1"), 443)  # type: ignore[arg-type]
    assert named == Listener(0, plan.table.names["api.example.com"], 443)
    assert list(plan.table.names) == ["api.example.com"]
    (inside,) = plan.grants
    assert inside == replace(a_grant("api", "https://API.example.com."), address="127.77.0.1")


def test_grants_of_one_definition_share_a_route() -> None:
    grants = [
        a_grant("first", "https://a.example.com", definition="d"),
        a_grant("other", "https://b.example.com"),
        a_grant("second", "https://a.example.com", definition="d"),
    ]
    plan = plan_gate(grants, Share())
    assert [route.definition for route in plan.routes] == ["d", "other"]
    assert [grant.address for grant in plan.grants] == ["127.77.0.1", "127.77.0.2", "127.77.0.1"]
    assert [grant.name for grant in plan.grants] == ["first", "other", "second"]


def test_definitions_of_one_host_are_told_apart_by_their_ports() -> None:
    places = led([
        a_grant("same", "https://x.example.com"),
        a_grant("two", "https://x.example.com:8443"),
        a_grant("one", "https://x.example.com"),
    ])  # fmt: skip
    assert places["127.78.0.1", 443] == "one"  # the first by name
    assert places["127.78.0.1", 8443] == "two"
    assert places["127.77.0.1", 443] == "same"  # its handle finds it
    assert "127.78.0.2" not in {address for address, _ in places}


def test_localhost_is_where_the_sandbox_itself_looks_for_it() -> None:
    places = led([a_grant("here", "http://localhost:8080"), a_grant("b", "http://b.test:8080")])
    assert (places["127.0.0.1", 8080], places["::1", 8080]) == ("here", "here")


@pytest.mark.parametrize("url", ["https://203.0.113.7", "https://[2001:db8::7]:8443"])
def test_a_literal_address_has_no_name(url: str) -> None:
    plan = plan_gate([a_grant("api", url)], Share())
    assert (dict(plan.table.names), len(plan.table.listeners)) == ({}, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "model", "config": {"provider": "echo", "model": "m"}, "address": ""},
        {"address": ""},
    ],
)
def test_what_needs_no_connection_has_no_route(changes: dict[str, Any]) -> None:
    grant = a_grant("api", "https://a.example.com", **changes)
    plan = plan_gate([grant], Share())
    assert (plan.routes, plan.table.listeners, plan.grants) == ((), (), (grant,))


def test_a_run_is_not_told_where_the_run_cache_is() -> None:
    config = {"host": "cache.internal", "port": 6380, "prefix": "p:", "username": "u"}
    grant = a_grant("cache", "", type="cache", config=config, address="10.0.0.9")
    plan = plan_gate([grant], Share())
    (route,) = plan.routes
    assert (route.host, route.port, route.server_port) == ("run-cache", 6379, 6380)
    assert (route.address, route.is_platforms) == ("10.0.0.9", True)
    assert "internal" not in f"{plan.grants} {plan.table}"


def test_a_run_that_logs_in_at_the_cache_itself_knows_it() -> None:
    config = {"host": "cache.internal", "port": 6380, "prefix": "p:", "credentials": "inside"}
    grant = a_grant("cache", "", type="cache", config=config, address="10.0.0.9")
    (route,) = plan_gate([grant], Share()).routes
    assert (route.host, route.port, route.broker) == ("cache.internal", 6380, None)


def test_a_brokered_grant_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake(Broker):
        async def serve(self, inside: object, connect: object) -> None:
            """Do nothing."""

    broker = Fake()
    monkeypatch.setattr(module, "broker_of", lambda grant, _: broker if grant.name == "b" else None)
    plan = plan_gate(
        [a_grant("a", "https://a.example.com"), a_grant("b", "https://b.example.com")], Share()
    )
    plain, brokered = plan.grants
    assert (plain.secrets, plain.brokered) == (SECRETS, False)
    assert (brokered.secrets, brokered.brokered) == ({}, True)
    assert [route.broker for route in plan.routes] == [None, broker]


def test_hundreds_of_definitions_have_addresses_of_their_own() -> None:
    grants = [a_grant(f"d{number}", f"https://h{number}.example.com") for number in range(600)]
    places = led(grants)
    assert len(places) == 600 * 4
    assert ("127.77.2.100", 443) in places
    addresses = [ip_address(address) for address, _ in places]
    assert all(each.is_loopback or each in LOOPBACK_V6 for each in addresses)
