"""An HTTPS server that speaks HTTP/2 and nothing else."""

import asyncio
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from tests.tls_certificates import Certificate
from tests.tls_servers.endpoints import Body, Endpoints, Reply, Seen
from tests.tls_servers.server import LOOPBACK, TlsServer

_CHUNK = 65536


class Http2Server(TlsServer):
    """Has the endpoints of the HTTP/1.1 server; requests of one connection are answered at the same time."""

    protocols = ("h2",)

    def __init__(self, certificate: Certificate, *, host: str = LOOPBACK) -> None:
        super().__init__(certificate, host=host)
        self.endpoints = Endpoints()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the client leaves; a client that does not speak HTTP/2 is left."""
        connection = _Connection(self.endpoints, writer)
        try:
            await connection.run(reader)
        except h2.exceptions.ProtocolError:
            return


@dataclass
class _Stream:
    """A request that is still coming."""

    headers: tuple[tuple[str, str], ...]
    body: Body = field(default_factory=Body)


class _Connection:
    def __init__(self, endpoints: Endpoints, writer: asyncio.StreamWriter) -> None:
        self._endpoints = endpoints
        self._writer = writer
        self._protocol = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self._state = h2.connection.H2Connection(config=config)
        self._streams: dict[int, _Stream] = {}
        self._moved = asyncio.Condition()  # the client has made room
        self._answers: set[asyncio.Task[None]] = set()

    async def run(self, reader: asyncio.StreamReader) -> None:
        self._state.initiate_connection()
        await self._flush()
        try:
            while data := await reader.read(_CHUNK):
                for event in self._state.receive_data(data):
                    self._take(event)
                await self._flush()
                async with self._moved:
                    self._moved.notify_all()
        finally:
            for task in self._answers:
                task.cancel()
            await asyncio.gather(*self._answers, return_exceptions=True)

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            headers = tuple((_text(name), _text(value)) for name, value in event.headers)
            self._streams[event.stream_id] = _Stream(headers)
        elif isinstance(event, h2.events.DataReceived):
            self._streams[event.stream_id].body.add(event.data)
            self._state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream = self._streams.pop(event.stream_id)
            reply = self._endpoints.answer(self._seen(stream))
            task = asyncio.ensure_future(self._send(event.stream_id, reply))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    def _seen(self, stream: _Stream) -> Seen:
        named = dict(stream.headers)
        return Seen(
            version="HTTP/2",
            method=named[":method"],
            target=named[":path"],
            headers=stream.headers,
            protocol=self._protocol,
            body_bytes=stream.body.length,
            body_sha256=stream.body.sha256,
        )

    async def _send(self, number: int, reply: Reply) -> None:
        framing = () if reply.length is None else (("content-length", str(reply.length)),)
        self._state.send_headers(number, [(":status", str(reply.status)), *reply.headers, *framing])
        await self._flush()
        async for data in reply.body:
            await self._send_data(number, data)
        self._state.end_stream(number)
        await self._flush()

    async def _send_data(self, number: int, data: bytes) -> None:
        while data:
            async with self._moved:
                await self._moved.wait_for(lambda: self._state.local_flow_control_window(number))
            room = self._state.local_flow_control_window(number)
            size = min(room, self._state.max_outbound_frame_size)
            self._state.send_data(number, data[:size])
            data = data[size:]
            await self._flush()

    async def _flush(self) -> None:
        self._writer.write(self._state.data_to_send())
        await self._writer.drain()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
