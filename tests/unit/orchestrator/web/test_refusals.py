"""Refusals by the first line and the header of a request."""

import pytest

from orchestrator.web.refusals import head_refused
from tests.unit.orchestrator.web.peers import limits

LIMITS = limits(body_bytes=100, url_bytes=20, headers=3, header_bytes=80)


@pytest.mark.parametrize(
    ("target", "headers", "status", "code"),
    [
        (b"/" * 21, [], 414, "uri_too_long"),
        (b"/", [(b"a", b"1")] * 4, 431, "header_too_large"),
        (b"/", [(b"a", b"1" * 80)], 431, "header_too_large"),
        (b"/", [(b"content-length", b"101")], 413, "too_large"),
        (
            b"/",
            [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")],
            400,
            "invalid_input",
        ),
    ],
)
def test_refused(target: bytes, headers: list[tuple[bytes, bytes]], status: int, code: str) -> None:
    error = head_refused(target, headers, LIMITS)
    assert error is not None
    assert (error.http_status, error.code) == (status, code)


@pytest.mark.parametrize(
    "header", [(b"content-length", b"100"), (b"transfer-encoding", b"chunked")]
)
def test_taken(header: tuple[bytes, bytes]) -> None:
    assert head_refused(b"/" * 20, [(b"host", b"h"), header], LIMITS) is None
