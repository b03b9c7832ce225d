"""The login at a PostgreSQL server over open streams, until the session is ready.

Timing: a few round trips; the caller bounds them.
Model: asyncio; hashing is done in a thread, where a server that asks for much delays logins of its tenant only.
Guarantee: the password goes to this server alone, and never in clear to one that has not proved its name.
Failure: PostgresRefusal, by the server or for its messages; OSError and EOFError if the connection breaks.
"""

import asyncio
import ssl
from dataclasses import dataclass
from functools import partial

from resources.gate.brokers.postgres_authentication import Authentication
from resources.gate.brokers.postgres_login import PostgresLogin, passed_on, unknown_options
from resources.gate.brokers.postgres_messages import (
    StartupPacket,
    message,
    negotiation,
    startup_packet,
)
from resources.gate.brokers.postgres_refusal import PostgresRefusal
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import Streams
from resources.gate.record import ConnectionReason

_MESSAGE_MAX = 64 * 1024  # bytes of one message during a login
_GREETING_MAX = 256 * 1024  # bytes of all messages between the authentication and ReadyForQuery
_MESSAGES_MAX = 1000  # of a login; each takes the loop some time, however small it is
_QUESTIONS_MAX = 8  # for authentication, and versions of the protocol
_OK = message(b"R", bytes(4))


@dataclass(frozen=True, kw_only=True)
class PostgresSession:
    """A session that is ready."""

    greeting: bytes  # the messages for the client, from AuthenticationOk to ReadyForQuery
    key: bytes  # that cancels its statements; empty if the server gave none


async def log_in(
    login: PostgresLogin, startup: StartupPacket, streams: Streams, share: Share
) -> PostgresSession:
    """Begin the session that the run asks for, as the login's user in its database.

    Logins with the same `share` hash one after the other, so that one tenant does not take all threads.
    """
    reader, writer = streams
    writer.write(startup_packet(startup.minor, passed_on(login, startup)))
    minor = await _authenticate(login, streams, share)
    greeting = bytearray()
    unknown = unknown_options(startup)
    if minor is not None or unknown:
        greeting += negotiation(startup.minor if minor is None else minor, unknown)
    greeting += _OK
    key = b""
    for _ in range(_MESSAGES_MAX):
        if len(greeting) > _GREETING_MAX:
            break
        kind, body = await _message(login, reader, share)
        if kind == b"E":
            raise PostgresRefusal.by_server(login.place, body)
        greeting += message(kind, body)
        if kind == b"K":
            key = body
        if kind == b"Z":
            return PostgresSession(greeting=bytes(greeting), key=key)
    raise _foreign(login)


async def _authenticate(login: PostgresLogin, streams: Streams, share: Share) -> int | None:
    """Answer until the server lets the user in; return the minor version of the protocol, if it named one."""
    reader, writer = streams
    authentication = Authentication(login, _certificate(writer))
    minor = None
    for _ in range(_QUESTIONS_MAX):
        await writer.drain()
        kind, body = await _message(login, reader, share)
        if kind == b"E":
            raise PostgresRefusal.by_server(login.place, body)
        if kind == b"v" and len(body) >= 4:
            minor = int.from_bytes(body[2:4], "big")
        elif kind == b"R" and body == bytes(4):
            authentication.finish()
            return minor
        elif kind == b"R" and len(body) >= 4:
            request = int.from_bytes(body[:4], "big")
            writer.write(await share.in_thread(partial(authentication.answer, request, body[4:])))
        else:
            break
    raise _foreign(login)


def _certificate(writer: asyncio.StreamWriter) -> bytes:
    tls: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    return (tls.getpeercert(binary_form=True) if tls else None) or b""


async def _message(
    login: PostgresLogin, reader: asyncio.StreamReader, share: Share
) -> tuple[bytes, bytes]:
    await share.turns.wait()  # many may be here already
    head = await reader.readexactly(5)
    length = int.from_bytes(head[1:], "big") - 4
    if not 0 <= length <= _MESSAGE_MAX:
        raise _foreign(login)
    return head[:1], await reader.readexactly(length)


def _foreign(login: PostgresLogin) -> PostgresRefusal:
    return PostgresRefusal.because(
        ConnectionReason.PROTOCOL,
        "08P01",
        f"{login.place} does not speak the protocol of PostgreSQL",
        "correct host and port of the definition",
    )
