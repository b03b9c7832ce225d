"""Time and place of connections: one that does not send or read is closed, and displaces no other."""

from contextlib import ExitStack

import pytest

from tests.integration.orchestrator.web.server import (
    BIG,
    get,
    is_closed,
    parse,
    problem,
    read_all,
    request,
    serving,
)
from tests.waiting import wait_for

SHORT = 0.3
HALF_HEADER = b"POST / HTTP/1.1\r\nHost: loc"
HALF_BODY = request("/", "Content-Length: 100", body=b"{")


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (HALF_HEADER, "header_seconds"),
        (HALF_BODY, "body_seconds"),
        (HALF_BODY, "body_first_seconds"),
    ],
)
def test_a_request_that_does_not_come_whole_is_told_so_and_closed(sent: bytes, limit: str) -> None:
    with serving(**{limit: SHORT}) as web:
        assert problem(web.ask(sent), 408)["code"] == "request_timeout"
        assert web.application.called == 0


def test_a_silent_connection_is_closed_before_and_between_requests() -> None:
    with serving(header_seconds=SHORT, idle_seconds=SHORT) as web:
        with web.connect() as silent:
            assert read_all(silent) == b""
        with web.connect(request(method="GET")) as idle:
            assert parse(read_all(idle))[0] == 200


def test_when_all_places_are_taken_the_oldest_unfinished_goes_and_whole_requests_are_answered() -> (
    None
):
    with serving(connections=10, at_work=20) as web, ExitStack() as stack:
        half = []
        for number in range(30):
            half.append(stack.enter_context(web.connect(HALF_BODY if number % 2 else HALF_HEADER)))
            assert web.ask(get())[0] == 200
        wait_for(
            lambda: [is_closed(one) for one in half].count(True) >= 20, "old ones to be dropped"
        )
        closed = [is_closed(one) for one in half]
        for kind in (closed[::2], closed[1::2]):
            assert kind == sorted(kind, reverse=True)  # the oldest, none of the youngest
        assert closed.count(False) >= 8
        assert web.application.called == 30


def test_who_does_not_read_holds_no_thread_and_is_closed() -> None:
    with serving(stalled_seconds=SHORT, answer_bytes=2**30) as web:
        with web.connect(get("/big")) as connection:
            wait_for(lambda: web.application.returned, "the application to be done with it")
            wait_for(lambda: not web.server.server_state.connections, "the server to close", 5)
            assert len(read_all(connection)) < BIG


def test_an_answer_beyond_what_is_kept_waits_for_its_caller_but_not_for_ever() -> None:
    """One message is kept whole: the application waits before the next, and is let go when its caller is given up."""
    with serving(stalled_seconds=SHORT, answer_bytes=1_000, streams=0) as web:
        with web.connect(get("/big")):
            wait_for(lambda: not web.server.server_state.connections, "the server to close", 5)
        wait_for(lambda: not web.server.traffic.at_work, "the application to be let go")
        assert web.ask(get())[0] == 200


def test_requests_wait_for_their_turn_and_too_many_are_told_503() -> None:
    with serving(at_work=1, queued=1) as web, ExitStack() as stack:
        first = stack.enter_context(web.connect(get("/wait")))
        wait_for(lambda: web.application.called, "the first to be at work")
        second = stack.enter_context(web.connect(get()))
        wait_for(lambda: len(web.server.traffic.queue), "the second to wait")
        assert problem(web.ask(get()), 503)["code"] == "unavailable"
        assert web.application.called == 1
        web.application.go_on.set()
        assert [parse(read_all(one))[0] for one in (first, second)] == [200, 200]


def test_a_caller_who_was_proven_before_does_not_wait_behind_strangers() -> None:
    with serving(at_work_per_caller=1, queued=2) as web, ExitStack() as stack:
        known = "Authorization: valid"
        assert web.ask(get("/", known))[0] == 200
        stack.enter_context(web.connect(get("/wait")))
        wait_for(lambda: web.application.called == 2, "a stranger to be at work")
        for _ in range(2):
            stack.enter_context(web.connect(get("/wait", "Authorization: guessed")))
        wait_for(lambda: len(web.server.traffic.queue) == 2, "others to wait")
        assert web.ask(get("/", known))[0] == 200
        assert web.ask(get("/", "Authorization: guessed"))[0] == 503


def test_streams_are_counted_apart() -> None:
    with serving(at_work=1, streams=1) as web:
        with web.connect(get("/stream")) as stream:
            assert b"text/event-stream" in stream.recv(1_000)
            assert web.ask(get())[0] == 200  # the stream takes no turn
            assert problem(web.ask(get("/stream")), 503)["code"] == "unavailable"
            assert web.ask(get())[0] == 200
        wait_for(lambda: not web.server.traffic.streams, "the stream to end")


def test_a_stopping_server_answers_what_is_at_work_and_waits_for_no_half_request() -> None:
    with serving(header_seconds=60) as web, ExitStack() as stack:
        half = stack.enter_context(web.connect(HALF_HEADER))
        working = stack.enter_context(web.connect(get("/wait")))
        wait_for(lambda: web.application.called, "the request to be at work")
        web.stop()
        wait_for(lambda: is_closed(half), "the half request to be closed")
        web.application.go_on.set()
        assert parse(read_all(working))[0] == 200
