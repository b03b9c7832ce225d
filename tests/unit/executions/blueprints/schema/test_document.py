"""executions.blueprints.schema.document: published documents, and the place and reason in a refusal."""

import json
from typing import Any

import pytest

from executions.blueprints.errors import InvalidBlueprint
from executions.blueprints.plan import plan
from executions.blueprints.reading import MAX_DOCUMENT_BYTES, parse
from executions.blueprints.schema.document import check, content_hash

TEXT = """
name: invoice-sync
description: Fetches and pays
inputs: {type: object, required: [invoice], properties: {invoice: {type: integer}}}
steps:
  - {key: fetch, uses: invoices.fetch, with: {id: "${inputs.invoice}"}, timeout: 500ms}
  - {key: pay, uses: http.request}
"""


def with_steps(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "flow", "steps": list(steps), **more}


def test_a_document_becomes_a_plan() -> None:
    planned = plan(parse(TEXT))
    assert planned.name == "invoice-sync"
    fetch, pay = planned.steps
    assert (fetch.position, fetch.path, fetch.uses) == (0, "fetch", "invoices.fetch")
    assert (fetch.parameters, fetch.timeout_s) == ({"id": "${inputs.invoice}"}, 0.5)
    assert (pay.position, pay.parameters, pay.timeout_s) == (1, {}, 30.0)
    assert (planned.after("fetch"), planned.after("pay")) == ("pay", "")
    assert planned.from_path("pay") == (pay,)


def test_json_is_yaml() -> None:
    assert parse(json.dumps(parse(TEXT))) == parse(TEXT)


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], "$"),
        ({"steps": [{"key": "a", "uses": "n"}]}, "$"),
        (with_steps(), "$.steps"),
        (with_steps({"key": "a", "uses": "n"}, name="Not This"), "$.name"),
        (with_steps({"key": "a", "uses": "n"}, name="nl\n"), "$.name"),
        (with_steps({"key": "a\n", "uses": "n"}), "$.steps[0].key"),
        (with_steps({"key": "a", "uses": "n"}, colour="red"), "$.colour"),
        (with_steps({"key": "a"}), "$.steps[0]"),
        (with_steps({"key": "a", "uses": ""}), "$.steps[0].uses"),
        (with_steps({"key": "a", "uses": "n"}, {"key": "1", "uses": "n"}), "$.steps[1].key"),
        (with_steps({"key": "a", "uses": "n", "with": []}), "$.steps[0].with"),
        (with_steps({"key": "a", "uses": "n", "retries": 3}), "$.steps[0].retries"),
        (with_steps({"key": "a", "uses": "n"}, {"key": "a", "uses": "n"}), "$.steps[1].key"),
        (with_steps({"key": "a", "uses": "n"}, inputs={"type": "no type"}), "$.inputs.type"),
    ],
)
def test_a_refusal_names_the_place(document: Any, where: str) -> None:
    with pytest.raises(InvalidBlueprint) as refused:
        check(document)
    assert refused.value.field == where
    assert where in refused.value.detail


