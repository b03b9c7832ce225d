"""isolane.gate.forwarder: listeners, names and the last bytes, outside of a sandbox."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import pytest

from isolane.channel import channel_pair
from isolane.gate import forwarder as module
from isolane.gate.forwarder import _Forwarder
from isolane.gate.frames import FROM_FORWARDER, WINDOW, FrameKind, GateFrame
from isolane.gate.routes import Listener, LoopbackPair, RouteTable
from tests.unit.isolane.gate.ends import SECONDS, End, until
from tests.unit.isolane.gate.test_dns import AAAA, A, a_query

PAIR = LoopbackPair("127.77.0.1", "fd69:736f:6c61:6e65::1")
HOST = "api.example.com"
Test = Callable[["Served"], Awaitable[object]]


class Served:
    """A forwarder that serves, and the worker's end of its channel."""

    def __init__(self, worker: End, nameserver: socket.socket, port: int) -> None:
        self.worker = worker
        self.port = port
        self._client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._client.setblocking(False)
        self._client.connect(nameserver.getsockname())

    async def send_routes(self) -> None:
        """Tell it its run, and wait until it listens."""
        table = RouteTable(listeners=(Listener(0, PAIR, self.port),), names={HOST: PAIR})
        self.worker.multiplexer.send(GateFrame(FrameKind.ROUTES, data=table.encode()))
        await until(lambda: self.count(FrameKind.LISTENING))

    async def ask(self, query: bytes) -> bytes:
        """Return the answer to a query."""
        self._client.send(query)
        return await asyncio.get_running_loop().sock_recv(self._client, 4096)

    def close(self) -> None:
        """Ask nothing more."""
        self._client.close()

    def count(self, kind: FrameKind) -> int:
        """Return how many frames of a kind have come."""
        return sum(frame.kind is kind for frame in self.worker.frames)

    async def connect(self) -> socket.socket:
        """Connect as a program of the run does."""
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (PAIR.v4, self.port))
        return sock


