"""What is compared, with the context and without."""

import pytest

from bench.context.chains import CHAINS, CONTENDERS, OFF_LEVEL, STEPS, Contender, document, turns

FILE = "/somewhere/customer.address"


def test_both_modes_of_a_chain_come_one_after_the_other_and_the_first_changes() -> None:
    order = [one.name for _, one in turns(2)]
    assert order == [
        "plain-on", "plain-off", "query-on", "query-off", "sleep-on", "sleep-off",
        "plain-off", "plain-on", "query-off", "query-on", "sleep-off", "sleep-on",
    ]  # fmt: skip
    assert [number for number, _ in turns(2)] == [0] * 6 + [1] * 6


@pytest.mark.parametrize("chain", CHAINS)
def test_both_modes_have_as_many_steps_and_differ_in_the_level(chain: str) -> None:
    on, off = (document(Contender(chain, mode), FILE, STEPS) for mode in ("on", "off"))
    assert len(on["steps"]) == len(off["steps"]) == STEPS
    assert "isolation" not in on
    assert off["isolation"] == OFF_LEVEL
    assert "resources" not in off


def test_only_the_context_is_told_of_the_database_by_the_blueprint() -> None:
    on, off = (document(Contender("sleep", mode), FILE, 1) for mode in ("on", "off"))
    assert on["resources"]["shop"]["scope"] == "execution"
    assert on["steps"][0]["with"] == {"slow": True}
    assert off["steps"][0]["with"] == {"slow": True, "address_file": FILE}


def test_runs_open_a_connection_only_with_the_context_and_a_database() -> None:
    assert {name for name, one in CONTENDERS.items() if one.visits} == {"query-on", "sleep-on"}
