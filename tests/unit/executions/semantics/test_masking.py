"""executions.semantics.masking: sensitive fields in values, and their content wherever it occurs in a text."""

from typing import Any

import pytest

from executions.blueprints.plan import WHOLE
from executions.semantics import masking
from executions.semantics.masking import MASK, Masker, mask_fields, masked_inputs


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


# --- in values
def knowing(*texts: Any) -> Masker:
    masker = Masker()
    masker.learn(list(texts), {WHOLE})
    return masker


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("is hunter2", "is ***"),
        ({"a": ["hunter2", {"b": "x/hunter2/y"}]}, {"a": [MASK, {"b": "x/***/y"}]}),
        ({"hunter2": 1, "of hunter2": 2}, {MASK: 1, "of ***": 2}),
        ([4711, 14711, 4711.5, "14711"], [MASK, 14711, 4711.5, "1***"]),
        ([True, None, 1.25], [True, None, MASK]),
        (["hunt", "er2"], ["hunt", "er2"]),  # two texts are not one
        ({"a": "", "b": []}, {"a": "", "b": []}),
    ],
)
def test_values(value: Any, shown: Any) -> None:
    masker = knowing("hunter2", 4711, 1.25)
    assert masker.masked(value) == shown
    assert masker.masked_items({"hunter2": value}) == {"hunter2": shown}  # a name of a blueprint


def test_a_value_in_which_nothing_is_found_is_the_same() -> None:
    value = {"a": [1, "open", {"b": None}]}
    assert knowing("hunter2").masked(value) is value
    assert Masker().masked(value) is value


def test_what_is_not_touched_in_a_value_is_the_same() -> None:
    value = {"a": ["hunter2"], "b": ["open"]}
    shown = knowing("hunter2").masked(value)
    assert shown["b"] is value["b"]
    assert value == {"a": ["hunter2"], "b": ["open"]}


def test_inputs_beside_a_sensitive_one_may_say_the_same() -> None:
    inputs = {"password": "hunter2", "note": "it is hunter2", "short": "abc"}
    assert masked_inputs(inputs, {"password", "missing"}) == {
        "password": MASK, "note": "it is ***", "short": "abc",
    }  # fmt: skip
    assert masked_inputs(inputs, set()) == inputs


@pytest.mark.parametrize(
    ("text", "known"), [("hunter2", True), ("of_hunter2_x", True), ("hunter", False), ("", False)]
)
def test_it_says_whether_a_text_contains_what_it_knows(text: str, known: bool) -> None:
    assert knowing("hunter2").knows(text) is known


# --- where a text was cut
SECRET = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "cut", "continued", "shown"),
    [
        ("key 01234567", True, False, "key ***"),
        ("key 01234567", False, False, "key 01234567"),
        ("key 0123", True, False, "key ***"),
        ("key 012", True, False, "key 012"),  # too short to be told from other text
        ("key 01234567…", False, False, "key ***…"),
        ("89abcdef is it", False, True, "*** is it"),
        ("89abcdef is it", False, False, "89abcdef is it"),
        ("…89abcdef is it", False, False, "…*** is it"),
        ("def is it", False, True, "def is it"),
        ("456789ab", True, True, MASK),  # a piece from its middle
        ("cdef and 0123", True, True, "*** and ***"),
        (f"key {SECRET}", True, False, "key ***"),
        (f"{SECRET} is it", False, True, "*** is it"),
        ("0123 key 01234567", True, False, "0123 key ***"),
        ("89abcdef key cdef", False, True, "*** key cdef"),
        ("01230123", True, False, "0123***"),
    ],
)
def test_at_a_cut_the_beginning_or_the_end_of_a_text_is_masked(
    text: str, cut: bool, continued: bool, shown: str
) -> None:
    assert knowing(SECRET).mask(text, truncated=cut, continued=continued) == shown


def test_at_a_cut_the_longest_of_several_is_masked() -> None:
    masker = knowing("hunter", "hunter2000", "2000")
    assert masker.mask("by hunter20", truncated=True) == "by ***"
    assert masker.mask("nter2000 by", continued=True) == "*** by"


# --- too much to look for
@pytest.mark.parametrize(
    ("limit", "most"), [("MAX_TEXTS", 2), ("MAX_CHARACTERS", len("hunter2" + "t0ken"))]
)
def test_who_knows_too_much_masks_everything(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(masking, limit, most)
    masker = knowing("hunter2", "t0ken")
    assert masker.mask("open") == "open"
    masker.learn("one more", {WHOLE})
    assert [masker.mask(text) for text in ("open", "of hunter2", "")] == [MASK, MASK, ""]
    assert masker.masked({"a": "open"}) == {MASK: MASK}
    assert masker.masked(["open"]) == [MASK]
    assert [masker.masked(value) for value in ("open", 5, None, True, 0)] == [
        MASK, MASK, None, True, 0,
    ]  # fmt: skip
    assert masker.masked_items({"a": "open", "b": None}) == {"a": MASK, "b": None}
    assert masker.knows("of hunter2")
    assert not masker.knows("open")


def test_very_many_texts_cost_no_more_than_some() -> None:
    """Masking took a minute for such a run; now it reads one flag."""
    masker = knowing(*(f"secret {number}" for number in range(20_000)))
    assert masker._ordered == []
    assert masker.mask("line") == MASK
