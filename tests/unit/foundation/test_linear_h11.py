"""foundation.linear_h11: what h11 reads is as before, and takes time by its bytes."""

import time

import pytest

from foundation.linear_h11 import LINES_MAX, h11

SIZE = 60_000
BLANKS = b" " * SIZE
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\n"


def read(data: bytes, *, role: type[h11.CLIENT] | type[h11.SERVER] = h11.SERVER) -> list[h11.Event]:
    """Return all events of what the other side has sent."""
    connection = h11.Connection(role, max_incomplete_event_size=2 * SIZE)
    if role is h11.CLIENT:
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.receive_data(data)
    events = []
    while not isinstance(event := connection.next_event(), type):
        events.append(event)
        if isinstance(event, h11.EndOfMessage):
            break
    return events


@pytest.mark.parametrize(
    ("data", "role"),
    [
        (HEAD + b"a:" + BLANKS + b"\x00\r\n\r\n", h11.SERVER),
        (HEAD + b"a: b" + BLANKS + b"\x00\r\n\r\n", h11.SERVER),
        (HEAD + b"a:" + b" b" * (SIZE // 2) + b"\x00\r\n\r\n", h11.SERVER),
        (HEAD + b"a:\r\n" + BLANKS + b"\x00\r\n\r\n", h11.SERVER),
        (CHUNKED + b"0\r\na:" + BLANKS + b"\x00\r\n\r\n", h11.SERVER),
        (CHUNKED + b"1;" + BLANKS + b"\n\r\n", h11.SERVER),
        (CHUNKED + b"1" + BLANKS + b"x\r\n", h11.SERVER),
        (ANSWER + b"a:" + BLANKS + b"\x00\r\n\r\n", h11.CLIENT),
        (b"HTTP/1.1 100 " + BLANKS + b"\x00\r\n\r\n", h11.CLIENT),
    ],
)
def test_no_line_takes_longer_than_its_bytes(
    data: bytes, role: type[h11.CLIENT] | type[h11.SERVER]
) -> None:
    began = time.thread_time()
    with pytest.raises(h11.RemoteProtocolError):
        read(data, role=role)
    assert time.thread_time() - began < 0.5  # seconds; h11's own patterns take many


@pytest.mark.parametrize(
    ("before", "role"),
    [
        (HEAD, h11.SERVER),
        (CHUNKED + b"2\r\nok\r\n0\r\n", h11.SERVER),
        (ANSWER, h11.CLIENT),
        (ANSWER + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", h11.CLIENT),
    ],
    ids=["request", "request's trailers", "answer", "answer's trailers"],
)
@pytest.mark.parametrize("ends", [True, False])
def test_no_more_than_some_lines_are_parsed_at_once(
    before: bytes, role: type[h11.CLIENT] | type[h11.SERVER], *, ends: bool
) -> None:
    held = before.endswith((HEAD, ANSWER)) * before.removeprefix(ANSWER).count(b"\n")
    for newline in (b"\r\n", b"\n"):
        most = (b"a:" + newline) * (LINES_MAX - held)
        if ends:
            read(before + most + newline, role=role)
        with pytest.raises(h11.RemoteProtocolError) as refused:
            read(before + most + (b"a:" + newline) * 2 + newline * ends, role=role)
        assert refused.value.error_status_hint == 431


def test_headers_that_come_before_their_end_are_few_enough_too() -> None:
    connection = h11.Connection(h11.SERVER)
    for data in (HEAD + b"a:\r\n" * (LINES_MAX - 1), b"\r\n"):
        connection.receive_data(data)
        event = connection.next_event()
    assert isinstance(event, h11.Request)
    assert len(list(event.headers)) == LINES_MAX


def test_what_follows_trailers_is_no_part_of_them() -> None:
    *_, end = read(CHUNKED + b"0\r\n\r\n" + HEAD * LINES_MAX)
    assert isinstance(end, h11.EndOfMessage)


def test_a_body_may_have_any_number_of_lines() -> None:
    length = b"Content-Length: %d\r\n\r\n" % (5 * LINES_MAX)
    _, *data, end = read(HEAD + length + b"\n" * 5 * LINES_MAX)
    assert sum(len(one.data) for one in data if isinstance(one, h11.Data)) == 5 * LINES_MAX
    assert isinstance(end, h11.EndOfMessage)


def test_values_are_read_without_the_blanks_around_them() -> None:
    request, *_ = read(HEAD + b"A: \t b  c \t\r\nempty:\r\nblank:  \r\nfold: x\r\n  y\r\n\r\n")
    assert isinstance(request, h11.Request)
    assert list(request.headers)[1:] == [
        (b"a", b"b  c"), (b"empty", b""), (b"blank", b""), (b"fold", b"x y"),
    ]  # fmt: skip


def test_chunks_are_read_with_their_extensions() -> None:
    _, *data, end = read(CHUNKED + b"2;a=b; c \r\nok\r\n1  \r\n!\r\n0\r\nt: v\r\n\r\n")
    assert b"".join(bytes(one.data) for one in data if isinstance(one, h11.Data)) == b"ok!"
    assert isinstance(end, h11.EndOfMessage)
    assert list(end.headers) == [(b"t", b"v")]
