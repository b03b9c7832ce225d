"""isolane.nodes: the built-in nodes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from isolane.node import default_registry
from isolane.results import Code, StepError
from isolane.testing import run_node


@pytest.mark.parametrize("name", ["data.map", "data.set", "flow.sleep", "human.approval"])
def test_built_in_nodes_say_what_they_are(name: str) -> None:
    node = default_registry.get(name)
    assert node is not None
    assert node.idempotent
    assert node.deterministic == name.startswith("data.")
    assert node.description().summary


def test_data_map_returns_its_values() -> None:
    values = {"a": 1, "b": [{"c": None}]}
    run = run_node("data.map", values=values)
    assert (run.output, run.variables) == (values, {})


def test_data_set_sets_variables_and_returns_them() -> None:
    values = {"a": 1, "b": [{"c": None}]}
    run = run_node("data.set", variables={"a": 0, "z": 9}, values=values)
    assert run.output == run.variables == values


def test_data_set_refuses_a_name_in_words_for_people() -> None:
    with pytest.raises(StepError, match="values: variable 'a b' does not match") as refused:
        run_node("data.set", values={"a b": 1})
    assert refused.value.code is Code.POLICY_VIOLATION


def test_flow_sleep_pauses_the_run() -> None:
    run = run_node("flow.sleep", seconds=90)
    assert (run.output, run.pause_s) == ({"seconds": 90.0}, 90.0)


def test_flow_sleep_pauses_until_a_time() -> None:
    moment = datetime.now(UTC) + timedelta(hours=1)
    run = run_node("flow.sleep", until=moment.isoformat().replace("+00:00", "Z"))
    assert 3590 < run.pause_s <= 3600
    assert run.output == {"seconds": run.pause_s}


def test_a_time_in_the_past_is_no_pause() -> None:
    run = run_node("flow.sleep", until="2020-01-01T00:00:00+02:00")
    assert (run.output, run.pause_s) == ({"seconds": 0.0}, 0.0)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, "give exactly one of seconds and until"),
        ({"seconds": 1, "until": "2030-01-01T00:00:00Z"}, "give exactly one"),
        ({"seconds": -1}, "parameter seconds: -1.0 is below 0"),
        ({"until": "tomorrow"}, "until 'tomorrow' is not a time in ISO 8601"),
        ({"until": "2030-01-01T00:00:00"}, "has no time zone; add Z"),
        ({"until": "9999-01-01T00:00:00Z"}, "is not between 0 and 31622400"),
    ],
)
def test_flow_sleep_says_what_is_wrong(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(StepError, match=f"flow.sleep.*{reason}") as refused:
        run_node("flow.sleep", **parameters)
    assert refused.value.code is Code.POLICY_VIOLATION


def test_human_approval_asks_for_a_week_and_has_no_output_yet() -> None:
    run = run_node("human.approval", prompt="Pay 12.50?")
    assert (run.question, run.pause_s, run.output) == ("Pay 12.50?", 7 * 86_400.0, None)


def test_human_approval_expires_when_the_step_says() -> None:
    assert run_node("human.approval", prompt="Pay?", expires_s=3_600).pause_s == 3_600.0


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"prompt": ""}, "parameter prompt: 0 characters, at least 1 are needed"),
        ({"prompt": " "}, "the question is empty"),
        ({"prompt": "x" * 2_001}, "parameter prompt: 2001 characters, at most 2000"),
        ({"prompt": "Pay?", "expires_s": 0}, "parameter expires_s: 0.0 is not above 0"),
        (
            {"prompt": "Pay?", "expires_s": 367 * 86_400},
            "parameter expires_s: 31708800.0 is above 31622400",
        ),
    ],
)
def test_human_approval_says_what_is_wrong(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(StepError, match=f"human.approval.*{reason}") as refused:
        run_node("human.approval", **parameters)
    assert refused.value.code is Code.POLICY_VIOLATION
