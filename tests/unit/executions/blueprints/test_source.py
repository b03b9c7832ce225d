"""executions.blueprints.source: a refusal points at the author's line."""

import json

import pytest

from executions.blueprints.errors import BadReference, InvalidBlueprint
from executions.blueprints.reading import MAX_DOCUMENT_BYTES, read
from executions.blueprints.source import Source
from executions.blueprints.validation.rules import check_document
from foundation.errors import InvalidInput
from tests.unit.executions.blueprints.nodes import NODES

TEXT = """# a comment
name: flow
inputs:
  properties:
    id: {type: integer}
steps:
  - key: one
    uses: work
    with:
      list:
        - 1
        - text: >
            folded
            over lines
  - {key: two,
     uses: work}
"""


def test_every_part_has_the_line_of_its_key() -> None:
    assert read(TEXT).lines == {
        "$": 2,
        "$.name": 2,
        "$.inputs": 3,
        "$.inputs.properties": 4,
        "$.inputs.properties.id": 5,
        "$.inputs.properties.id.type": 5,
        "$.steps": 6,
        "$.steps[0]": 7,
        "$.steps[0].key": 7,
        "$.steps[0].uses": 8,
        "$.steps[0].with": 9,
        "$.steps[0].with.list": 10,
        "$.steps[0].with.list[0]": 11,
        "$.steps[0].with.list[1]": 12,
        "$.steps[0].with.list[1].text": 12,
        "$.steps[1]": 15,
        "$.steps[1].key": 15,
        "$.steps[1].uses": 16,
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.steps[1].uses", "line 16: no"),
        ("$.steps[1].with.absent[3].x", "line 15: no"),
        ("$.outputs.total", "line 2: no"),
        ("$", "line 2: no"),
        ("seed", "no"),
        (None, "no"),
    ],
)
def test_an_error_gets_the_line_of_the_nearest_part(path: str | None, expected: str) -> None:
    located = read(TEXT).locate(BadReference("no", field=path))
    assert (type(located), located.detail, located.field) == (BadReference, expected, path)
    assert located.line == (int(expected.split()[1].rstrip(":")) if "line" in expected else None)


def test_other_errors_pass() -> None:
    other = InvalidInput("no", field="$.name")
    with pytest.raises(InvalidInput) as passed, read(TEXT).located():
        raise other
    assert passed.value is other


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TEXT.replace("key: two", "key: one"),
            "line 15: $.steps[1].key: the key 'one' is also that of",
        ),
        (
            TEXT.replace("{key: two", "{kay: two"),
            "line 15: $.steps[1]: 'key' is a required property",
        ),
        (TEXT + "colour: red\n", "line 17: $.colour: there is no field 'colour' here"),
        (TEXT + "timeout: 8d\n", "line 17: $.timeout is '8d'"),
        (
            TEXT.replace("type: integer", "type: whole"),
            "line 5: $.inputs.properties.id.type does not fit JSON Schema: 'whole' is not valid",
        ),
        (
            TEXT.replace("  properties:\n", "  required: id\n  properties:\n"),
            "line 4: $.inputs.required does not fit JSON Schema: 'id' is not of type 'array'",
        ),
        (TEXT.replace("name: flow", "nmae: flow"), "line 2: "),
        ("[]", "line 1: $: [] is not of type 'object'"),
        ("", "$: None is not of type 'object'"),
    ],
)
def test_reading_refuses_with_the_line(text: str, expected: str) -> None:
    with pytest.raises(InvalidBlueprint) as refused:
        read(text)
    assert refused.value.detail.startswith(expected)


@pytest.mark.parametrize(
    ("text", "line"),
    [("name: f\nsteps: [", 2), ("name: f\nsteps: *them\n", 2), ("name: f\nsteps: 3\n", 2)],
)
def test_a_refusal_carries_the_line_beside_its_sentence(text: str, line: int) -> None:
    with pytest.raises(InvalidBlueprint) as refused:
        read(text)
    assert refused.value.line == line


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("limits:\n  cpu: 1\n  ram_mb: 12", "line 4: $.limits.ram_mb: 12 is less than the minimum"),
        ("limits:\n  cpu: much", "line 3: $.limits.cpu: 'much' is not of type 'number'"),
        (
            "limits:\n  cpus: 1",
            "line 3: $.limits.cpus: there is no field 'cpus' here; did you mean",
        ),
    ],
)
def test_a_wrong_limit_is_refused_with_its_line(written: str, expected: str) -> None:
    with pytest.raises(InvalidBlueprint) as refused:
        read(f"name: flow\n{written}\nsteps: [{{key: one, uses: work}}]\n")
    assert refused.value.detail.startswith(expected)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "     uses: work}",
            "     uses: wrok}",
            "line 16: $.steps[1].uses: there is no node 'wrok'",
        ),
        ("        - 1\n", "        - ${steps.two.x}\n", "line 11: $.steps[0].with.list[0]: "),
        (
            "            folded\n",
            "            ${inputs..x}\n",
            "line 12: $.steps[0].with.list[1].text: ",
        ),
        (
            "    uses: work\n",
            "    uses: ship\n",
            "line 10: $.steps[0].with.list: node ship has no parameter",
        ),
    ],
)
def test_checking_refuses_with_the_line(old: str, new: str, expected: str) -> None:
    source = read(TEXT.replace(old, new))
    with pytest.raises((InvalidBlueprint, BadReference)) as refused, source.located():
        check_document(source.document, NODES)
    assert refused.value.detail.startswith(expected)


def test_json_has_lines_too() -> None:
    document = read(TEXT).document
    assert read(json.dumps(document, indent=1)).document == document
    assert read(json.dumps(document, indent=1)).lines["$.steps[1].uses"] > 10


def test_a_long_key_over_many_values_does_not_multiply() -> None:
    values = "1," * 30_000
    text = (
        f"name: f\nsteps:\n- key: a\n  uses: n\n  with:\n    ? {'k' * 90_000}\n    : [{values}]\n"
    )
    assert len(text) < MAX_DOCUMENT_BYTES
    source: Source = read(text)
    assert sum(map(len, source.lines)) < 10_000
    check_document(source.document, NODES | {"n": NODES["work"]})
