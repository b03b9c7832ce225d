"""The chains with the context and without it."""

import pytest

from bench.context.chains import (
    BASELINES,
    CONTENDERS,
    OFF_LEVEL,
    STEPS,
    Contender,
    document,
    turns,
)

FILE = "/somewhere/customer.address"


def test_the_modes_of_a_chain_come_in_a_row_and_in_reverse_every_second_round() -> None:
    order = [one.name for _, one in turns(2)]
    assert order == [
        "plain-on", "plain-off", "query-on", "query-off", "query-kept", "sleep-on", "sleep-off", "sleep-kept",
        "plain-off", "plain-on", "query-kept", "query-off", "query-on", "sleep-kept", "sleep-off", "sleep-on",
    ]  # fmt: skip
    assert [number for number, _ in turns(2)] == [0] * 8 + [1] * 8
    assert set(order) == set(CONTENDERS)


@pytest.mark.parametrize(
    ("chain", "mode"), [(chain, mode) for chain in BASELINES for mode in BASELINES[chain]]
)
def test_all_modes_have_as_many_steps_and_differ_in_the_level(chain: str, mode: str) -> None:
    on, off = (document(Contender(chain, mode), FILE, STEPS) for mode in ("on", mode))
    assert len(on["steps"]) == len(off["steps"]) == STEPS
    assert "isolation" not in on
    assert off["isolation"] == OFF_LEVEL
    assert "resources" not in off


def test_only_with_the_context_a_blueprint_declares_the_database() -> None:
    on, kept = (document(Contender("sleep", mode), FILE, 1) for mode in ("on", "kept"))
    assert on["resources"]["shop"]["scope"] == "execution"
    assert on["steps"][0]["with"] == {"slow": True}
    assert kept["steps"][0]["with"] == {"slow": True, "address_file": FILE}


def test_without_the_context_the_first_step_opens_a_connection_and_the_last_one_closes_it() -> None:
    steps = document(Contender("query", "off"), FILE, 3)["steps"]
    ends = [(step["with"]["is_first"], step["with"]["is_last"]) for step in steps]
    assert ends == [(True, False), (False, False), (False, True)]


def test_the_connections_of_runs_with_a_context_and_a_database_are_counted() -> None:
    assert {name for name, one in CONTENDERS.items() if one.visits} == {"query-on", "sleep-on"}
