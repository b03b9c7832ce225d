"""The recording HTTP server distinguishes requests, connections and their ends."""

import http.client
import threading

from tests.recorder import Answer, Recorder, Request
from tests.waiting import wait_for


def ask(connection: http.client.HTTPConnection, path: str, **headers: str) -> tuple[int, bytes]:
    connection.request("POST", path, b"{}", headers)
    response = connection.getresponse()
    return response.status, response.read()


def test_a_kept_connection_is_one_and_its_end_is_seen(recorder: Recorder) -> None:
    first, second = (http.client.HTTPConnection(recorder.host, recorder.port) for _ in range(2))
    for connection in (first, first, second):
        assert ask(connection, "/pay?n=1", Tag="exec-1") == (200, b'{"ok": true}')

    assert [request.method for request in recorder.asked("exec-1")] == ["POST"] * 3
    assert (recorder.requests[0].path, recorder.requests[0].body) == ("/pay?n=1", b"{}")
    assert len(recorder.client_ports) == 2
    assert recorder.open_ports == recorder.client_ports
    first.close()
    second.close()
    wait_for(lambda: not recorder.open_ports, "the connections to be closed")
    assert recorder.asked("exec-2") == []


def test_it_answers_as_it_is_told(recorder: Recorder) -> None:
    def echo(request: Request) -> Answer:
        return Answer(status=201, body=request.body)

    recorder.queue += [Answer(status=503), Answer(status=429, headers={"Retry-After": "1"})]
    recorder.by_path["/echo"] = echo
    recorder.by_path["/drip"] = Answer(chunks=(b"data: 1\n\n", b"data: [DONE]\n\n"))
    connection = http.client.HTTPConnection(recorder.host, recorder.port)
    found = [ask(connection, path) for path in ("/", "/", "/echo?x", "/drip", "/")]
    connection.close()

    assert [status for status, _ in found] == [503, 429, 201, 200, 200]
    assert found[2][1] == b"{}"
    assert found[3][1] == b"data: 1\n\ndata: [DONE]\n\n"


def test_an_answer_can_be_held_back(recorder: Recorder) -> None:
    go = threading.Event()
    recorder.otherwise = Answer(after=go)
    connection = http.client.HTTPConnection(recorder.host, recorder.port, timeout=20)
    connection.request("GET", "/slow")
    wait_for(lambda: recorder.requests, "the request to arrive")
    go.set()
    assert connection.getresponse().read() == b'{"ok": true}'
    connection.close()


def test_its_end_cuts_what_is_open() -> None:
    with Recorder().serving() as recorder:
        connection = http.client.HTTPConnection(recorder.host, recorder.port, timeout=20)
        assert ask(connection, "/")[0] == 200
    assert connection.sock is not None
    assert connection.sock.recv(1) == b""
    connection.close()
