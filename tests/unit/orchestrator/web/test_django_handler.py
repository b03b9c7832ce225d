"""Django in threads that are kept: one thread for one request, and nothing of it is left there."""

import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.signals import request_finished
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import path
from pytest_django import Settings

from orchestrator.web.django_handler import ThreadedHandler

BIG = b"x" * 200_000
_seen: ContextVar[str] = ContextVar("_seen", default="")
_file = Path()


def named(request: HttpRequest) -> HttpResponse:
    """Answer with the thread, the request and the remains of an earlier request."""
    before, _ = _seen.get(), _seen.set("left")
    thread = threading.current_thread().name
    return HttpResponse(f"{thread} {request.body.decode()} {before}")


def file(_: HttpRequest) -> HttpResponseBase:
    """An answer that is sent in parts."""
    return FileResponse(_file.open("rb"))


urlpatterns = [path("named/", named), path("file/", file)]


@pytest.fixture
def handler(settings: Settings) -> ThreadedHandler:
    settings.MIDDLEWARE, settings.ROOT_URLCONF = [], __name__
    return ThreadedHandler(threads=1)


def ask(handler: ThreadedHandler, where: str, body: bytes = b"") -> tuple[int, bytes]:
    """Status and body of an answer."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    host = (b"host", b"testserver")
    scope = {
        "type": "http",
        "method": "POST",
        "path": where,
        "headers": [host],
        "query_string": b"",
    }
    async_to_sync(handler)(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_a_thread_serves_one_request_after_the_other_and_keeps_nothing(
    handler: ThreadedHandler,
) -> None:
    threads: list[str] = []

    def closed(**_: Any) -> None:
        threads.append(threading.current_thread().name)

    request_finished.connect(closed)
    try:
        assert ask(handler, "/named/", b"one") == (200, b"request_0 one ")
        assert ask(handler, "/named/", b"two") == (200, b"request_0 two ")
    finally:
        request_finished.disconnect(closed)
    assert threads == ["request_0", "request_0"]  # where the database connection is given back


def test_a_file_comes_whole(
    handler: ThreadedHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "big"
    stored.write_bytes(BIG)
    monkeypatch.setitem(globals(), "_file", stored)
    assert ask(handler, "/file/") == (200, BIG)


def test_an_error_of_a_view_is_answered_by_django(
    handler: ThreadedHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "_file", tmp_path / "none")
    assert ask(handler, "/file/")[0] == 500
