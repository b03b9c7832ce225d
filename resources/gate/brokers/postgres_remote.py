"""The connection to a PostgreSQL server, with TLS as its sslmode says.

Timing: as long as the block; the caller bounds its beginning.
Model: asyncio.
Guarantee: nothing but the question for TLS is sent before the server has proved what its sslmode demands.
Failure: PostgresRefusal that names the way out; ConnectionEnded if the address is refused.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from socket import socket

from resources.gate.brokers.base import Charge, Connect
from resources.gate.brokers.postgres_login import PostgresLogin
from resources.gate.brokers.postgres_messages import error_response, tls_packet
from resources.gate.brokers.postgres_refusal import PostgresRefusal
from resources.gate.brokers.streams import Streams, cause, opened
from resources.gate.brokers.tls_handshake import TlsClient
from resources.gate.record import ConnectionEnded, ConnectionReason

_WAY_OUT = "correct host and port of the definition, or see that the server runs"


@contextlib.asynccontextmanager
async def remote_streams(
    login: PostgresLogin, connect: Connect, tls: TlsClient | None, charge: Charge
) -> AsyncIterator[Streams]:
    """Yield the streams to the server of a login, with `tls` if there is one and the server agrees."""
    async with contextlib.AsyncExitStack() as stack:
        with _refusals(login):
            connected = await connect()
            try:
                has_tls = tls is not None and await _agrees_to_tls(login, connected)
            except BaseException:
                connected.close()
                raise
            streams = await stack.enter_async_context(
                opened(connected, tls if has_tls else None, charge)
            )
        yield streams


async def _agrees_to_tls(login: PostgresLogin, connected: socket) -> bool:
    loop = asyncio.get_running_loop()
    connected.setblocking(False)  # noqa: FBT003 - it has no keyword
    await loop.sock_sendall(connected, tls_packet())
    # One byte and no more: what somebody slips in behind it must not count as sent within TLS.
    answer = await loop.sock_recv(connected, 1)
    if answer == b"N" and login.needs_tls:
        raise PostgresRefusal.because(
            ConnectionReason.CERTIFICATE,
            "08001",
            f"{login.place} has no TLS, and the definition's sslmode is {login.sslmode}",
            "let the server have TLS, or set sslmode to prefer",
        )
    if answer not in (b"S", b"N"):
        raise ConnectionResetError("it did not say whether it has TLS")
    return answer == b"S"


@contextlib.contextmanager
def _refusals(login: PostgresLogin) -> Iterator[None]:
    """Raise what goes wrong as PostgresRefusal; addresses are not named to the run."""
    try:
        yield
    except PostgresRefusal:
        raise
    except ConnectionEnded as ended:
        if ended.reason is not ConnectionReason.ADDRESS_REFUSED:
            raise PostgresRefusal.because(ended.reason, "08001", str(ended), _WAY_OUT) from None
        # Why it is not allowed is for operators only.
        not_allowed = f"{login.place} may not be connected to: its address is not allowed"
        answer = error_response("08001", not_allowed, "ask the platform's operator")
        raise PostgresRefusal(ended.reason, str(ended), answer) from None
    except ssl.SSLCertVerificationError as error:
        raise PostgresRefusal.because(
            ConnectionReason.CERTIFICATE,
            "08001",
            f"the certificate of {login.place} is not accepted: {error.verify_message}",
            "correct the definition's host, or give the server's authority in its ca",
        ) from None
    except OSError as error:
        raise PostgresRefusal.because(
            ConnectionReason.UNREACHABLE,
            "08001",
            f"{login.place} cannot be reached: {cause(error)}",
            _WAY_OUT,
        ) from None
