"""executions.blueprints.plan: every field of a document arrives, with its default where it is absent."""

from decimal import Decimal
from typing import Any

import pytest

from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.plan import FailureMode, Guarantee, Plan, PlannedStep, plan, plan_of
from isolane.limits import RunLimits

FULL: dict[str, Any] = {
    "name": "full",
    "inputs": {
        "properties": {"card": {"sensitive": True}, "id": {"sensitive": False}, "any": True}
    },
    "outputs": {"total": "${steps.pay.total}"},
    "isolation": "process",
    "express": True,
    "timeout": "2d",
    "budget": {"eur": 0.1, "tokens": 20000},
    "limits": {"cpu": 1, "ram_mb": 256.0, "processes": 16, "output_kb": 64},
    "labels": {"team": "billing"},
    "steps": [
        {
            "key": "pay",
            "uses": "shop.pay",
            "with": {"x": 1},
            "when": "${inputs.ok}",
            "on_failure": "retry",
            "retry": {"attempts": 5, "then": "recover"},
            "timeout": "1m",
            "guarantee": "exactly_once",
            "idempotency_key": "pay-${inputs.id}",
            "recover": {"uses": "data.map", "with": {"values": {}}},
            "sensitive": ["receipt"],
        },
        {"key": "last", "uses": "n", "sensitive": True},
    ],
}


def step(**fields: Any) -> PlannedStep:
    return plan({"name": "flow", "steps": [{"key": "a", "uses": "n", **fields}]}).steps[0]


def test_every_field_arrives() -> None:
    planned = plan(FULL)
    pay, last = planned.steps
    assert (planned.timeout_s, planned.express, planned.isolation) == (172800.0, True, "process")
    assert planned.outputs == {"total": "${steps.pay.total}"}
    assert planned.budget == {"eur": Decimal("0.1"), "tokens": Decimal(20000)}
    assert planned.limits == RunLimits(cpu=1.0, ram_mb=256, processes=16, output_kb=64)
    assert type(planned.limits.ram_mb) is int
    assert planned.labels == {"team": "billing"}
    assert planned.sensitive_inputs == {"card"}
    assert (pay.when, pay.timeout_s, pay.idempotency_key) == (
        "${inputs.ok}",
        60.0,
        "pay-${inputs.id}",
    )
    assert (pay.on_failure, pay.attempts, pay.then) == (FailureMode.RETRY, 5, FailureMode.RECOVER)
    assert pay.recover is not None
    assert (pay.recover.uses, pay.recover.parameters) == ("data.map", {"values": {}})
    assert pay.guarantee is Guarantee.EXACTLY_ONCE
    assert (pay.sensitive, last.sensitive) == (frozenset({"receipt"}), frozenset({"*"}))


def test_the_defaults() -> None:
    planned = plan({"name": "flow", "steps": [{"key": "a", "uses": "n"}]})
    assert planned == Plan(
        name="flow",
        steps=(PlannedStep(position=0, path="a", uses="n", parameters={}, timeout_s=30.0),),
    )
    assert planned.timeout_s == 1800.0


@pytest.mark.parametrize(
    ("fields", "attempts"),
    [
        ({}, 1),
        ({"on_failure": "continue"}, 1),
        ({"on_failure": "retry"}, 3),
        ({"on_failure": "retry", "retry": {"attempts": 7}}, 7),
        ({"on_failure": "retry", "retry": {}}, 3),
    ],
)
def test_a_step_is_tried_again_only_if_it_says_so(fields: dict[str, Any], attempts: int) -> None:
    assert step(**fields).attempts == attempts


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"name": "f", "steps": [{"key": "a", "uses": "n"}]}, False),
        ({"name": "f", "steps": [{"key": "a", "uses": "n", "sensitive": False}]}, False),
        ({"name": "f", "steps": [{"key": "a", "uses": "n", "sensitive": ["x"]}]}, True),
        (FULL, True),
    ],
)
def test_whether_anything_is_sensitive(document: dict[str, Any], expected: bool) -> None:
    assert plan(document).has_sensitive is expected


def test_the_way_through_the_steps() -> None:
    steps = [{"key": key, "uses": "n"} for key in ("a", "b", "c")]
    planned = plan({"name": "flow", "steps": steps})
    assert planned.step("b") is planned.steps[1]
    assert [planned.after(key) for key in ("a", "b", "c")] == ["b", "c", ""]
    assert planned.from_path("b") == planned.steps[1:]


def test_equal_content_is_planned_once() -> None:
    first = plan_of("hash of full", FULL)
    assert plan_of("hash of full", {**FULL}) is first
    assert plan_of("another hash", FULL) is not first
    assert first == plan(FULL)


@pytest.mark.parametrize("timeout", ["999ms", "8d", "1w", "soon"])
def test_a_run_has_a_second_to_a_week(timeout: str) -> None:
    with pytest.raises(InvalidBlueprint, match="between 1 s and 7 d") as refused:
        plan({"name": "flow", "timeout": timeout, "steps": []})
    assert refused.value.field == "$.timeout"
