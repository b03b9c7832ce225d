"""Many requests of one caller wait for each other."""

from orchestrator.web.connections import ClientConnection
from orchestrator.web.fair_queue import FairQueue
from orchestrator.web.traffic import Traffic
from tests.unit.orchestrator.web.peers import Clock, FakePeer, limits


def connections(addresses: str) -> list[ClientConnection]:
    traffic = Traffic(limits(connections=99), Clock())
    return [FakePeer(traffic, address).connection for address in addresses]


def filled(waiting: list[ClientConnection]) -> FairQueue:
    queue = FairQueue()
    for connection in waiting:
        queue.add(connection)
    return queue


def drained(queue: FairQueue) -> list[ClientConnection]:
    return list(iter(lambda: queue.take(lambda caller: True), None))


def test_callers_take_turns_and_each_is_served_in_order() -> None:
    waiting = connections("aaaabcb")
    taken = drained(filled(waiting))
    assert "".join(one.caller for one in taken) == "abcabaa"
    for caller in "abc":
        order = [one for one in waiting if one.caller == caller]
        assert [one for one in taken if one.caller == caller] == order


def test_many_addresses_of_one_caller_take_turns_as_one() -> None:
    traffic = Traffic(limits(connections=99), Clock())
    strangers = [FakePeer(traffic, address, caller="x").connection for address in "abcda"]
    tenant = [FakePeer(traffic, "a", caller="y").connection for _ in range(2)]
    queue = filled([*strangers, *tenant])
    assert queue.last_of_most() is strangers[4]
    taken = drained(queue)
    assert "".join(one.caller for one in taken) == "xyxyxxx"
    assert "".join(one.address for one in taken if one.caller == "x") == "abcda"


def test_who_left_is_not_served() -> None:
    first, second, other = connections("aab")
    queue = filled([first, second, other])
    queue.discard(first)
    queue.discard(first)
    assert len(queue) == 2
    assert drained(queue) == [second, other]
    assert len(queue) == 0


def test_the_last_of_the_greatest_crowd_is_refused_first() -> None:
    waiting = connections("abbbc")
    assert filled(waiting).last_of_most() is waiting[3]
    assert FairQueue().last_of_most() is None


def test_who_may_not_is_passed_over() -> None:
    first, other = connections("ab")
    queue = filled([first, other])
    assert queue.take(lambda caller: caller != "a") is other
    assert queue.take(lambda caller: caller != "a") is None
    assert len(queue) == 1
