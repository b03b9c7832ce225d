"""The end of a broker's HTTP connection that speaks to the remote server: HTTP/2 if that was agreed on, else HTTP/1.1.

Timing: a handshake takes 10 s at most; an answer takes as long as the remote server.
Model: async; one request at a time, on one connection, which is replaced if the server has ended it between two.
Guarantee: a certificate is checked before the first byte of a request is sent; no request is sent twice.
Failure: HttpRefused before an answer, ConnectionEnded in the middle of it; neither names a secret.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator

import h2.exceptions
import httpcore

from foundation.linear_h11 import h11
from resources.gate.brokers.base import Charge, Connect
from resources.gate.brokers.http_headers import Headers, has_body, request_headers
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.http_refused import HttpRefused
from resources.gate.brokers.remote_stream import RemoteStream
from resources.gate.brokers.share import Share
from resources.gate.brokers.streams import cause
from resources.gate.brokers.tls_handshake import TlsClient
from resources.gate.brokers.transport import open_transport
from resources.gate.record import ConnectionEnded, ConnectionReason

_HANDSHAKE = 10.0  # seconds
_CLOSING = 1.0
# Of OpenSSL: the certificate is of a trusted authority, for another host name or address.
_OTHER_NAMES = (62, 64)
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
)  # of OpenSSL: the first bytes are something else
# All that httpcore raises for a connection, with what it lets through.
_BROKEN = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ConnectionNotAvailable,
    h2.exceptions.H2Error,
    h11.ProtocolError,
    ValueError,  # a status that is no number
)

_Http = httpcore.AsyncHTTP11Connection | httpcore.AsyncHTTP2Connection


class HttpRemote:
    """Sends requests to the one origin of a resource."""

    def __init__(
        self,
        login: HttpLogin,
        tls: TlsClient | None,
        connect: Connect,
        charge: Charge,
        share: Share,
    ) -> None:
        self._charge = charge
        self._share = share
        self.has_sent = False  # any request
        self._login = login
        self._tls = tls
        self._connect = connect
        self._stream: RemoteStream | None = None
        self._http: _Http | None = None

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: AsyncIterator[bytes]
    ) -> httpcore.Response:
        """Send a request from a run; return the answer, whose body is still to be read."""
        login = self._login
        request = httpcore.Request(
            method=method,
            url=httpcore.URL(
                scheme=login.scheme.encode(),
                host=login.host.encode(),
                port=login.port,
                target=target,
            ),
            headers=request_headers(headers, login),
            content=body if has_body(headers) else None,
        )
        http, stream = await self._ready()
        self.has_sent = True
        stream.begin_answer()
        try:
            response = await http.handle_async_request(request)
        except _BROKEN as error:
            raise self._no_answer(type(error).__name__) from None
        if response.status < 200:
            raise self._no_answer(f"status {response.status}")
        return response

    async def parts(self, response: httpcore.Response) -> AsyncGenerator[bytes]:
        """Yield the answer's body as it comes."""
        try:
            async for part in response.aiter_stream():
                if self._stream:
                    self._stream.note_body(len(part))
                yield part
                # Parts may be many and small, and nothing else waits for them.
                await self._share.turns.wait()
        except _BROKEN as error:
            raise ConnectionEnded(
                ConnectionReason.SERVER_RESET,
                f"{self._login.place} broke off an answer: {type(error).__name__}",
            ) from None
        finally:
            if self._stream:
                self._stream.charge_overhead()
            await response.aclose()

    async def close(self) -> None:
        """End the connection, if there is one."""
        if self._stream:
            await self._stream.aclose()
        self._stream = self._http = None

    async def _ready(self) -> tuple[_Http, RemoteStream]:
        if self._http is None or self._stream is None or self._is_over(self._http):
            await self.close()
            self._stream = await self._connected()
            origin = httpcore.Origin(
                self._login.scheme.encode(), self._login.host.encode(), self._login.port
            )
            is_2 = self._stream.protocol == "h2"
            kind = httpcore.AsyncHTTP2Connection if is_2 else httpcore.AsyncHTTP11Connection
            self._http = kind(origin=origin, stream=self._stream)
        return self._http, self._stream

    def _is_over(self, http: _Http) -> bool:
        has_ended = self._stream is not None and self._stream.has_ended
        return has_ended or not http.is_available() or http.has_expired()

    async def _connected(self) -> RemoteStream:
        try:
            return await self._opened()
        except ConnectionEnded as error:
            # Why an address is not allowed is for operators only.
            is_refused = error.reason is ConnectionReason.ADDRESS_REFUSED
            not_allowed = f"{self._login.place} may not be connected to: its address is not allowed"
            answer = not_allowed if is_refused else str(error)
            raise HttpRefused(error.reason, 502, answer, message=str(error)) from None
        except ssl.SSLCertVerificationError as error:
            raise HttpRefused(ConnectionReason.CERTIFICATE, 502, self._distrust(error)) from None
        except ssl.SSLError as error:
            answer = f"TLS with {self._login.place} failed: {_fault(error)}"
            raise HttpRefused(ConnectionReason.PROTOCOL, 502, answer) from None
        except OSError as error:
            answer = f"{self._login.place} cannot be reached: {cause(error)}"
            raise HttpRefused(ConnectionReason.UNREACHABLE, 502, answer) from None

    async def _opened(self) -> RemoteStream:
        sock, stream = await self._connect(), RemoteStream(self._charge, self._share)
        async with asyncio.timeout(_HANDSHAKE):
            await open_transport(
                sock, stream, self._tls, charge=self._charge, close_seconds=_CLOSING
            )
        return stream

    def _distrust(self, error: ssl.SSLCertVerificationError) -> str:
        way_out = "; set ca in the definition to the certificates of its authority, in PEM"
        reason = error.verify_message.rstrip(".")
        if error.verify_code in _OTHER_NAMES:
            way_out = "; correct the host in base_url"
        return f"the certificate of {self._login.place} is not trusted: {reason}{way_out}"

    def _no_answer(self, reason: str) -> HttpRefused:
        was_left = self._stream is not None and self._stream.was_left
        return HttpRefused(
            ConnectionReason.SERVER_RESET if was_left else ConnectionReason.PROTOCOL,
            502,
            f"{self._login.place} gave no answer: {reason}",
        )


def _fault(error: ssl.SSLError) -> str:
    if error.reason in _NOT_TLS:
        return "the server does not speak it there; use http:// in base_url, or correct the port"
    return error.reason or "no handshake"
