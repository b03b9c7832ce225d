"""executions.semantics.masking: sensitive fields in values, and what they hold wherever it stands in a text."""

from typing import Any

import pytest

from executions.blueprint.plan import WHOLE
from executions.semantics.masking import MASK, Masker, mask_fields


@pytest.mark.parametrize(
    ("value", "fields", "shown"),
    [
        ({"a": 1, "b": 2}, set(), {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a"}, {"a": MASK, "b": 2}),
        ({"a": {"b": 1}}, {"a"}, {"a": MASK}),
        ({"a": {"b": 1}}, {"b"}, {"a": {"b": 1}}),  # of the top level only
        ({"a": None}, {"a", "missing"}, {"a": MASK}),
        ([1, 2], {"a"}, [1, 2]),
        ([1, 2], {WHOLE}, MASK),
        ({"a": 1}, {WHOLE, "a"}, MASK),
        (None, {WHOLE}, MASK),
    ],
)
def test_fields(value: Any, fields: set[str], shown: Any) -> None:
    assert mask_fields(value, fields) == shown


def test_masking_makes_a_copy() -> None:
    value = {"a": 1}
    mask_fields(value, {"a"})
    assert value == {"a": 1}


@pytest.mark.parametrize(
    ("value", "fields", "text", "shown"),
    [
        ({"a": "hunter2"}, {"a"}, "with hunter2, twice hunter2", "with ***, twice ***"),
        ({"a": "hunter2", "b": "open"}, {"a"}, "open", "open"),
        ({"a": {"deep": ["hunter2", {"x": 4711}]}}, {"a"}, "hunter2/4711", "***/***"),
        ({"a": 3.14159}, {"a"}, "pi is 3.14159", "pi is ***"),
        ({"a": "abc"}, {"a"}, "abcdef", "abcdef"),  # too short to be told from other text
        ({"a": True, "b": None}, {"a", "b"}, "True None", "True None"),
        (["hunter2"], {WHOLE}, "hunter2", MASK),
        ("hunter2", {WHOLE}, "hunter2", MASK),
        (["hunter2"], {"a"}, "hunter2", "hunter2"),
        ({"hunter2": 1}, {WHOLE}, "hunter2", "hunter2"),  # names are no values
    ],
)
def test_texts(value: Any, fields: set[str], text: str, shown: str) -> None:
    masker = Masker()
    masker.learn(value, fields)
    assert masker.mask(text) == shown


def test_what_contains_another_is_masked_as_a_whole() -> None:
    masker = Masker()
    masker.learn({"a": "hunter"}, {"a"})
    masker.learn({"a": "hunter2000"}, {"a"})
    assert masker.mask("hunter2000 hunter") == "*** ***"


def test_a_text_of_several_lines_is_known_line_by_line() -> None:
    masker = Masker()
    masker.learn({"key": "-----BEGIN-----\nMIIabc\n\nxy\n-----END-----"}, {"key"})
    said = ["-----BEGIN-----", "MIIabc", "", "xy", "-----END-----"]
    assert [masker.mask(line) for line in said] == [MASK, MASK, "", "xy", MASK]
    assert masker.mask("-----BEGIN-----\nMIIabc\n\nxy\n-----END-----") == MASK


def test_who_has_learned_nothing_masks_nothing() -> None:
    masker = Masker()
    masker.learn({"a": "hunter2"}, frozenset())
    assert masker.mask("hunter2") == "hunter2"


def test_a_text_is_found_in_quotes_too() -> None:
    masker = Masker()
    masker.learn({"key": 'p"ä\nss'}, {"key"})
    for said in (r'{"key": "p\"ä\nss"}', r'"p\"\u00e4\nss"', repr('p"ä\nss')):
        masked = masker.mask(said)
        assert "ss" not in masked
        assert MASK in masked
