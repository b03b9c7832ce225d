"""A cursor that we did not write is refused before it reaches a query."""

from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

import pytest
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from foundation.pagination import NewestFirst


def decode(position: str) -> Any:
    cursor = b64encode(urlencode({"p": position}).encode()).decode()
    return NewestFirst().decode_cursor(Request(APIRequestFactory().get("/", {"cursor": cursor})))


def test_our_own_is_taken() -> None:
    assert decode("2026-01-01 00:00:00.123456+00:00").position == "2026-01-01 00:00:00.123456+00:00"


@pytest.mark.parametrize(
    "position",
    ["nonsense", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+23:59",
     "2026-01-01T00:00:00-16:00", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"],
)  # fmt: skip
def test_a_forged_one_is_refused(position: str) -> None:
    with pytest.raises(NotFound):
        decode(position)
