"""The attacks of a siege against a small server: they send what is planned, count it, and stop in time."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from trials.siege import bodies, half_open, logins, plan, schemas, validation
from trials.siege.http import NoAnswer
from trials.siege.tally import Tally
from trials.siege.victim import Victim

SECONDS = 0.4
SILENT = 0
PAGE = b'<input name="csrfmiddlewaretoken" value="t">'
Attack = Callable[[int], Awaitable[Tally]]


class Server:
    """Answer whole requests with one status or not at all, huge ones with 413; hold incomplete ones open."""

    def __init__(self, status: int = 429) -> None:
        self.status = status
        self.requests: Counter[str] = Counter()
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen on the yielded port; close all connections at the end."""
        listening = await asyncio.start_server(self._serve, plan.ADDRESS, 0)
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            listening.close()
            handlers = [task for task in self._open.values() if task]
            for writer in self._open:
                writer.transport.abort()
            await asyncio.gather(*handlers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = asyncio.current_task()
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has closed the connection
        finally:
            del self._open[writer]
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        self.requests[head.split("\r\n")[0]] += 1
        length = int(found[1]) if (found := re.search(r"content-length: (\d+)", head)) else 0
        huge = length == plan.BODY_BYTES or "chunked" in head
        if not huge:
            await reader.readexactly(length)
        if self.status == SILENT:
            return True
        form = head.startswith(("get /login", "get /admin"))
        status = 413 if huge else 200 if form else self.status
        body = PAGE if form else b"{}"
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return not huge


def attack(server: Server, attacks: Attack) -> Tally:
    async def both() -> Tally:
        async with server.listening() as port:
            return await attacks(port)

    began = time.monotonic()
    tally = asyncio.run(both())
    assert time.monotonic() - began < SECONDS + 2
    return tally


def test_half_open_connections_stay_open_until_the_end() -> None:
    server = Server()
    kinds = plan.half_open(8)
    tally = attack(server, lambda port: half_open.hold(port, kinds, SECONDS))
    assert (tally.tries, tally.most_open, tally.answers) == (8, 8, Counter())
    assert set(server.requests) == {
        "post /api/v1/executions http/1.1"
    }  # the others had no whole header


def test_bodies_are_sent_until_the_server_refuses_them() -> None:
    tally = attack(Server(), lambda port: bodies.send(port, plan.bodies(8), SECONDS))
    assert tally.tries == 8
    assert tally.answers.total() > 0
    assert tally.sent_bytes < 8 * plan.BODY_BYTES / 10
    assert {name.rsplit(": ", 1)[1] for name in tally.answers} <= {"413", "no answer"}


def test_logins_are_tried_at_their_rate() -> None:
    server = Server()

    async def guess(port: int) -> Tally:
        guessing = logins.Guessing(web=port, flower=port)
        await guessing.prepare()
        return await guessing.run(SECONDS, rate=100)

    tally = attack(server, guess)
    assert 10 <= tally.tries <= 40
    assert tally.left_out == 0
    assert {f"{kind}: 429" for kind in plan.LOGIN_SHARES} == set(tally.answers)
    assert server.requests["post /login/ http/1.1"] >= 2


def test_logins_that_are_not_answered_are_not_piled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "UNANSWERED_SECONDS", SECONDS / 4)

    async def guess(port: int) -> Tally:
        form = logins.Form(cookies="", token="t")
        guessing = logins.Guessing(web=port, flower=port, forms=dict.fromkeys(logins.FORMS, form))
        return await guessing.run(SECONDS, rate=100)

    tally = attack(Server(status=SILENT), guess)
    assert 4 <= tally.most_open <= 100 * SECONDS / 4
    assert tally.left_out > 0


def test_schemas_are_published_validated_and_submitted_if_they_are_accepted() -> None:
    expensive = schemas.expensive()[:2]
    tally = attack(Server(status=422), lambda port: validation.send(port, "k", expensive, SECONDS))
    assert tally.answers == Counter({"publish: 422": 2})
    tally = attack(Server(status=200), lambda port: validation.send(port, "k", expensive, SECONDS))
    assert set(tally.answers) == {"publish: 200", "validate: 200", "submit: 200"}


def test_a_victim_counts_every_answer_that_is_not_good() -> None:
    server = Server(status=503)

    async def work(port: int) -> Tally:
        found = await Victim(port, "k").work(SECONDS)
        assert found.failures == Counter({"503": len(found.latencies_ms) + 1})  # and one submission
        assert len(found.latencies_ms) >= 3
        assert (found.submitted, found.run_seconds) == (0, [])
        return Tally()

    attack(server, work)
    assert server.requests["post /api/v1/executions http/1.1"] == 1


def test_a_closed_port_is_no_answer() -> None:
    async def refused() -> str:
        async with Server().listening() as port:
            pass
        try:
            await logins.Guessing(web=port, flower=port).prepare()
        except NoAnswer as error:
            return str(error)
        return ""

    assert asyncio.run(refused()) == "no connection: ConnectionRefusedError"
