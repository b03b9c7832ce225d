"""An HTTPS server that speaks HTTP/1.1."""

import asyncio
from http import HTTPStatus

from tests.tls_certificates import Certificate
from tests.tls_servers.endpoints import Body, Endpoints, Reply, Seen
from tests.tls_servers.server import LOOPBACK, TlsServer

_CHUNK = 65536


class HttpsServer(TlsServer):
    """Answers one request after the other; only the target's path is looked at, so that odd ones are echoed."""

    protocols: tuple[str, ...] = ("http/1.1",)

    def __init__(self, certificate: Certificate, *, host: str = LOOPBACK) -> None:
        super().__init__(certificate, host=host)
        self.endpoints = Endpoints()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the client has no more requests, or sends what is none."""
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ValueError, LookupError):
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            await writer.drain()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return True if there may be another one."""
        if not (line := await reader.readline()):
            return False
        method, target, version = line.decode("latin-1").split()
        headers = await _headers(reader)
        named = dict(headers)
        body = await _body(named, reader, writer)
        seen = Seen(
            version=version,
            method=method,
            target=target,
            headers=headers,
            protocol=writer.get_extra_info("ssl_object").selected_alpn_protocol(),
            body_bytes=body.length,
            body_sha256=body.sha256,
        )
        await _send(self.endpoints.answer(seen), writer, with_body=method != "HEAD")
        return version == "HTTP/1.1" and named.get("connection", "").lower() != "close"


async def _headers(reader: asyncio.StreamReader) -> tuple[tuple[str, str], ...]:
    found = []
    while (line := (await reader.readline()).strip()) != b"":
        name, _, value = line.decode("latin-1").partition(":")
        found.append((name.lower(), value.strip()))
    return tuple(found)


async def _body(
    headers: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Body:
    body = Body()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if headers.get("transfer-encoding", "").lower() != "chunked":
        await _take(int(headers.get("content-length", 0)), reader, body)
        return body
    while size := int((await reader.readline()).split(b";")[0], 16):
        await _take(size, reader, body)
        await reader.readline()
    await _headers(reader)  # trailers
    return body


async def _take(left: int, reader: asyncio.StreamReader, body: Body) -> None:
    while left > 0:
        data = await reader.read(min(left, _CHUNK))
        if not data:
            raise EOFError
        body.add(data)
        left -= len(data)


async def _send(reply: Reply, writer: asyncio.StreamWriter, *, with_body: bool) -> None:
    framing = ("content-length", str(reply.length))
    if reply.length is None:
        framing = ("transfer-encoding", "chunked")
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in (*reply.headers, framing)]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    if with_body:
        async for data in reply.body:
            writer.write(data if reply.length is not None else b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
        if reply.length is None:
            writer.write(b"0\r\n\r\n")
    await writer.drain()
