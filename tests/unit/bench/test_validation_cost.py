"""Counted time is at least the measured CPU time, so 0.3 s of counted work take at most 0.3 s."""

import pytest

from bench.validation_cost import CASES, HARD_PATTERNS, count, worst

# Milliseconds of CPU, as measured with `python -m bench.validation_cost`.
MEASURED = {
    "items, any": 13.5, "items, type": 23.8, "items, errors": 50.8, "contains": 28.0, "propertyNames": 20.4,
    "additionalProperties": 15.2, "additionalProperties: false": 3.2, "properties": 13.9, "required, missing": 17.5,
    "dependentRequired": 19.7, "allOf": 13.5, "anyOf, none": 61.4, "oneOf, none": 78.2, "not": 55.8, "if": 69.4,
    "$ref": 58.7, "$ref, doubled": 25.9, "enum, numbers": 46.4, "enum, objects": 7.8, "const": 28.2,
    "uniqueItems": 26.5, "uniqueItems, floats": 58.0, "uniqueItems, objects": 7.4, "messages": 12.9, "rows": 38.7,
    "patterns, short texts": 33.4, "patternProperties": 20.7, "pattern, compiled": 26.8,
}  # fmt: skip
MEASURED_WORST = {"(?:a?){900}b": 117.9, "(a?b?){320}c": 111.6, "a[ab]{20}c": 30.2}
UNITS = 100_000  # in a millisecond


def test_every_case_is_measured() -> None:
    assert set(MEASURED) == set(CASES)
    assert set(MEASURED_WORST) == set(HARD_PATTERNS)


@pytest.mark.parametrize("case", ["anyOf, none", "$ref, doubled", "rows", "uniqueItems, objects"])
def test_a_validation_is_not_priced_too_low(case: str) -> None:
    counted = count(*CASES[case]) / UNITS
    assert MEASURED[case] <= counted <= 4 * MEASURED[case]


@pytest.mark.parametrize("case", MEASURED_WORST)
def test_the_worst_of_a_pattern_is_not_priced_too_low(case: str) -> None:
    assert worst(*HARD_PATTERNS[case]) / UNITS >= MEASURED_WORST[case]
