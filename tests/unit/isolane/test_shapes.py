"""isolane.shapes: a parameter that names a resource says so."""

from typing import Annotated, Any

import pytest

from isolane.shapes import Limits, ShapeError, Uses, build, schema_of


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Annotated[str, Uses("http_api")], {"type": "string", "resource": "http_api"}),
        (Annotated[str, Uses()], {"type": "string", "resource": ""}),
        (
            Annotated[str, Uses("cache"), Limits(max_length=3)],
            {"type": "string", "resource": "cache", "maxLength": 3},
        ),
        (
            Annotated[str, Uses("cache")] | None,
            {"anyOf": [{"type": "string", "resource": "cache"}, {"type": "null"}]},
        ),
    ],
)
def test_the_schema_says_what_is_named(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_a_name_is_checked_as_any_text() -> None:
    hint = Annotated[str, Uses("cache"), Limits(max_length=3)]
    assert build(hint, "abc", "resource") == "abc"
    with pytest.raises(ShapeError, match="resource: 4 characters, at most 3"):
        build(hint, "abcd", "resource")
    with pytest.raises(ShapeError, match="resource: expected string"):
        build(hint, 1, "resource")


@pytest.mark.parametrize("hint", [Annotated[int, Uses("cache")], Annotated[list[str], Uses()]])
def test_only_a_text_names_a_resource(hint: Any) -> None:
    with pytest.raises(TypeError, match="resource is not a limit of"):
        schema_of(hint)
