"""orchestrator.cli.support.source_locations: a failure's message leads to the line of what it is about."""

from pathlib import Path

import pytest

from executions.blueprints.reading import read
from orchestrator.cli.support.source_locations import SourceLocations

TEXT = """name: flow
steps:
  - key: one
    uses: work
    when: ${inputs.a}
    idempotency_key: ${inputs.b}
    with:
      values:
        x: ${inputs.c}
  - key: two
    uses: work
outputs:
  first: 1
  y: ${steps.one}
"""


@pytest.fixture
def places() -> SourceLocations:
    return SourceLocations(file=Path("flow.yaml"), source=read(TEXT))


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("when: '${inputs.a}' cannot be evaluated", 5),
        ("idempotency_key: '${inputs.b}' cannot be evaluated", 6),
        ("with.values.x: '${inputs.c}' cannot be evaluated", 9),
        ("values.x: '${inputs.c}' cannot be evaluated", 9),
        ("node work, parameter values: expected list", 8),
        ("node work, parameter values.x[2].z: expected list", 9),
        ("node work, parameter absent: missing", 3),
        ("KeyError in node work", 3),
        ("with: it is", 3),
        ("HTTP 500: no", 3),
        ("", 3),
    ],
)
def test_a_step_is_found_by_the_field_that_its_message_names(
    places: SourceLocations, message: str, line: int
) -> None:
    assert places.of_step(0, message) == f"flow.yaml:{line}"
    assert places.of_step(1, message) == "flow.yaml:10"


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("outputs.y: '${steps.one}' cannot", "flow.yaml:14"),
        ("outputs: too deep", "flow.yaml:12"),
        ("with.values.x: '${inputs.c}' cannot", ""),
        ("", ""),
    ],
)
def test_outputs_are_found_likewise(places: SourceLocations, message: str, place: str) -> None:
    assert places.of_outputs(message) == place
