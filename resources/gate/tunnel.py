"""A tunnel: the bytes of a connection as they are. TLS, if any, is between the run and the remote server.

Timing: as long as the connection.
Model: async, in the gate loop.
Guarantee: bytes in order, and the end of each direction behind its last one.
Failure: ConnectionEnded if there is no connection; OSError if one side breaks.
"""

from isolane.gate.connection import GateConnection
from isolane.gate.socket_relay import relay_socket
from resources.gate.brokers.base import Connect


async def tunnel(inside: GateConnection, connect: Connect) -> None:
    """Carry bytes until both directions have ended, and add nothing."""
    await relay_socket(inside, await connect())
