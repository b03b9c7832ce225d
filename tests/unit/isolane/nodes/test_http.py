"""isolane.nodes.http: requests of steps, and what becomes of their answers."""

import gzip
import json
import socket
from typing import Any

import pytest

from isolane.node import default_registry
from isolane.protocol import MAX_OUTPUT
from isolane.results import Code, StepError
from isolane.testing import run_node
from tests.recorder import Answer, Recorder
from tests.unit.isolane.providers.grants import SECRET, RawServer, http_grant, read_request

TEXT = {"Content-Type": "text/plain"}


def request(base_url: str, *, config: dict[str, Any] | None = None, **parameters: Any) -> Any:
    grant = http_grant(base_url, **(config or {}))
    parameters = {"path": "/", **parameters}
    return run_node("http.request", resources={"shop": grant}, resource="shop", **parameters).output


def test_the_node_says_what_it_is() -> None:
    node = default_registry.get("http.request")
    assert node is not None
    assert (node.uses_key, node.idempotent, node.deterministic) == (True, False, False)
    properties = node.description().parameters["properties"]
    assert properties["resource"] == {"type": "string", "resource": "http_api"}
    assert node.description().parameters["required"] == ["resource", "path"]


def test_an_answer_of_json_is_returned(recorder: Recorder) -> None:
    recorder.otherwise = Answer(
        body=b'{"id": 7}',
        headers={
            "Content-Type": "application/problem+json; charset=utf-8",
            "ETag": '"a"',
            "X-Request-Id": "r1",
            "Set-Cookie": "session=1",
        },
    )
    output = request(
        f"{recorder.url}/v1",
        path="/orders/7",
        query={"full": True, "tag": ["a", "b"], "page": 2},
        headers={"Accept": "application/json"},
    )
    assert output == {
        "status": 200,
        "headers": {
            "content-type": "application/problem+json; charset=utf-8",
            "etag": '"a"',
            "x-request-id": "r1",
        },
        "json": {"id": 7},
    }
    (asked,) = recorder.requests
    assert asked.path == "/v1/orders/7?full=true&tag=a&tag=b&page=2"
    assert asked.headers["accept"] == "application/json"
    assert "idempotency-key" not in asked.headers


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(body="grüße".encode(), headers=TEXT), "grüße"),
        (Answer(body="ü".encode("latin-1"), headers={"Content-Type": "a/b; charset=latin-1"}), "ü"),
        (Answer(body="ü".encode(), headers={"Content-Type": "a/b; charset=none-such"}), "ü"),
        (Answer(body="ü".encode(), headers={"Content-Type": "a/b; charset=hex"}), "ü"),
        (Answer(body=b"a\x00\xffb", headers=TEXT), "a\ufffd\ufffdb"),
        (Answer(body=b"{", headers={"Content-Type": "application/json"}), "{"),
        (Answer(body=b"NaN", headers={"Content-Type": "application/json"}), "NaN"),
        (Answer(status=204, body=b"", headers={}), ""),
    ],
)
def test_any_other_answer_is_a_text(recorder: Recorder, answer: Answer, text: str) -> None:
    recorder.otherwise = answer
    output = request(recorder.url)
    assert output["text"] == text
    assert "json" not in output


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_changes_something_carries_the_key(recorder: Recorder, method: str) -> None:
    request(recorder.url, method=method, json={"total": 75}, idempotency_key="run:step")
    (asked,) = recorder.requests
    assert asked.method == method
    assert asked.headers["idempotency-key"] == "run:step"
    assert asked.headers["content-type"] == "application/json"
    assert json.loads(asked.body) == {"total": 75}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_only_asks_does_not(recorder: Recorder, method: str) -> None:
    assert request(recorder.url, method=method)["status"] == 200
    assert "idempotency-key" not in recorder.requests[0].headers


def test_different_keys_stay_different_in_a_header(recorder: Recorder) -> None:
    keys = ["ü", "%C3%BC", "a b", " a", "a\n", "x" * 200]
    for key in keys:
        request(recorder.url, method="POST", idempotency_key=key)
    sent = [one.headers["idempotency-key"] for one in recorder.requests]
    assert len(set(sent)) == len(keys)
    assert all(value.isascii() and value.isprintable() for value in sent)


def test_a_body_is_sent_as_it_is(recorder: Recorder) -> None:
    request(recorder.url, method="POST", body="a=ü", headers={"Content-Type": "text/x"})
    assert recorder.requests[0].body == "a=ü".encode()
    assert recorder.requests[0].headers["content-type"] == "text/x"


def test_a_path_may_have_a_query_of_its_own(recorder: Recorder) -> None:
    request(recorder.url, path="/a?b=1")
    assert recorder.requests[0].path == "/a?b=1"


