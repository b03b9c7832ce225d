"""The broker of HTTP services: a run asks in clear, the remote server is asked in TLS and with the secret.

Requests and answers are parsed and written anew, so that nothing can be smuggled past the rules. A run that ends its
direction after a request counts as gone. WebSockets and other upgrades are out of scope, trailers are dropped.
A client that speaks TLS itself gets a tunnel to the remote server, without the secret.

Timing: as long as the connection of the run.
Model: async; one request at a time.
Guarantee: a request goes to the resource's own origin only; the run's header of the secret's name is replaced.
Failure: ConnectionEnded, after an answer that says why if none has begun; errors of the run's connection bubble.
"""

import asyncio
import contextlib
import ssl
from functools import lru_cache

from foundation.linear_h11 import h11
from isolane.providers.certificates import client_context
from resources.gate.brokers.base import Broker, Connect, RunConnection
from resources.gate.brokers.begun import BegunConnection
from resources.gate.brokers.http_headers import check_request, has_body, response_headers
from resources.gate.brokers.http_inside import HttpInside
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.http_refused import HttpRefused
from resources.gate.brokers.http_remote import HttpRemote
from resources.gate.brokers.relay import relay
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import opened
from resources.gate.brokers.tls_handshake import TlsClient, without_slow_ciphers
from resources.gate.record import ConnectionEnded, ConnectionReason

_TLS_RECORD = b"\x16\x03"  # of a handshake; no method of HTTP begins so


class HttpBroker(Broker):
    """Serves connections to one HTTP service."""

    def __init__(self, login: HttpLogin, share: Share) -> None:
        self._login = login
        self._share = share
        self._tls: TlsClient | None = None
        if login.scheme == "https":
            # Loaded before there is a connection: it takes 20 ms, in which the gate could not serve others.
            self._tls = TlsClient(
                context=_context(login.ca, http2=login.http2), host=login.host, share=share
            )

    async def serve(self, inside: RunConnection, connect: Connect) -> None:
        """Answer the requests of a run, one after the other, over one connection to the remote server."""
        first = await inside.read()
        if first.startswith(_TLS_RECORD):
            async with opened(await connect(), None, inside.charge) as streams:
                await relay(BegunConnection(inside, first), *streams)
        elif first:
            await self._answer_all(BegunConnection(inside, first), connect)

    async def _answer_all(self, inside: RunConnection, connect: Connect) -> None:
        client = HttpInside(inside, self._share)
        remote = HttpRemote(self._login, self._tls, connect, inside.charge, self._share)
        try:
            while request := await client.next_request():
                await self._exchange(client, remote, request)
                if not client.may_go_on:
                    return await client.drain()
        except HttpRefused as refused:
            refused.has_carried = remote.has_sent
            if await client.refuse(refused):
                await client.drain()
            raise
        finally:
            try:
                await client.close()
            finally:
                await remote.close()

    async def _exchange(self, client: HttpInside, remote: HttpRemote, request: h11.Request) -> None:
        """Answer one request, or end when the run does not wait for the answer."""
        check_request(request.method, request.target, list(request.headers), self._login)
        answering = asyncio.ensure_future(_answer(client, remote, request))
        leaving = asyncio.ensure_future(client.left())
        gone = asyncio.ensure_future(
            client.gone()
        )  # also while it sends, and the server does not read
        tasks = (answering, leaving, gone)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                if leaving.done():
                    leaving.result()
                raise ConnectionEnded(ConnectionReason.RESET, "the run left before the answer")
            answering.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _answer(client: HttpInside, remote: HttpRemote, request: h11.Request) -> None:
    headers = list(request.headers)
    async with contextlib.aclosing(client.body()) as body:
        if not has_body(headers):
            await anext(body, None)  # its end, which nobody else reads
        response = await remote.send(request.method, request.target, headers, body)
    reason = response.extensions.get("reason_phrase", b"")
    await client.answer(response.status, reason, response_headers(response.headers))
    async with contextlib.aclosing(remote.parts(response)) as parts:
        async for part in parts:
            await client.send(part)
    await client.end_answer()


@lru_cache(maxsize=64)
def _context(ca: str, *, http2: bool) -> ssl.SSLContext:
    context = client_context(ca)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    return without_slow_ciphers(context)
