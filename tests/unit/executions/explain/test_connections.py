"""executions.explain.connections: every reason has a plain phrase."""

from dataclasses import replace

from executions.explain.connections import REASONS, describe_record
from executions.explain.events import describe_event
from resources.gate.record import ConnectionReason
from tests.connections import a_connection, a_refusal


def test_every_reason_has_a_phrase_of_its_own() -> None:
    assert list(REASONS) == list(ConnectionReason)
    assert len(set(REASONS.values())) == len(ConnectionReason)
    assert not {reason.value for reason in ConnectionReason} & set(REASONS.values())


def test_every_reason_of_a_refusal_is_told() -> None:
    for reason in ConnectionReason:
        told = describe_event("connection.refused", "", {"port": 1, "reason": reason.value})
        assert told == f"A connection to port 1 was refused: {REASONS[reason]}."


def test_a_record_is_told_as_its_event_but_for_its_figures() -> None:
    refused = a_refusal(reason=ConnectionReason.CONNECTIONS, port=5432, definition="shop")
    assert describe_record(refused) == (
        f"A connection to {refused.host}:5432 (shop) was refused: {REASONS['connections']}"
    )
    ended = replace(a_connection(), reason=ConnectionReason.IDLE)
    assert describe_record(ended).endswith(f" ended, since {REASONS['idle']}")


def test_a_reason_without_a_phrase_stands_for_itself() -> None:
    told = describe_event("connection.closed", "", {"host": "a", "port": 1, "reason": "odd"})
    assert told == "A connection to a:1 ended, since odd."


def test_what_is_not_listed_tells_how_much_it_carried() -> None:
    data = {"closed": 2, "refused": 1, "sent": 3000, "received": 0}
    told = describe_event("connection.omitted", "", data)
    assert told == (
        "Not listed one by one: 2 connections and 1 refusal more: 3 kB sent, 0 bytes received."
    )
    told = describe_event("connection.omitted", "", {"closed": 0, "refused": 3, "sent": 0})
    assert told == "Not listed one by one: 3 refusals more."
