"""The broker of PostgreSQL: logs in for a run, whose client connects in clear and without a password.

Timing: the login, until the session is ready, takes `connect_timeout_s` at most; then as long as the session.
Model: asyncio; one object per route, which remembers the keys of its open sessions, for cancel requests.
Guarantee: user and database are the definition's; the password is in no byte that goes to the run.
Failure: the client gets an ErrorResponse and ConnectionEnded is raised; OSError once the session has begun.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from resources.gate.brokers.base import Broker, Charge, Connect, RunConnection
from resources.gate.brokers.first_bytes import FirstBytes
from resources.gate.brokers.postgres_login import PostgresLogin, passed_on
from resources.gate.brokers.postgres_messages import (
    CancelPacket,
    EncryptionPacket,
    FirstPacket,
    Malformed,
    StartupPacket,
    cancel_packet,
    first_length,
    first_packet,
)
from resources.gate.brokers.postgres_refusal import PostgresRefusal
from resources.gate.brokers.postgres_remote import remote_streams
from resources.gate.brokers.postgres_session import PostgresSession, log_in
from resources.gate.brokers.relay import relay
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import Streams, tls_context
from resources.gate.brokers.tls_handshake import TlsClient
from resources.gate.record import ConnectionEnded, ConnectionReason

_QUESTIONS = 2  # for encryption: TLS, then GSSAPI


class PostgresBroker(Broker):
    """Serves sessions and cancel requests of one resource."""

    def __init__(self, login: PostgresLogin, share: Share) -> None:
        self._login = login
        self._share = share
        self._tls: TlsClient | None = None
        if login.proof is not None:
            # Takes 20 ms, in which the gate could not serve others.
            context = tls_context(login.proof, login.ca)
            self._tls = TlsClient(context=context, host=login.host, share=share)
        self._keys: set[bytes] = set()

    async def serve(self, inside: RunConnection, connect: Connect) -> None:
        """Log in and relay, or cancel a statement."""
        try:
            await self._serve(inside, connect)
        except PostgresRefusal as refusal:
            with contextlib.suppress(ConnectionResetError):
                await inside.write(refusal.answer)
                inside.write_eof()
            raise

    async def _serve(self, inside: RunConnection, connect: Connect) -> None:
        deadline = asyncio.get_running_loop().time() + self._login.connect_timeout_s
        run = FirstBytes(inside)
        async with self._in_time(deadline, "the run has sent no startup packet"):
            first = await _wish(run)
        if isinstance(first, CancelPacket):
            await self._cancel(first.key, connect, inside.charge, deadline)
            inside.write_eof()  # the answer: clients wait for the end
        elif isinstance(first, StartupPacket):
            passed_on(self._login, first)  # refused before anything is connected
            await self._relay(run, first, connect, deadline)

    async def _relay(
        self, run: FirstBytes, startup: StartupPacket, connect: Connect, deadline: float
    ) -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with self._in_time(deadline, f"{self._login.place} did not answer"):
                remote = remote_streams(self._login, connect, self._tls, run.inside.charge)
                streams = await stack.enter_async_context(remote)
                session = await self._log_in(startup, streams)
            stack.enter_context(self._kept(session.key))
            reader, writer = streams
            await run.inside.write(session.greeting)
            writer.write(run.rest)
            await relay(run.inside, reader, writer)

    async def _log_in(self, startup: StartupPacket, streams: Streams) -> PostgresSession:
        try:
            return await log_in(self._login, startup, streams, self._share)
        except (OSError, EOFError):
            raise PostgresRefusal.because(
                ConnectionReason.UNREACHABLE,
                "08006",
                f"{self._login.place} ended the connection during the login",
                "see whether the server runs, and its log",
            ) from None

    async def _cancel(self, key: bytes, connect: Connect, charge: Charge, deadline: float) -> None:
        """Pass a cancel request on, for a session of this object only."""
        if key not in self._keys:
            raise ConnectionEnded(
                ConnectionReason.PROTOCOL, "a cancel request for no open session of this resource"
            )
        async with (
            self._in_time(deadline, f"{self._login.place} did not answer"),
            remote_streams(self._login, connect, self._tls, charge) as (reader, writer),
        ):
            writer.write(cancel_packet(key))
            with contextlib.suppress(OSError):
                await reader.read(1)  # it ends the connection when it has acted

    @contextlib.contextmanager
    def _kept(self, key: bytes) -> Iterator[None]:
        self._keys.add(key)
        try:
            yield
        finally:
            self._keys.discard(key)

    @contextlib.asynccontextmanager
    async def _in_time(self, deadline: float, otherwise: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            raise PostgresRefusal.because(
                ConnectionReason.UNREACHABLE,
                "08001",
                f"{otherwise} within {self._login.connect_timeout_s} s",
                "see that the server runs, or raise the definition's connect_timeout_s",
            ) from None


async def _wish(run: FirstBytes) -> FirstPacket | None:
    """Return what the client wants; None if it has left."""
    try:
        return await _first_packet(run)
    except Malformed as error:
        raise PostgresRefusal.because(
            ConnectionReason.PROTOCOL, "08P01", str(error), "connect with sslmode=disable"
        ) from None


async def _first_packet(run: FirstBytes) -> FirstPacket | None:
    """Decline encryption until another packet comes: this end is the run's own."""
    for _ in range(_QUESTIONS + 1):
        if not (head := await run.exactly(4)):
            return None
        length = first_length(head)
        if len(body := await run.exactly(length)) < length:
            raise Malformed("the client has left within its startup packet")
        packet = first_packet(body)
        if not isinstance(packet, EncryptionPacket):
            return packet
        await run.inside.write(b"N")
    raise Malformed("the client asks for encryption again and again")