@pytest.fixture(autouse=True)
def listening(monkeypatch: pytest.MonkeyPatch) -> list[socket.socket]:
    """The sockets of a forwarder, which leaves them to the end of its process."""
    found: list[socket.socket] = []
    real = module._listening

    def listen(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        found.append(real(family, address, port))
        return found[-1]

    monkeypatch.setattr(module, "_listening", listen)
    return found


def served(test: Test, listening: list[socket.socket], *, has_routes: bool = True) -> None:
    """Run a test with a forwarder that has one route, or knows no run yet."""

    async def whole() -> None:
        ours, theirs = channel_pair()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nameserver:
            nameserver.setblocking(False)
            nameserver.bind(("127.0.0.1", 0))
            with socket.create_server((PAIR.v4, 0)) as free:
                port = free.getsockname()[1]

            def take(frame: GateFrame) -> None:
                if frame.kind is FrameKind.DIAL:
                    worker.multiplexer.open(frame.connection)

            worker = End(ours, accepted=FROM_FORWARDER, on_frame=take)
            serving = asyncio.ensure_future(_Forwarder(theirs, nameserver).serve())
            found = Served(worker, nameserver, port)
            with contextlib.closing(found):
                if has_routes:
                    await found.send_routes()
                await test(found)
                worker.multiplexer.close()
                await serving
                for sock in (nameserver, *listening):
                    asyncio.get_running_loop().remove_reader(sock)
                    sock.close()

    async def in_time() -> None:
        async with asyncio.timeout(SECONDS):
            await whole()

    asyncio.run(in_time())


def test_one_that_was_started_before_its_run_answers_once_it_knows_it(
    listening: list[socket.socket],
) -> None:
    async def test(found: Served) -> None:
        asked = asyncio.ensure_future(found.ask(a_query(HOST, A)))
        for _ in range(100):
            await asyncio.sleep(0)
        assert (listening, asked.done(), found.worker.frames) == ([], False, [])
        await found.send_routes()
        assert (await asked)[-4:] == socket.inet_aton(PAIR.v4)
        with await found.connect():
            await until(lambda: found.count(FrameKind.DIAL))

    served(test, listening, has_routes=False)


def test_without_ipv6_the_rest_works(
    monkeypatch: pytest.MonkeyPatch, listening: list[socket.socket]
) -> None:
    real = module._listening

    def without(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError("no such family")
        return real(family, address, port)

    monkeypatch.setattr(module, "_listening", without)

    async def test(found: Served) -> None:
        assert (await found.ask(a_query(HOST, A)))[-4:] == socket.inet_aton(PAIR.v4)
        assert (await found.ask(a_query(HOST, AAAA)))[6:8] == b"\0\0"  # no answer, and no error
        with await found.connect():
            await until(lambda: found.count(FrameKind.DIAL))

    served(test, listening)


def test_a_name_that_is_asked_for_again_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, listening: list[socket.socket]
) -> None:
    monkeypatch.setattr(module, "_REFUSED_MOST", 3)

    async def test(found: Served) -> None:
        for name in ("a.org", "a.org", "A.org", "b.org", "c.org", "d.org"):
            await found.ask(a_query(name, A))
            await found.ask(a_query(name, AAAA))
        found.worker.multiplexer.send(GateFrame(FrameKind.FLUSH))
        await until(lambda: found.count(FrameKind.FLUSHED))
        named = [one.data for one in found.worker.frames if one.kind is FrameKind.REFUSED_NAME]
        assert named == [b"a.org", b"b.org", b"c.org"]

    served(test, listening)


def test_a_flush_comes_behind_all_that_programs_have_sent(listening: list[socket.socket]) -> None:
    async def test(found: Served) -> None:
        with await found.connect() as idle, await found.connect() as sock:
            sock.send(b"last words")
            sock.close()
            found.worker.multiplexer.send(GateFrame(FrameKind.FLUSH))  # before they are accepted
            await until(lambda: found.count(FrameKind.FLUSHED))
            sent, kept = sorted(
                found.worker.multiplexer.connections.values(), key=lambda one: -one.received
            )
            assert (sent.received, sent.has_ended) == (10, True)
            assert (kept.received, kept.has_ended) == (0, False)
            idle.close()

    served(test, listening)


def test_a_flush_waits_for_credit(listening: list[socket.socket]) -> None:
    async def test(found: Served) -> None:
        with await found.connect() as sock:
            await asyncio.get_running_loop().sock_sendall(sock, bytes(WINDOW + 1))
            sock.close()
            found.worker.multiplexer.send(GateFrame(FrameKind.FLUSH))
            await until(lambda: found.worker.multiplexer.connections)
            (connection,) = found.worker.multiplexer.connections.values()
            await until(lambda: connection.received == WINDOW)
            for _ in range(100):
                await asyncio.sleep(0)
            assert not found.count(FrameKind.FLUSHED)
            while await connection.read():
                pass
            await until(lambda: found.count(FrameKind.FLUSHED))
            assert connection.received == WINDOW + 1

    served(test, listening)


def test_a_connection_that_its_program_has_closed_waits_for_no_server(
    listening: list[socket.socket],
) -> None:
    async def test(found: Served) -> None:
        with await found.connect() as half, await found.connect() as closed:
            half.send(b"a question that takes long")
            half.shutdown(socket.SHUT_WR)
            closed.send(b"another one")
            closed.close()
            await until(lambda: len(found.worker.multiplexer.connections) == 2)
            waiting, left = found.worker.multiplexer.connections.values()
            await until(lambda: left.has_left)
            assert await left.read() == b"another one"
            for _ in range(100):
                await asyncio.sleep(0.001)
            assert not waiting.is_reset
            await waiting.write(b"its answer")
            assert await asyncio.get_running_loop().sock_recv(half, 100) == b"its answer"

    served(test, listening)


def test_nor_does_one_that_was_closed_while_nobody_read_it(
    monkeypatch: pytest.MonkeyPatch, listening: list[socket.socket]
) -> None:
    monkeypatch.setattr(module, "_LOOK_SELDOM", 0.05)
    monkeypatch.setattr(module, "_STALLED_SECONDS", 0.1)

    async def fill(sock: socket.socket) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                while True:
                    await asyncio.get_running_loop().sock_sendall(sock, bytes(WINDOW))

    async def test(found: Served) -> None:
        with await found.connect() as waiting, await found.connect() as closed:
            await asyncio.gather(fill(waiting), fill(closed))
            kept, left = found.worker.multiplexer.connections.values()
            closed.close()
            await until(lambda: left.is_reset)
            for _ in range(300):  # many looks
                await asyncio.sleep(0.001)
            assert not kept.is_reset

    served(test, listening)
