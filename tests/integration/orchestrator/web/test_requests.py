"""Bytes sent before any login are limited: a request beyond is refused on arrival, with a readable problem."""

import socket
from collections.abc import Iterator

import pytest

from tests.integration.orchestrator.web.server import (
    Web,
    chunked,
    get,
    parse,
    problem,
    read_all,
    request,
    serving,
)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving(chunks=50, url_bytes=1_000, headers=20, header_bytes=10_000) as web:
        yield web


def length(number: int) -> str:
    return f"Content-Length: {number}"


CHUNKED = "Transfer-Encoding: chunked"
TOO_MUCH = 3_000_000  # less than the server discards before it closes at once


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (request("/", length(TOO_MUCH), body=b"x" * TOO_MUCH), 413, "too_large"),
        (request("/", length(TOO_MUCH)), 413, "too_large"),
        (request("/", length(TOO_MUCH), "Expect: 100-continue"), 413, "too_large"),
        (request("/", CHUNKED, body=chunked(TOO_MUCH)), 413, "too_large"),
        (request("/", CHUNKED, body=chunked(200, chunk=1)), 413, "too_large"),
        (request("/", CHUNKED, body=b"1;%s\r\nx\r\n" % (b"e" * 6_000) * 45), 413, "too_large"),
        (request("/", CHUNKED, length(3), body=b"3\r\nabc\r\n0\r\n\r\n"), 400, "invalid_input"),
        (request("/", CHUNKED, body=b"no length\r\n"), 400, "invalid_input"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400, "invalid_input"),
        (get("/" + "x" * 1_000), 414, "uri_too_long"),
        (get("/", *(f"X-{number}: 1" for number in range(20))), 431, "header_too_large"),
        (get("/", "X: " + "x" * 10_000), 431, "header_too_large"),
        (request("/", "X: " + "x" * 300_000), 431, "header_too_large"),
    ],
)
def test_refused_before_the_application(web: Web, sent: bytes, status: int, code: str) -> None:
    called = web.application.called
    assert problem(web.ask(sent), status)["code"] == code
    assert web.application.called == called


def test_the_application_refuses_by_the_header_before_the_body_has_come(web: Web) -> None:
    called = web.application.called
    assert web.ask(request("/refused", length(50_000))) == (429, b"wait")
    assert web.application.called == called


def test_a_refusal_has_the_callers_request_id_and_no_body_for_head(web: Web) -> None:
    sent = request("/", length(TOO_MUCH), "X-Request-ID: mine-1", method="HEAD")
    with web.connect(sent) as connection:
        received = read_all(connection)
    assert b"HTTP/1.1 413 Content Too Large\r\n" in received or b" 413 Request Entity" in received
    assert b"\r\nx-request-id: mine-1\r\n" in received
    assert parse(received) == (413, b"")


@pytest.mark.parametrize(
    "sent",
    [
        request("/", length(100_000), "Connection: close", body=b"x" * 100_000),
        request("/", CHUNKED, "Connection: close", body=chunked(100_000)),
    ],
)
def test_up_to_the_limit_all_is_taken(web: Web, sent: bytes) -> None:
    assert web.ask(sent)[0] == 200


def test_who_asks_first_is_told_to_go_on(web: Web) -> None:
    sent = request("/", length(5), "Expect: 100-continue", "Connection: close")
    with web.connect(sent) as connection:
        assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"hello")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"5 bytes" in answer


def test_the_application_sees_a_request_when_all_of_it_has_come(web: Web) -> None:
    called = web.application.called
    with web.connect(request("/", length(4), "Connection: close", body=b"ab")) as connection:
        assert web.ask(get())[0] == 200  # in between
        assert web.application.called == called + 1
        connection.sendall(b"cd")
        assert b"4 bytes" in read_all(connection)


def test_requests_one_behind_the_other_are_answered_in_order_and_know_nothing_of_each_other(
    web: Web,
) -> None:
    sizes = (1, 22, 333)
    sent = [request("/", length(size), body=b"x" * size) for size in sizes]
    with web.connect(b"".join(sent) + get()) as connection:
        received = read_all(connection)
    places = [received.index(b"%d bytes" % size) for size in (*sizes, 0)]
    assert places == sorted(places)
    assert received.count(b"HTTP/1.1 200") == 4
    assert not web.application.leaked


def test_answers_are_sent_without_delay() -> None:
    with serving() as web, web.connect(request(method="GET")) as connection:
        assert connection.recv(1_000).startswith(b"HTTP/1.1 200 ")
        (served,) = web.server.server_state.connections
        accepted = served.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
