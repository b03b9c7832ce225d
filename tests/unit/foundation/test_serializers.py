"""Strict checks of callers' values."""

import pytest
from rest_framework import serializers

from foundation.serializers import (
    PageQuerySerializer,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
)


class Order(StrictSerializer):
    number = serializers.IntegerField()
    note = serializers.CharField(required=False)


def test_known_fields_are_taken() -> None:
    order = Order(data={"number": 1})
    assert order.is_valid()
    assert order.validated_data == {"number": 1}


def test_every_unknown_field_is_refused_by_name() -> None:
    order = Order(data={"number": 1, "nmae": "x", "colour": "red"})
    assert not order.is_valid()
    assert set(order.errors) == {"nmae", "colour"}
    assert "known are number, note" in str(order.errors["nmae"])


@pytest.mark.parametrize("data", [[], "text", 1, None])
def test_what_is_no_object_is_refused(data: object) -> None:
    assert not Order(data=data).is_valid()


def test_names_are_repeated_only_as_far_as_they_can_be_shown() -> None:
    order = Order(data={"\ud800": 1, **{f"{n}" + "x" * 1000: 1 for n in range(1000)}})
    assert not order.is_valid()
    assert len(order.errors) == 20
    assert {len(name) for name in order.errors} == {200}
    odd = Order(data={"\ud800": 1})
    assert not odd.is_valid()
    assert set(odd.errors) == {"\\ud800"}


class Reply(StrictSerializer):
    text = StrictCharField(max_length=5, trim_whitespace=False)
    is_right = StrictBooleanField()


def test_strings_and_booleans_are_taken_as_they_are() -> None:
    reply = Reply(data={"text": " ü ", "is_right": True})
    assert reply.is_valid()
    assert reply.validated_data == {"text": " ü ", "is_right": True}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"text": 7}, "text"),
        ({"text": True}, "text"),
        ({"text": "abcdef"}, "text"),
        ({"text": ""}, "text"),
        ({"is_right": "yes"}, "is_right"),
        ({"is_right": 1}, "is_right"),
    ],
)
def test_nothing_else_is_taken_for_one(changes: dict[str, object], field: str) -> None:
    reply = Reply(data={"text": "a", "is_right": False, **changes})
    assert not reply.is_valid()
    assert set(reply.errors) == {field}


@pytest.mark.parametrize(
    ("query", "fits"),
    [({}, True), ({"page_size": "200", "cursor": "x"}, True), ({"page_size": "201"}, False)],
)
def test_a_page_has_at_most_as_many_rows_as_the_paginator_gives(
    query: dict[str, str], fits: bool
) -> None:
    assert PageQuerySerializer(data=query).is_valid() is fits
