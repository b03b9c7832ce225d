"""Connect to a route's remote server, at the address that was checked.

Timing: `CONNECT_SECONDS` at most.
Model: asyncio; the check asks DNS for the platform's own names now and then, and so has a thread.
Guarantee: the address is checked again at every connection, and no name is resolved here.
Failure: ConnectionEnded.
"""

import asyncio
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from foundation.errors import IsolaneError
from resources.addresses import AddressRefused, check_address, policy_from_settings
from resources.gate.plan import Route
from resources.gate.record import ConnectionEnded, ConnectionReason

CONNECT_SECONDS = 10.0
_NO_ANSWER = f"no answer within {CONNECT_SECONDS:g} s"
# Bytes that the kernel keeps for a server or a run that does not read: by itself megabytes for each connection.
_KEPT = 256 * 1024
_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_RCVBUF, _KEPT),
    (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KEPT),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
_checking = ThreadPoolExecutor(4, thread_name_prefix="isolane-check")  # of nobody else


async def dial(route: Route) -> socket.socket:
    """Return a connected socket."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            if not route.is_platforms:
                await asyncio.get_running_loop().run_in_executor(_checking, _check, route)
            return await _connected(route.address, route.server_port)
    except OSError as error:  # TimeoutError is one; so is a worker without descriptors
        # Of the number: asyncio's text has the address, which is not for the run.
        reason = os.strerror(error.errno) if error.errno else _NO_ANSWER
        raise ConnectionEnded(
            ConnectionReason.UNREACHABLE, f"{route.host}:{route.port} cannot be reached: {reason}"
        ) from None


async def _connected(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        for option in _OPTIONS:
            sock.setsockopt(*option)
        await asyncio.get_running_loop().sock_connect(sock, (address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def _check(route: Route) -> None:
    try:
        check_address(route.host, route.port, route.address, policy_from_settings())
    except IsolaneError as error:
        reason = f" ({error.reason})" if isinstance(error, AddressRefused) else ""
        raise ConnectionEnded(ConnectionReason.ADDRESS_REFUSED, f"{error}{reason}") from None
