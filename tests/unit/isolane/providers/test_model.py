"""isolane.providers.model: chat with a server like OpenAI's, whole and streamed, and the echo without a network."""

import json
import socket
import threading
from dataclasses import replace
from typing import Any

import pytest

from isolane.providers.chat import ChatReply
from isolane.providers.model import Model, ModelConfig
from isolane.results import Code, StepError
from isolane.shapes import ShapeError, build
from tests.recorder import Answer, Recorder
from tests.unit.isolane.providers.grants import SECRET, TAG, RawServer, model_grant, read_request
from tests.waiting import wait_for

PROVIDER = Model()
HELLO = [{"role": "user", "content": "Hello there"}]
WHOLE = {
    "model": "small-2026",
    "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
}
EVENT_STREAM = {"Content-Type": "text/event-stream"}


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\r\n\r\n"


def piece(text: str | None, finish: str | None = None) -> dict[str, Any]:
    choice = {"delta": {"content": text} if text is not None else {}, "finish_reason": finish}
    return {"model": "small-2026", "choices": [choice], "usage": None}


def streamed(*events: Any, done: bool = True) -> Answer:
    chunks = [b": keep-alive\n\n", *(event(one) for one in events)]
    end = [b"data: [DONE]\n\n"] if done else []
    # Cut into pieces of a few bytes: events do not keep to the borders of packets.
    data = b"".join(chunks + end)
    parts = tuple(data[at : at + 7] for at in range(0, len(data), 7))
    return Answer(headers=EVENT_STREAM, chunks=parts)


def openai(recorder: Recorder, **config: Any) -> Any:
    return PROVIDER.create(
        model_grant(provider="openai", base_url=f"{recorder.url}/v1", **config), TAG
    )


# --- whole answers
def test_a_question_is_answered(recorder: Recorder) -> None:
    recorder.otherwise = Answer(body=json.dumps(WHOLE).encode())
    session = openai(recorder)
    reply = session.chat(HELLO, max_tokens=5, temperature=0.5)
    PROVIDER.dispose(session)
    assert reply == ChatReply(
        text="Hi",
        prompt_tokens=2,
        completion_tokens=1,
        model="small-2026",
        finish_reason="stop",
    )
    (request,) = recorder.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["user-agent"] == f"isolane {TAG}"
    assert json.loads(request.body) == {
        "model": "small",
        "messages": HELLO,
        "max_tokens": 5,
        "temperature": 0.5,
    }


def test_a_brokered_session_asks_in_clear_and_without_a_key(recorder: Recorder) -> None:
    recorder.otherwise = Answer(body=json.dumps(WHOLE).encode())
    url = f"https://model.test:{recorder.port}/v1"
    asked = model_grant(provider="openai", base_url=url)
    session = PROVIDER.create(replace(asked, secrets={}, brokered=True), TAG)
    assert session.chat(HELLO).text == "Hi"
    session.close()
    (request,) = recorder.requests
    assert request.headers["host"] == f"model.test:{recorder.port}"
    assert "authorization" not in request.headers


def test_what_a_remote_server_leaves_out_is_nothing(recorder: Recorder) -> None:
    recorder.otherwise = Answer(body=b'{"choices": [{"message": {"content": null}}]}')
    session = openai(recorder)
    reply = session.chat(HELLO)
    session.close()
    assert (reply.text, reply.prompt_tokens, reply.model) == ("", 0, "small")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (429, Code.RATE_LIMIT_ERROR),
        (500, Code.TRANSIENT_ERROR),
        (503, Code.TRANSIENT_ERROR),
        (400, Code.UNKNOWN_ERROR),
        (401, Code.UNKNOWN_ERROR),
        (307, Code.UNKNOWN_ERROR),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_has_a_code_and_no_secret(
    recorder: Recorder, status: int, code: Code, stream: bool
) -> None:
    body = f"Incorrect API key provided: {SECRET}. {'x' * 5000}".encode()
    recorder.otherwise = Answer(status=status, body=body)
    session = openai(recorder)
    with pytest.raises(StepError, match=f"the model answered {status} ") as failed:
        session.chat(HELLO, stream=stream)
    session.close()
    assert failed.value.code is code
    assert "Incorrect API key provided: ***" in failed.value.message
    assert SECRET not in failed.value.message
    assert len(failed.value.message) < 300


