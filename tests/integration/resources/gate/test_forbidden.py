"""No way leads a run to anything that it has not declared: forbidden targets listen, and count."""

from typing import Any

import pytest

from isolane.results import Code
from tests.customer import Customer
from tests.integration.isolane.gate.forbidden_ways.way import was_reached
from tests.integration.isolane.gate.forbidden_ways.ways import ALONE, BARE, BROKERED
from tests.integration.resources.gate.sandboxes import SECRET
from tests.own_network import run_in_own_network
from tests.requirements import give_up

HOST = "tests.integration.resources.gate.forbidden_host"
ENOUGH = 40
NOTHING: dict[str, list[str]] = {"connections": [], "attempts": [], "names": []}


@pytest.fixture(scope="module")
def told(customer: Customer) -> Any:
    """All that happened, in one network of its own."""
    given = {
        "together": list(BARE | BROKERED),
        "alone": list(ALONE),
        "postgres": {"host": str(customer.sockets), "port": customer.port},
        "dbname": customer.dbname,
        "user": customer.reader.user,
        "password": customer.reader.password,
    }
    found = run_in_own_network(f"{HOST}:try_everything", given)
    assert found["interfaces"] == ["lo"]  # so that no packet leaves the machine
    if reason := found["returned"].get("unavailable"):
        give_up(f"the level process is not available: {reason}")
    return found["returned"]


def counted(part: Any) -> dict[str, list[str]]:
    return {name: part[name] for name in NOTHING}


def test_nothing_forbidden_is_reached(told: Any, customer: Customer) -> None:
    ways = told["ways"]["returned"]
    first = ways["together"]
    assert first["status"] == "succeeded", first
    assert set(first["output"]) == set(BARE | BROKERED)
    assert len(first["output"]) >= ENOUGH
    assert {name: end for name, end in first["output"].items() if was_reached(end)} == {}
    for end in ways["alone"]:  # frames that no forwarder sends end the run
        if end["status"] == "succeeded":
            assert not any(map(was_reached, end["output"].values())), end
        else:
            assert end["code"] == Code.POLICY_VIOLATION, end
    assert counted(told["ways"]) == NOTHING
    assert ways["hosts"] == ["api.example.com"]
    # What is declared was reached all the time.
    assert ways["uses"] == [[f"Bearer {SECRET}", customer.reader.user, ["value"]]] * 2


def test_a_name_that_leads_elsewhere_later_changes_nothing(told: Any) -> None:
    rebound = told["rebound"]
    assert rebound["returned"] == {"answer": 200, "requests": 1, "later": "address_refused"}
    assert rebound["connections"] == []
    assert [one for one in rebound["attempts"] if one.startswith("tcp")] == []
    assert set(rebound["names"]) == {"api.example.com"}  # when placements open, and never later


def test_an_address_that_is_no_longer_allowed_is_refused_and_recorded(told: Any) -> None:
    closed = told["closed"]["returned"]
    assert closed["answer"]["status"] is None
    assert "its address is not allowed" in closed["answer"]["told"], closed
    assert closed["reasons"] == ["address_refused"]
    assert counted(told["closed"]) == NOTHING


def test_redirects_lead_nowhere_else(told: Any) -> None:
    assert told["redirects"]["returned"] == ["POLICY_VIOLATION"] * 2
    assert counted(told["redirects"]) == NOTHING


def test_a_gate_that_does_not_check_would_be_noticed(told: Any) -> None:
    unchecked = told["unchecked"]
    assert "reached a forbidden target" in unchecked["returned"]["told"]
    assert unchecked["connections"] == unchecked["attempts"] == ["tcp 10.66.0.1:80"]
