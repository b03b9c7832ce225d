"""The transport of a connected socket, in clear or with TLS.

Timing: the handshake of TLS, if any; the caller bounds it.
Model: asyncio.
Guarantee: the socket belongs to the transport, or is closed; nothing is sent before the server has proved itself.
Failure: as the handshake's.
"""

import asyncio
from socket import socket

from resources.gate.brokers.base import Charge
from resources.gate.brokers.tls_handshake import TlsClient, shake_hands
from resources.gate.brokers.tls_transport import TlsTransport


async def open_transport(
    connected: socket,
    protocol: asyncio.Protocol,
    tls: TlsClient | None,
    *,
    charge: Charge,
    close_seconds: float,
) -> asyncio.Transport:
    """Return the transport that serves this protocol; with TLS it closes within so many seconds.

    `charge` counts what TLS has beside the data that the protocol gets.
    """
    try:
        connected.setblocking(False)  # noqa: FBT003 - it has no keyword
        if tls is None:
            return await _attached(connected, protocol)
        session = await shake_hands(connected, tls)
        transport = TlsTransport(
            session, protocol, turns=tls.share.turns, charge=charge, close_seconds=close_seconds
        )
        await _attached(connected, transport)
    except BaseException:
        # If asyncio had a transport already it has closed it, and the loop does not look at the descriptor any more.
        connected.close()
        raise
    return transport


async def _attached(connected: socket, protocol: asyncio.Protocol) -> asyncio.Transport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(lambda: protocol, sock=connected)
    return transport