def test_an_answer_that_is_no_json_is_none(recorder: Recorder) -> None:
    recorder.otherwise = Answer(body=b"<html>")
    session = openai(recorder)
    with pytest.raises(StepError, match="the answer is not a JSON object: <html>") as failed:
        session.chat(HELLO)
    session.close()
    assert failed.value.code is Code.UNKNOWN_ERROR


def test_an_endless_answer_is_left(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    from isolane.providers import openai_chat

    monkeypatch.setattr(openai_chat, "_ANSWER_MAX", 1000)
    recorder.queue = [Answer(chunks=(b"x" * 600,) * 2), Answer(body=b"x" * 1001)]
    session = openai(recorder)
    for stream in (True, False):
        with pytest.raises(StepError, match="over the limit of 1000 bytes") as failed:
            session.chat(HELLO, stream=stream)
        assert failed.value.code is Code.OUTPUT_TOO_LARGE
    session.close()


@pytest.mark.parametrize("stream", [False, True])
def test_a_remote_server_that_hangs_is_a_timeout(stream: bool) -> None:
    with RawServer(lambda connection: server.ended.wait(30)).serving() as server:
        grant = model_grant(provider="openai", base_url=server.url, timeout_s=0.2)
        session = PROVIDER.create(grant, TAG)
        with pytest.raises(StepError, match="no whole answer in time") as failed:
            session.chat(HELLO, stream=stream)
        session.close()
    assert failed.value.code is Code.TIMEOUT


def test_no_remote_server_is_a_passing_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    session = PROVIDER.create(model_grant(provider="openai", base_url=url), TAG)
    with pytest.raises(StepError, match="the model: no answer, ConnectError") as failed:
        session.chat(HELLO)
    session.close()
    assert failed.value.code is Code.TRANSIENT_ERROR


def test_questions_are_asked_again_if_the_definition_says_so(recorder: Recorder) -> None:
    recorder.queue = [Answer(status=503), Answer(body=json.dumps(WHOLE).encode())]
    session = openai(recorder, retries=1)
    assert session.chat(HELLO).text == "Hi"
    session.close()
    assert len(recorder.requests) == 2


# --- streams
def test_a_streamed_answer_is_heard_piece_by_piece(recorder: Recorder) -> None:
    usage = {"model": "small-2026", "choices": [], "usage": WHOLE["usage"]}
    recorder.otherwise = streamed(piece(""), piece("Hé"), piece("llo"), piece(None, "stop"), usage)
    heard: list[str] = []
    session = openai(recorder)
    reply = session.chat(HELLO, stream=True, on_text=heard.append)
    session.close()
    assert heard == ["Hé", "llo"]
    assert reply == ChatReply(
        text="Héllo",
        prompt_tokens=2,
        completion_tokens=1,
        model="small-2026",
        finish_reason="stop",
    )
    asked = json.loads(recorder.requests[0].body)
    assert (asked["stream"], asked["stream_options"]) == (True, {"include_usage": True})


def test_a_piece_is_heard_before_the_next_one_is_sent() -> None:
    heard = threading.Event()

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + event(piece("a")))
        assert heard.wait(10)
        connection.sendall(event(piece("b", "stop")) + b"data: [DONE]\n\n")

    with RawServer(serve).serving() as server:
        session = PROVIDER.create(model_grant(provider="openai", base_url=server.url), TAG)
        reply = session.chat(HELLO, stream=True, on_text=lambda _: heard.set())
        session.close()
    assert reply.text == "ab"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([piece("a")], "the stream ended before the answer"),
        ([piece("a"), {"error": {"message": "overloaded"}}], "failed in the middle: .*overloaded"),
    ],
)
def test_a_stream_that_breaks_off_is_a_passing_failure(
    recorder: Recorder, events: list[Any], reason: str
) -> None:
    recorder.otherwise = streamed(*events, done=False)
    session = openai(recorder)
    with pytest.raises(StepError, match=reason) as failed:
        session.chat(HELLO, stream=True)
    session.close()
    assert failed.value.code is Code.TRANSIENT_ERROR


