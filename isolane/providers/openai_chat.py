"""A chat session that speaks the OpenAI API, which most servers of models do.

Timing: an answer, streamed or whole, comes within the client's timeout for a request.
Model: blocking, in the calling thread.
Guarantee: a returned answer is complete; `on_text` has had the pieces that came before a failure.
Failure: StepError: RATE_LIMIT_ERROR for 429, TRANSIENT_ERROR for 5xx and broken connections or streams.
"""

import contextlib
import json
from collections.abc import Generator, Iterator
from typing import Any

import httpx

from isolane.numbers import finite, refuse_constant
from isolane.providers.answers import beginning, parts, read_at_most
from isolane.providers.chat import ChatReply, ChatSession, OnText
from isolane.providers.failures import excerpt, of_error, of_status
from isolane.providers.http_api import status_of
from isolane.results import Code, StepError

_PATH = "chat/completions"
_WHAT = "the model"
_ANSWER_MAX = 8 * 1024 * 1024  # bytes; streamed, each word comes in an object of its own


class OpenAIChat(ChatSession):
    """A session over an HTTP client that it owns."""

    def __init__(self, client: httpx.Client, model: str) -> None:
        super().__init__(model)
        self._client = client

    def check(self) -> dict[str, Any]:
        """Request the list of models; any answer is a sign of life."""
        self._refuse_closed()
        return {"status": status_of(self._client, "GET", "models"), "model": self.model}

    def close(self) -> None:
        """End the session and its connections."""
        super().close()
        self._client.close()

    def _asked(self, body: dict[str, Any]) -> ChatReply:
        with self._answer(body) as response:
            data = read_at_most(_WHAT, response, _ANSWER_MAX)
        answer = _parsed(data, response)
        choice = _first(answer)
        text = _object(choice.get("message")).get("content")
        return self._reply(answer, str(text or ""), choice.get("finish_reason"))

    def _streamed(self, body: dict[str, Any], on_text: OnText) -> ChatReply:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        text, finish = "", None
        facts: dict[str, Any] = {}
        with self._answer(body) as response, contextlib.closing(_events(response)) as events:
            for event in events:
                choice = _first(event)
                if piece := _object(choice.get("delta")).get("content"):
                    text += str(piece)
                    on_text(str(piece))
                finish = choice.get("finish_reason") or finish
                facts |= {name: event[name] for name in ("model", "usage") if event.get(name)}
        if finish is None:
            raise StepError(Code.TRANSIENT_ERROR, f"{_WHAT}: the stream ended before the answer")
        return self._reply(facts, text, finish)

    @contextlib.contextmanager
    def _answer(self, body: dict[str, Any]) -> Iterator[httpx.Response]:
        try:
            with self._client.stream("POST", _PATH, json=body) as response:
                if not response.is_success:
                    raise of_status(_WHAT, response, beginning(response))
                yield response
        except httpx.HTTPError as error:
            raise of_error(_WHAT, error) from error

    def _reply(self, answer: dict[str, Any], text: str, finish: Any) -> ChatReply:
        usage = _object(answer.get("usage"))
        return ChatReply(
            text=text,
            prompt_tokens=_count(usage.get("prompt_tokens")),
            completion_tokens=_count(usage.get("completion_tokens")),
            model=str(answer.get("model") or self.model),
            finish_reason=str(finish or ""),
        )


def _events(response: httpx.Response) -> Generator[dict[str, Any]]:
    """Yield the objects of a stream of server-sent events, up to the end marker."""
    for line in _lines(response):
        name, _, data = line.partition(b":")
        if name != b"data":
            continue  # a keep-alive comment, or a field without meaning here
        if data.strip() == b"[DONE]":
            return
        event = _parsed(data, response)
        if event.get("error"):
            text = excerpt(json.dumps(event["error"]), response.request)
            raise StepError(Code.TRANSIENT_ERROR, f"{_WHAT} failed in the middle: {text}")
        yield event


def _lines(response: httpx.Response) -> Iterator[bytes]:
    rest = b""
    for part in parts(_WHAT, response, _ANSWER_MAX):
        *lines, rest = (rest + part).split(b"\n")
        yield from (line.rstrip(b"\r") for line in lines)
    yield rest


def _parsed(data: bytes, response: httpx.Response) -> dict[str, Any]:
    try:
        found = json.loads(data, parse_constant=refuse_constant, parse_float=finite)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        text = excerpt(data.decode("utf-8", "replace"), response.request)
        raise StepError(Code.UNKNOWN_ERROR, f"{_WHAT}: the answer is not a JSON object: {text}")
    return found


def _first(answer: dict[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    return _object(choices[0]) if isinstance(choices, list) and choices else {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
