"""The handshake of TLS with a remote server, over a connected socket.

Timing: a few round trips; the caller bounds them.
Model: asyncio; each step is done in a thread, since certificates may take long to verify.
Guarantee: the server has proved what the context demands; a server sends 24 KiB at most before it has.
Failure: ssl.SSLError, for the proof SSLCertVerificationError; other OSErrors. The socket stays the caller's.
"""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import NamedTuple

from resources.gate.brokers.share import Share

# From the server. An ordinary chain has 3 to 6 KiB; the time for verifying one grows with its square.
BYTES_MAX = 24 * 1024
_READ = 16 * 1024


@dataclass(frozen=True, kw_only=True)
class TlsClient:
    """This side of a handshake."""

    context: ssl.SSLContext
    host: str  # in the server's certificate
    share: Share  # of the run


class TlsSession(NamedTuple):
    """A handshake and all that follows it, with the bytes of TLS that have come and those to be sent."""

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


def without_slow_ciphers(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return this context without key exchanges whose size the server chooses: one step of 10,000 bits takes 0.65 s."""
    kept = [one["name"] for one in context.get_ciphers() if not one["name"].startswith("DHE-")]
    context.set_ciphers(":".join(kept))
    return context


async def shake_hands(connected: socket, client: TlsClient) -> TlsSession:
    """Agree on TLS with the server; what it has sent behind the handshake waits in `incoming`."""
    session = _begin(client)
    left = BYTES_MAX
    while not await _advance(session, client.share, connected):
        data = await asyncio.get_running_loop().sock_recv(connected, min(left, _READ))
        left -= len(data)
        if not data:
            raise ConnectionResetError("the server ended it during the handshake")
        if not left:
            raise _too_long()
        session.incoming.write(data)
    return session


def _begin(client: TlsClient) -> TlsSession:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client.context.wrap_bio(incoming, outgoing, server_hostname=client.host)
    return TlsSession(tls, incoming, outgoing)


async def _advance(session: TlsSession, share: Share, connected: socket) -> bool:
    """Take a step and send what follows from it; say whether it was the last."""
    try:
        is_last = await share.in_thread(partial(_step, session.tls))
    except ssl.SSLError:
        with contextlib.suppress(OSError):
            connected.send(session.outgoing.read())  # tells the server why
        raise
    await asyncio.get_running_loop().sock_sendall(connected, session.outgoing.read())
    return is_last


def _step(tls: ssl.SSLObject) -> bool:
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _too_long() -> ssl.SSLError:
    error = ssl.SSLError(f"a handshake of more than {BYTES_MAX // 1024} KiB")
    error.reason = "EXCESSIVE_MESSAGE_SIZE"  # as OpenSSL names its own limit
    return error
