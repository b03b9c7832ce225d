"""isolane.providers.proxy_status: only a gate's own word counts, and its details come whole."""

import pytest

from isolane.providers.proxy_status import error_of, proxy_status


@pytest.mark.parametrize(
    ("value", "error", "details"),
    [
        ('isolane; error=destination_unavailable; details="no"', "destination_unavailable", "no"),
        ("isolane; error=destination_unavailable", "destination_unavailable", ""),
        ("isolane; error=x; details=no", "x", ""),
        ('varnish; error=destination_unavailable; details="no"', "", ""),
        ("isolane", "", ""),
        ("", "", ""),
    ],
)
def test_an_error_is_a_gates(value: str, error: str, details: str) -> None:
    assert error_of(value) == (error, details)


@pytest.mark.parametrize("details", ["plain", 'of "a\\b"; error=x', "\\", '"', ""])
def test_details_come_back(details: str) -> None:
    assert error_of(proxy_status("x", details)) == ("x", details)


def test_details_are_one_line_of_ascii() -> None:
    value = proxy_status("x", "a\r\nSet-Cookie: \u00e9")
    assert error_of(value) == ("x", "a??Set-Cookie: ?")
