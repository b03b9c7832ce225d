"""The application in front of Django, with a Django whose answers the test controls."""

import asyncio
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync

from foundation.failure_counts import FailureCounts
from tenants.logins.early import EarlyRefusals

Answer = tuple[int, dict[str, str], bytes]
ADDRESS = "203.0.113.7"


class Front:
    """Requests to it are answered, or let through: then their bodies are kept and the answer is None."""

    def __init__(self, *, clock: Callable[[], float], most: int = 100) -> None:
        self.let_in: list[bytes] = []
        self.answering = asyncio.Event()
        self.answering.set()
        self._early = EarlyRefusals(self._django, most=most, turned_away=FailureCounts(clock=clock))

    def now(self, method: str, path: str, **options: Any) -> Answer | None:
        """Ask from outside of an event loop."""
        asked: Answer | None = async_to_sync(self.ask)(method, path, **options)
        return asked

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: tuple[bytes, ...] = (b"form",),
        unfinished: bool = False,
        key: str = "",
        address: str = ADDRESS,
    ) -> Answer | None:
        """One request; one that is unfinished never ends, until it is cancelled."""
        headers = [(b"x-request-id", b"mine")]
        headers += [(b"authorization", f"Bearer {key}".encode())] if key else []
        parts, sent = list(body), []

        async def receive() -> dict[str, Any]:
            if parts:
                part = parts.pop(0)
                more = bool(parts) or unfinished
                return {"type": "http.request", "body": part, "more_body": more}
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "client": (address, 1)}
        await self._early({**scope, "headers": headers}, receive, send)
        if not sent:
            return None
        start, content = sent
        named = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return start["status"], named, content["body"]

    async def _django(self, scope: Any, receive: Any, send: Any) -> None:
        self.let_in.append((await receive())["body"])
        await self.answering.wait()