def test_a_listener_that_fails_ends_the_stream(recorder: Recorder) -> None:
    def fail(text: str) -> None:
        raise KeyError(text)

    recorder.otherwise = streamed(piece("a"), piece("b", "stop"))
    session = openai(recorder)
    with pytest.raises(KeyError, match="a"):
        session.chat(HELLO, stream=True, on_text=fail)
    assert session.chat(HELLO, stream=True).text == "ab"
    session.close()


# --- the echo
def test_the_echo_repeats_the_last_question_of_the_user() -> None:
    session = PROVIDER.create(model_grant(provider="echo"), TAG)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "One"},
        {"role": "user", "content": "two  three"},
    ]
    expected = ChatReply(
        text="two  three",
        prompt_tokens=6,
        completion_tokens=2,
        model="small",
        finish_reason="stop",
    )
    assert session.chat(messages) == session.chat(messages) == expected
    heard: list[str] = []
    assert session.chat(messages, stream=True, on_text=heard.append) == expected
    assert "".join(heard) == "two  three"
    assert len(heard) == 2
    cut = session.chat(messages, max_tokens=1)
    assert (cut.text, cut.completion_tokens, cut.finish_reason) == ("two", 1, "length")
    assert PROVIDER.check(session) == {"provider": "echo", "model": "small"}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [([], "the list is empty"), ([{"role": "system", "content": "x"}], "none has the role user")],
)
def test_the_echo_needs_a_question(messages: list[Any], reason: str) -> None:
    session = PROVIDER.create(model_grant(provider="echo"), TAG)
    with pytest.raises(StepError, match=reason):
        session.chat(messages)


# --- the end, and a sign of life
def test_a_disposed_session_raises(recorder: Recorder) -> None:
    recorder.otherwise = Answer(body=json.dumps(WHOLE).encode())
    for session in (openai(recorder), PROVIDER.create(model_grant(provider="echo"), TAG)):
        session.chat(HELLO)
        PROVIDER.dispose(session)
        PROVIDER.dispose(session)
        for use in (lambda one=session: one.chat(HELLO), session.check):
            with pytest.raises(RuntimeError, match="closed"):
                use()
    wait_for(lambda: not recorder.open_ports, "the end of the connection")
    assert len(recorder.requests) == 1


@pytest.mark.parametrize("status", [200, 401])
def test_any_answer_is_a_sign_of_life(recorder: Recorder, status: int) -> None:
    recorder.otherwise = Answer(status=status)
    session = openai(recorder)
    assert PROVIDER.check(session) == {"status": status, "model": "small"}
    session.close()
    assert [(r.method, r.path) for r in recorder.requests] == [("GET", "/v1/models")]


# --- definitions
@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"provider": "openai"}, "base_url: '' is not a URL such as"),
        ({"provider": "other"}, "provider: expected one of openai, echo"),
        ({"provider": "echo", "base_url": "https://a"}, "base_url: the provider echo takes none"),
        ({"provider": "echo", "model": ""}, "model: '' is not the name"),
        ({"provider": "echo", "timeout_s": 601}, "timeout_s: 601.0"),
        ({"provider": "echo", "ca": "x"}, "ca: needs a base_url with https"),
        ({"provider": "openai", "base_url": "https://a", "ca": "x"}, "ca: contains no certificate"),
        ({"provider": "echo", "retries": -1}, "retries: -1"),
    ],
)
def test_a_definition_says_what_is_wrong(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        build(ModelConfig, {"model": "small", **config}, "config")


def test_the_echo_takes_no_secret_and_others_may_do_without() -> None:
    with pytest.raises(ValueError, match="echo takes none"):
        PROVIDER.check_definition(ModelConfig(provider="echo", model="x"), frozenset({"api_key"}))
    with_url = ModelConfig(provider="openai", model="x", base_url="http://a/v1")
    PROVIDER.check_definition(with_url, frozenset())
