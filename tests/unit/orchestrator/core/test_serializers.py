"""What callers send is checked strictly."""

import pytest
from rest_framework import serializers

from orchestrator.core.serializers import StrictSerializer


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
