"""The ways to what is forbidden are real, and what they reach is noticed."""

from typing import Any

from tests.integration.isolane.gate.forbidden_ways.addresses import ADDRESSES
from tests.integration.isolane.gate.forbidden_ways.names import UNDECLARED
from tests.integration.isolane.gate.forbidden_ways.way import was_reached
from tests.integration.isolane.gate.forbidden_ways.ways import BARE
from tests.own_network import run_in_own_network
from tests.requirements import give_up

HOST = "tests.integration.isolane.gate.forbidden_host"
FACTS: dict[str, Any] = {
    "http": {"host": "127.0.0.2", "port": 8443},
    "database": {"host": "127.0.0.3", "port": 5433, "user": "shop", "dbname": "shop"},
    "cache": {"host": "127.0.0.4", "port": 6380},
}
FEW = ["connect_10.66.0.1", "connect_fd00:ec2::254", "spelled_decimal", "ask_outside"]
# What needs no more than a network that is open; some of the other ways would also leave the test's own network.
OPEN = [
    *ADDRESSES, "ask_inside", "ask_inside_by_tcp", "ask_stub", "ask_outside", "ask_outside_by_tcp", "make_netlink",
    "make_packet", "make_raw_icmp", "datagram_to_metadata", "datagram_to_private", "datagram_by_ipv6",
]  # fmt: skip
# Not reached even so: no address to the C library, none that TCP takes, and no such device.
NOWHERE = {
    "spelled_multicast", "spelled_broadcast", "spelled_trailing_dot", "spelled_with_blank", "named_device",
}  # fmt: skip


def tried_in_a_sandbox(given: dict[str, Any], kind: str = "as we are") -> Any:
    told = run_in_own_network(f"{HOST}:in_a_sandbox", given | {"facts": FACTS}, kind=kind)
    if reason := told["returned"].get("unavailable"):
        give_up(f"the level process is not available: {reason}")
    return told


def test_a_sandbox_of_an_ordinary_user_without_routes_leads_nowhere() -> None:
    told = tried_in_a_sandbox({"names": list(BARE)}, "ordinary user")
    ends = told["returned"]["ends"]
    assert ends["status"] == "succeeded", ends
    assert set(ends["output"]) == set(BARE)
    assert {name: end for name, end in ends["output"].items() if was_reached(end)} == {}
    assert (told["connections"], told["attempts"], told["names"]) == ({}, {}, [])


def test_without_a_sandbox_the_ways_reach_their_targets() -> None:
    given = {"names": OPEN, "facts": FACTS, "known_names": UNDECLARED}
    told = run_in_own_network(f"{HOST}:directly", given)
    missed = {name: end for name, end in told["returned"].items() if not was_reached(end)}
    assert set(missed) == NOWHERE, missed


def test_a_leak_of_a_sandbox_is_noticed_and_counted() -> None:
    told = tried_in_a_sandbox({"names": FEW, "without": ["net"]})
    output = told["returned"]["ends"]["output"]
    assert [name for name, end in output.items() if was_reached(end)] == FEW[:3]
    counted = ["tcp 10.66.0.1:80", "tcp 169.254.169.254:80", "tcp [fd00:ec2::254]:80"]
    assert sorted(told["connections"]) == counted
    assert told["names"] == [UNDECLARED[0]]
