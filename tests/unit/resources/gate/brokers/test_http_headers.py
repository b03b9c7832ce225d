"""resources.gate.brokers.http_headers: what may pass a broker, and with which headers."""

import pytest

from foundation.linear_h11 import LINES_MAX
from resources.gate.brokers.http_headers import (
    HEADERS_MAX,
    Headers,
    check_request,
    has_body,
    request_headers,
    response_headers,
)
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.http_refused import HttpRefused

LOGIN = HttpLogin(scheme="https", host="a.test", port=443, header="X-Key", value="s3cret")
HOST: Headers = [(b"host", b"a.test")]


@pytest.mark.parametrize("host", [b"a.test", b"A.test", b"a.test:443"])
def test_a_request_to_the_own_origin_passes(host: bytes) -> None:
    check_request(b"GET", b"//x?y", [(b"host", host)], LOGIN)


@pytest.mark.parametrize(
    ("method", "target", "headers", "status"),
    [
        (b"GET", b"/", [(b"host", b"b.test")], 421),
        (b"GET", b"/", [(b"host", b"a.test:80")], 421),
        (b"GET", b"/", [*HOST, (b"host", b"b.test")], 421),
        (b"GET", b"/", [(b"host", b"a.test\xff")], 421),
        (b"GET", b"/", [], 400),
        (b"OPTIONS", b"*", HOST, 400),
        (b"GET", b"https://a.test/", HOST, 400),
        (b"CONNECT", b"a.test:443", HOST, 405),
        (b"trace", b"/", HOST, 405),
        (b"TRACK", b"/", HOST, 405),
        (b"GET", b"/", [*HOST, (b"x", b"y" * HEADERS_MAX)], 431),
    ],
)
def test_other_requests_do_not(method: bytes, target: bytes, headers: Headers, status: int) -> None:
    with pytest.raises(HttpRefused) as refused:
        check_request(method, target, headers, LOGIN)
    assert refused.value.status == status
    assert "s3cret" not in refused.value.answer


def test_a_port_that_is_not_the_default_is_part_of_the_name() -> None:
    login = HttpLogin(scheme="https", host="a.test", port=8443)
    check_request(b"GET", b"/", [(b"host", b"a.test:8443")], login)
    with pytest.raises(HttpRefused, match=r"reaches a\.test:8443 only"):
        check_request(b"GET", b"/", HOST, login)


def test_a_request_gets_the_secret_and_loses_what_was_for_the_gate() -> None:
    received = [
        (b"host", b"a.test:443"),
        (b"x-key", b"own"),
        (b"x-key", b"own"),
        (b"accept", b"*/*"),
        (b"connection", b"keep-alive, X-Named"),
        (b"x-named", b"1"),
        (b"keep-alive", b"5"),
        (b"te", b"trailers"),
        (b"upgrade", b"websocket"),
        (b"expect", b"100-continue"),
        (b"proxy-authorization", b"x"),
        (b"content-length", b"5"),
    ]
    assert request_headers(received, LOGIN) == [
        (b"Host", b"a.test"),
        (b"accept", b"*/*"),
        (b"X-Key", b"s3cret"),
        (b"Content-Length", b"5"),
    ]


def test_the_secret_cannot_be_named_away() -> None:
    assert (b"X-Key", b"s3cret") in request_headers([(b"connection", b"x-key")], LOGIN)


def test_without_auth_the_run_s_own_headers_pass() -> None:
    login = HttpLogin(scheme="https", host="a.test", port=443)
    own = (b"authorization", b"own")
    assert request_headers([*HOST, own], login) == [(b"Host", b"a.test"), own]


def test_chunks_overrule_a_length() -> None:
    both = [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")]
    login = HttpLogin(scheme="https", host="a.test", port=443)
    framing = (b"Transfer-Encoding", b"chunked")
    assert request_headers(both, login) == [(b"Host", b"a.test"), framing]
    assert has_body(both)
    assert not has_body(HOST)
    assert response_headers([(b"Content-Length", b"5"), (b"Transfer-Encoding", b"chunked")]) == []


def test_an_answer_keeps_what_is_for_the_run() -> None:
    answer = [
        (b"Content-Length", b"5"),
        (b"Set-Cookie", b"a=1"),
        (b"Set-Cookie", b"b=2"),
        (b"Connection", b"close, X-Named"),
        (b"X-Named", b"1"),
        (b"Keep-Alive", b"5"),
    ]
    assert response_headers(answer) == answer[:3]


def test_headers_are_few() -> None:
    check_request(b"GET", b"/", HOST * LINES_MAX, LOGIN)
    for headers in (HOST * (LINES_MAX + 1), [*HOST, (b"connection", b"x," * 600)]):
        with pytest.raises(HttpRefused) as refused:
            check_request(b"GET", b"/", headers, LOGIN)
        assert refused.value.status == 431
        with pytest.raises(HttpRefused, match="too many or too long"):
            response_headers(headers)


def test_an_answer_says_nothing_in_the_name_of_the_gate() -> None:
    answer = [(b"Proxy-Status", b"isolane; error=destination_unavailable"), (b"Server", b"x")]
    assert response_headers(answer) == answer[1:]
