"""isolane.nodes.resources: a resource is tried out."""

import time

import pytest

from isolane.names import RESOURCE_ID
from isolane.node import default_registry
from isolane.results import Code, StepError
from isolane.testing import run_node
from tests.recorder import Recorder
from tests.unit.isolane.providers.grants import http_grant, model_grant
from tests.waiting import wait_for


def test_the_node_takes_a_resource_of_any_type() -> None:
    node = default_registry.get("resources.check")
    assert node is not None
    properties = node.description().parameters["properties"]
    assert properties["resource"] == {"type": "string", "resource": ""}


def test_a_resource_is_opened_asked_and_closed(recorder: Recorder) -> None:
    grant = http_grant(recorder.url)
    output = run_node("resources.check", resources={"shop": grant}, resource="shop").output
    assert RESOURCE_ID.fullmatch(output["resource_id"])
    assert (output["type"], output["said"]) == ("http_api", {"status": 200})
    assert len(recorder.requests) == 1
    wait_for(lambda: not recorder.open_ports, "the end of the connection")


def test_it_is_held_as_long_as_the_step_says() -> None:
    grant = model_grant(provider="echo")
    began = time.monotonic()
    run_node("resources.check", resources={"m": grant}, resource="m", hold_s=0.2)
    assert time.monotonic() - began >= 0.2


def test_a_cancelled_step_holds_nothing() -> None:
    grant = model_grant(provider="echo")
    began = time.monotonic()
    run_node("resources.check", cancelled=True, resources={"m": grant}, resource="m", hold_s=30)
    assert time.monotonic() - began < 10


def test_an_undeclared_resource_is_refused() -> None:
    with pytest.raises(StepError, match="'other' is not declared") as refused:
        run_node("resources.check", resources={}, resource="other")
    assert refused.value.code is Code.POLICY_VIOLATION
