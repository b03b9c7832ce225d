"""Connections in the log of the customer's server."""

from pathlib import Path

from bench.context.visits import Record, Visits, found_in

FIRST, SECOND = (f"0198f3c2-0000-7000-8000-00000000000{number}" for number in (1, 2))
USUAL = "2026-01-01 UTC [7] shop_reader@shop [unknown] LOG:  connection"


def authorized(execution_id: str) -> str:
    by = f"user=shop_reader database=shop application_name=exec_{execution_id}/1/acme"
    return f"{USUAL} authorized: {by}\n"


def test_each_connection_is_counted_once_and_by_its_run() -> None:
    text = (
        f"{USUAL} received: host=127.0.0.1 port=1\n"
        + authorized(FIRST)
        + authorized(SECOND)
        + authorized(FIRST)
    )
    assert found_in(text) == Visits(connections=3, runs=2)


def test_connections_of_others_are_not_the_runs() -> None:
    line = f"{USUAL} authorized: user=shop_reader database=shop application_name=bench-global\n"
    assert found_in(line) == Visits(connections=0, runs=0)


def test_one_each_is_neither_more_nor_fewer() -> None:
    assert Visits(connections=2, runs=2).are_one_each(2)
    assert not Visits(connections=3, runs=2).are_one_each(2)
    assert not Visits(connections=2, runs=1).are_one_each(2)
    assert not Visits(connections=2, runs=2).are_one_each(3)


def test_a_record_begins_where_the_log_was(tmp_path: Path) -> None:
    log = tmp_path / "customer.log"
    log.write_text(authorized(FIRST))
    record = Record(log)
    with log.open("a") as file:
        file.write(authorized(SECOND))
    assert record.visits() == Visits(connections=1, runs=1)