# --- refused
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"path": "http://127.0.0.1:1/"}, "does not begin with one slash"),
        ({"path": "//127.0.0.1:1/x"}, "does not begin with one slash"),
        ({"path": "orders"}, "does not begin with one slash"),
        ({"path": "@evil/"}, "does not begin with one slash"),
        ({"path": "/\\evil"}, "a backslash"),
        ({"path": "/a\r\nHost: evil"}, "a control character"),
        ({"path": "/a#b"}, "a fragment"),
        ({"path": "/../admin"}, "leads upwards"),
        ({"path": "/a/%2E%2e/admin"}, "leads upwards"),
        ({"path": "/a/..%2fadmin"}, "leads upwards"),
        ({"path": "/a?b=1", "query": {"c": 2}}, "the path has a query"),
        ({"query": {"a": {"b": 1}}}, "query.a: is not a text"),
        ({"json": 1, "body": "x"}, "json or body, not both"),
        ({"headers": {"Host": "evil"}}, "headers: 'Host' cannot be set here"),
        ({"headers": {"authorization": "x"}}, "headers: 'authorization' cannot be set here"),
        ({"headers": {"Idempotency-Key": "x"}}, "headers: 'Idempotency-Key' cannot be set"),
        ({"headers": {"User-Agent": "x"}}, "headers: 'User-Agent' cannot be set"),
        ({"headers": {"X": "a\nb"}}, "the value of 'X'"),
        ({"method": "TRACE"}, "parameter method: expected one of GET"),
    ],
)
def test_a_request_that_leads_elsewhere_is_not_sent(
    recorder: Recorder, parameters: dict[str, Any], reason: str
) -> None:
    with pytest.raises(StepError, match=f"http.request.*{reason}") as refused:
        request(recorder.url, **parameters)
    assert refused.value.code is Code.POLICY_VIOLATION
    assert recorder.requests == []


# --- failures
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (429, Code.RATE_LIMIT_ERROR),
        (500, Code.TRANSIENT_ERROR),
        (503, Code.TRANSIENT_ERROR),
        (599, Code.TRANSIENT_ERROR),
        (404, Code.UNKNOWN_ERROR),
        (302, Code.UNKNOWN_ERROR),
    ],
)
def test_a_failure_has_a_code_and_the_beginning_of_the_answer(
    recorder: Recorder, status: int, code: Code
) -> None:
    recorder.otherwise = Answer(status=status, body=b"sorry\n " + b"x" * MAX_OUTPUT * 2)
    with pytest.raises(StepError, match=f"GET /a answered {status}.*: sorry x") as failed:
        request(recorder.url, path="/a?key=hidden")
    assert failed.value.code is code
    assert len(failed.value.message) < 300
    assert "hidden" not in failed.value.message
    assert ("redirects are not followed" in failed.value.message) == (status == 302)


@pytest.mark.parametrize(
    "config",
    [
        {"auth": "bearer"},
        {"auth": "header", "header": "X-Api-Key"},
        {"auth": "basic", "user": "ann"},
    ],
)
def test_a_remote_server_that_repeats_the_secret_is_not_quoted(
    recorder: Recorder, config: dict[str, Any]
) -> None:
    def tell(asked: Any) -> Answer:
        return Answer(status=401, body=json.dumps(dict(asked.headers)).encode())

    recorder.otherwise = tell
    with pytest.raises(StepError, match="answered 401") as failed:
        request(recorder.url, config=config)
    sent = recorder.requests[0].headers
    value = sent.get("authorization", sent.get("x-api-key", "")).rpartition(" ")[2]
    assert value
    assert value not in failed.value.message
    assert SECRET not in failed.value.message


def test_the_step_says_which_answers_it_expects(recorder: Recorder) -> None:
    recorder.otherwise = Answer(status=404, body=b"none", headers=TEXT)
    output = request(recorder.url, expect=[200, 404])
    assert (output["status"], output["text"]) == (404, "none")
    recorder.otherwise = Answer(status=201)
    with pytest.raises(StepError, match="answered 201 Created"):
        request(recorder.url, expect=[200])
    assert request(recorder.url, expect=[])["status"] == 201


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"x" * (MAX_OUTPUT + 1), headers=TEXT),
        Answer(chunks=(b"x" * MAX_OUTPUT, b"x"), headers=TEXT),
        Answer(
            body=gzip.compress(b"x" * (MAX_OUTPUT + 1)),
            headers={**TEXT, "Content-Encoding": "gzip"},
        ),
    ],
)
def test_an_answer_that_is_too_large_is_not_read(recorder: Recorder, answer: Answer) -> None:
    recorder.otherwise = answer
    with pytest.raises(StepError, match=f"GET /: .* over the limit of {MAX_OUTPUT} b") as failed:
        request(recorder.url)
    assert failed.value.code is Code.OUTPUT_TOO_LARGE


def test_a_broken_answer_is_a_failure(recorder: Recorder) -> None:
    recorder.otherwise = Answer(body=b"no gzip", headers={"Content-Encoding": "gzip"})
    with pytest.raises(StepError, match="GET /: DecodingError") as failed:
        request(recorder.url)
    assert failed.value.code is Code.UNKNOWN_ERROR


def test_a_remote_server_that_hangs_is_a_timeout() -> None:
    with RawServer(lambda connection: server.ended.wait(30)).serving() as server:
        with pytest.raises(StepError, match="GET /: ReadTimeout") as failed:
            request(server.url, config={"timeout_s": 0.2})
    assert failed.value.code is Code.TIMEOUT


def test_a_remote_server_that_hangs_up_or_is_not_there_is_a_passing_failure() -> None:
    with RawServer(read_request).serving() as server:
        with pytest.raises(StepError, match="GET /: no answer, RemoteProtocolError") as cut:
            request(server.url)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(StepError, match="GET /: no answer, ConnectError") as absent:
        request(url)
    assert cut.value.code is absent.value.code is Code.TRANSIENT_ERROR
