"""TLS in front of real servers that were built without it: PostgreSQL, and Redis or Valkey."""

import asyncio
import contextlib
import struct

from tests.tls_certificates import Certificate
from tests.tls_servers.server import LOOPBACK, TlsServer

_CHUNK = 65536
_SSL_REQUEST = struct.pack("!II", 8, 80877103)


class TlsRelay(TlsServer):
    """Passes on, in clear, what comes over TLS."""

    def __init__(
        self, certificate: Certificate, *, to_host: str, to_port: int, host: str = LOOPBACK
    ) -> None:
        super().__init__(certificate, host=host)
        self._to = (to_host, to_port)  # as in libpq, a host that begins with a slash is a folder

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay until one side has ended: TLS has no half-closed connections that all clients know."""
        far_reader, far_writer = await self._far()
        ways = {
            asyncio.ensure_future(_relay(reader, far_writer)),
            asyncio.ensure_future(_relay(far_reader, writer)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            far_writer.close()  # before anything is waited for: the block may end meanwhile
            await asyncio.gather(*ways, return_exceptions=True)
            with contextlib.suppress(OSError):
                await far_writer.wait_closed()

    async def _far(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._to
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)


class TlsRedis(TlsRelay):
    """Redis or Valkey behind TLS."""


class TlsPostgres(TlsRelay):
    """PostgreSQL behind TLS; who does not ask for TLS is turned away, as by `hostssl`."""

    def __init__(
        self, certificate: Certificate, *, to_host: str, to_port: int, host: str = LOOPBACK
    ) -> None:
        super().__init__(certificate, to_host=to_host, to_port=to_port, host=host)
        self.in_clear = 0  # connections that did not ask for TLS

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Agree to TLS if that is what the client asks for."""
        if await reader.readexactly(len(_SSL_REQUEST)) != _SSL_REQUEST:
            self.in_clear += 1
            return False
        writer.write(b"S")
        await writer.drain()
        return True


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
