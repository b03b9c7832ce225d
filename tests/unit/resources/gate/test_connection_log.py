"""resources.gate.connection_log: the first records of a placement are kept, all others counted."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from resources.gate.connection_log import (
    HOST_MAX,
    MAX_CONNECTIONS,
    MAX_REFUSALS,
    MAX_SAME_REFUSALS,
    ConnectionLog,
    NumberedRecord,
    OmittedConnections,
)
from resources.gate.record import ConnectionReason, ConnectionRecord
from tests.connections import NOON, a_connection, a_refusal

MOMENT = timedelta(microseconds=1)
LATER = NOON + timedelta(seconds=1)

THREADS = 4
EACH = 300


@pytest.fixture
def log() -> ConnectionLog:
    return ConnectionLog()


def take(log: ConnectionLog, *, are_last: bool = False) -> Sequence[NumberedRecord]:
    with log.taken(are_last=are_last) as records:
        return records


def contents(records: Sequence[NumberedRecord]) -> list[ConnectionRecord | OmittedConnections]:
    return [numbered.record for numbered in records]


def test_what_is_added_is_taken_once_in_order_and_numbered(log: ConnectionLog) -> None:
    added = [a_connection(), a_refusal(), a_connection("other.example.com")]
    for record in added[:2]:
        log.add(record)
    first = take(log)
    log.add(added[2])
    second = take(log)
    assert contents([*first, *second]) == added
    assert [numbered.number for numbered in (*first, *second)] == [1, 2, 3]
    assert take(log) == take(log, are_last=True) == []


def test_the_last_fault_is_known_and_the_last_one_of_which_its_program_was_not_told(
    log: ConnectionLog,
) -> None:
    untold = a_refusal(reason=ConnectionReason.CONNECTIONS, has_broker=True)
    told = replace(a_refusal(reason=ConnectionReason.LOGIN, has_broker=True), at=LATER)
    assert log.fault_since(untold.at, untold=False) is None
    for record in (untold, told, replace(a_connection(), at=LATER + MOMENT)):
        log.add(record)
    take(log)
    assert log.fault_since(untold.at, untold=False) == told
    assert log.fault_since(untold.at, untold=True) == untold
    assert log.fault_since(untold.at + MOMENT, untold=False) == told
    assert log.fault_since(untold.at + MOMENT, untold=True) is None
    assert log.fault_since(told.at + MOMENT, untold=False) is None


@pytest.mark.parametrize(
    ("reason", "has_broker", "is_fault", "is_told"),
    [
        (ConnectionReason.CLOSED, True, False, True),
        (ConnectionReason.RESET, False, False, False),
        (ConnectionReason.RUN_ENDED, False, False, False),
        (ConnectionReason.SERVER_RESET, False, True, False),
        (ConnectionReason.UNREACHABLE, False, True, False),
        (ConnectionReason.UNREACHABLE, True, True, True),
        (ConnectionReason.CERTIFICATE, True, True, True),
        (ConnectionReason.NOT_DECLARED, False, True, False),
        (ConnectionReason.IDLE, True, True, False),
    ],
)
def test_which_reasons_are_faults_and_which_a_broker_tells(
    reason: ConnectionReason, *, has_broker: bool, is_fault: bool, is_told: bool
) -> None:
    record = a_connection(reason=reason, has_broker=has_broker)
    assert (record.is_fault, record.is_told) == (is_fault, is_told)


def test_what_was_not_written_comes_first_again_with_its_number(log: ConnectionLog) -> None:
    log.add(a_connection("a"))

    def fail() -> None:
        with log.taken():
            log.add(a_connection("b"))
            raise OSError("away")

    with pytest.raises(OSError, match="away"):
        fail()
    assert take(log) == [NumberedRecord(1, a_connection("a")), NumberedRecord(2, a_connection("b"))]


def test_one_writer_at_a_time(log: ConnectionLog) -> None:
    """The last records of a placement must not overtake those that another thread is writing."""
    log.add(a_connection())
    begun = threading.Event()

    def take_last() -> Sequence[NumberedRecord]:
        begun.set()
        return take(log, are_last=True)

    with ThreadPoolExecutor(1) as threads:
        with log.taken():
            last = threads.submit(take_last)
            assert begun.wait(10)
            log.add(a_refusal())
            assert not last.done()
        assert contents(last.result(10)) == [a_refusal()]


# --- bounds
def test_only_the_first_are_kept_and_the_last_take_counts_the_others(log: ConnectionLog) -> None:
    for number in range(MAX_CONNECTIONS + 7):
        log.add(a_connection(f"c{number}"))
    assert len(take(log)) == MAX_CONNECTIONS
    log.add(replace(a_connection(), sent=5, received=1))
    log.add(replace(a_connection(), sent=7))
    assert take(log) == []
    carried = {"sent": 7 * a_connection().sent + 12, "received": 7 * a_connection().received + 1}
    all_of_them = OmittedConnections(closed=9, refused=0, **carried)
    omitted = NumberedRecord(MAX_CONNECTIONS + 1, all_of_them)
    assert take(log, are_last=True) == [omitted]
    assert take(log, are_last=True) == []


def test_connections_and_refusals_leave_room_for_each_other(log: ConnectionLog) -> None:
    for number in range(MAX_CONNECTIONS + 1):
        log.add(a_connection(f"c{number}", sent=0, received=0))
        log.add(a_refusal(f"r{number}"))
    *kept, omitted = contents(take(log, are_last=True))
    assert omitted == OmittedConnections(closed=1, refused=MAX_CONNECTIONS + 1 - MAX_REFUSALS)
    refusals = [one for one in kept if isinstance(one, ConnectionRecord) and one.is_refusal]
    assert (len(kept), len(refusals)) == (MAX_CONNECTIONS + MAX_REFUSALS, MAX_REFUSALS)


def test_the_same_refusal_is_kept_a_few_times(log: ConnectionLog) -> None:
    others = [
        a_refusal("other"),
        a_refusal(port=80),
        a_refusal(reason=ConnectionReason.CONNECTIONS),
    ]
    for record in [a_refusal()] * 50 + others:
        log.add(record)
    for _ in range(10):
        log.add(a_connection())
    assert contents(take(log, are_last=True)) == [
        *[a_refusal()] * MAX_SAME_REFUSALS,
        *others,
        *[a_connection()] * 10,
        OmittedConnections(closed=0, refused=50 - MAX_SAME_REFUSALS),
    ]


def test_what_is_not_kept_takes_no_memory(log: ConnectionLog) -> None:
    for number in range(10 * MAX_CONNECTIONS):
        log.add(a_refusal(f"r{number}"))
        log.add(a_connection())
    assert len(log._same_refusals) == MAX_REFUSALS
    assert len(log._unwritten) == MAX_CONNECTIONS + MAX_REFUSALS


def test_a_count_that_was_not_written_comes_again_once(log: ConnectionLog) -> None:
    for _ in range(MAX_SAME_REFUSALS + 1):
        log.add(a_refusal())
    with pytest.raises(OSError, match="away"), log.taken(are_last=True):
        raise OSError("away")
    kept = take(log, are_last=True)
    assert contents(kept)[MAX_SAME_REFUSALS:] == [OmittedConnections(closed=0, refused=1)]
    assert [numbered.number for numbered in kept] == list(range(1, MAX_SAME_REFUSALS + 2))


@pytest.mark.parametrize(
    ("host", "kept"),
    [
        ("münchen.example", "münchen.example"),
        ("a" * 300, "a" * (HOST_MAX - 1) + "…"),
        ("a\x00b\ud800c", "a\ufffdb?c"),
        ("\x1b[2Jevil was fine.\nThe run", "\ufffd[2Jevil\ufffdwas\ufffdfine.\ufffdThe\ufffdrun"),
    ],
)
def test_a_host_is_bounded_and_can_be_stored_and_shown(
    log: ConnectionLog, host: str, kept: str
) -> None:
    log.add(a_refusal(host))
    assert contents(take(log)) == [a_refusal(kept)]


def test_threads_may_add_while_others_take(log: ConnectionLog) -> None:
    def add() -> None:
        for _ in range(EACH):
            log.add(a_connection())

    taken: list[NumberedRecord] = []
    with ThreadPoolExecutor(THREADS) as threads:
        adding = [threads.submit(add) for _ in range(THREADS)]
        while not all(future.done() for future in adding):
            taken += take(log)
    taken += take(log, are_last=True)
    assert [numbered.number for numbered in taken] == list(range(1, MAX_CONNECTIONS + 2))
    assert taken[-1].record == OmittedConnections(
        closed=THREADS * EACH - MAX_CONNECTIONS, refused=0
    )