@pytest.mark.parametrize(
    "timeout", ["", "5", "0s", "-1s", "1 s", "2d", "1s\n", "٣s", "9ms", "24.1h", "9" * 400 + "h"]
)
def test_a_timeout_that_is_no_duration(timeout: str) -> None:
    document = with_steps({"key": "a", "uses": "n"}, {"key": "b", "uses": "n", "timeout": timeout})
    with pytest.raises(InvalidBlueprint, match=r"500ms, 30s.* between 10 ms and 24 h") as refused:
        check(document)
    assert refused.value.field == "$.steps[1].timeout"


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [("250ms", 0.25), ("1.5s", 1.5), ("2m", 120), ("24h", 86400), ("1d", 86400), ("10ms", 0.01)],
)
def test_durations(timeout: str, seconds: float) -> None:
    planned = plan(with_steps({"key": "a", "uses": "n", "timeout": timeout}))
    assert planned.steps[0].timeout_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [", "Line 1 is not YAML"),
        ("name: x\nsteps: }\n", "Line 2 is not YAML"),
        ("name: !!python/name:os.system x", "not YAML"),
        ("name: &a x\nsteps: *a", "line 2: .*aliases"),
        ("[" * 200_000, "deeper than 50 levels"),
        ("{a: " * 50_000, "deeper than 50 levels"),
        ("name: a\nsteps: []\nname: b\n", "Line 3 .* a key that its mapping already has"),
        ("name: a\nsteps: [{1: x, '1': y}]", "Line 2 .* already has"),
        ("name: a\n? [b]\n: c", "Line 2 .* neither text nor number"),
        ("name: " + "9" * 5000, "Line 1 .* a number of more than 400 characters"),
        ("name: " + ":".join(["1"] * 1000), "Line 1 .* a number of more than 400 characters"),
        ("name: !!int abc", "a value does not fit its tag"),
        ("name: !!timestamp abc", "Line 1 .* a date"),
        ("name: a\nx: 2026-13-45", "Line 2 .* a date.* in quotes"),
        ("name: a\nx: .inf", "Line 2 .* a number without end"),
        ("name: a\nx: 1e400", "Line 2 .* a number without end"),
        ("name: a\nx: [" + "1," * 120_000 + "]", "line 2: .* more than 40000 keys and values"),
        ("name: " + "x" * MAX_DOCUMENT_BYTES, "larger than 256 KiB"),
    ],
)
def test_text_that_is_refused_before_it_is_a_document(text: str, expected: str) -> None:
    with pytest.raises(InvalidBlueprint, match=expected):
        parse(text)


@pytest.mark.parametrize("value", ["2026-01-31", ".inf", ".nan", '"\\0"', "!!binary aGk="])
def test_what_yaml_knows_and_json_does_not_is_refused(value: str) -> None:
    with pytest.raises(InvalidBlueprint, match="JSON"):
        parse(f"name: flow\nsteps: [{{key: a, uses: n, with: {{x: {value}}}}}]")


@pytest.mark.parametrize(
    ("text", "number"), [("1e300", 1e300), ("1e-7", 1e-7), ("-1E+3", -1000.0), ("0.5e1", 5.0)]
)
def test_a_number_with_an_exponent_is_a_number(text: str, number: float) -> None:
    document = parse(f"name: flow\nsteps: [{{key: a, uses: n, with: {{x: {text}}}}}]")
    assert document["steps"][0]["with"] == {"x": number}


@pytest.mark.parametrize("text", ["e3", "1e", "1e3s", "01e3", "1_0e3", "+1e3"])
def test_what_json_does_not_take_as_a_number_stays_text(text: str) -> None:
    document = parse(f"name: flow\nsteps: [{{key: a, uses: n, with: {{x: {text}}}}}]")
    assert document["steps"][0]["with"] == {"x": text}


def test_a_thousand_steps_with_all_their_fields_can_be_read() -> None:
    step = (
        "- key: step{0}\n  uses: nodes.work\n  with: {{a: '${{inputs.a}}', b: {0}}}\n  when: ${{inputs.a}}\n"
        "  on_failure: retry\n  retry: {{attempts: 5, then: continue}}\n  timeout: 5s\n"
        "  guarantee: best_effort\n  idempotency_key: k{0}\n  sensitive: [a]\n"
    )
    steps = "".join(step.format(number) for number in range(1000))
    assert len(parse(f"name: flow\nsteps:\n{steps}")["steps"]) == 1000


def test_keys_become_text_as_in_json() -> None:
    document = parse("name: flow\nsteps: [{key: a, uses: n, with: {1: one, b: two}}]")
    assert plan(document).steps[0].parameters == {"1": "one", "b": "two"}


def test_the_hash_is_of_the_content_not_of_its_order() -> None:
    step = {"key": "a", "uses": "n", "with": {"x": 1, "y": "é"}}
    turned = dict(reversed([*step.items()]))
    assert content_hash(with_steps(step)) == content_hash(
        dict(reversed(with_steps(turned).items()))
    )
    assert content_hash(with_steps(step)) != content_hash(with_steps({**step, "uses": "m"}))


def test_a_refusal_does_not_quote_whole_values() -> None:
    steps = [{"key": f"a{number}", "uses": "n"} for number in range(1001)]
    with pytest.raises(InvalidBlueprint) as refused:
        check(with_steps(*steps))
    assert refused.value.field == "$.steps"
    assert len(refused.value.detail) < 250
