"""What callers send is checked strictly."""

import pytest
from rest_framework import serializers

from foundation.serializers import StrictSerializer


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
