"""The transport of an HTTP client: to the base URL's origin only, within one timeout, retried only if safe.

No redirect carries credentials away: scheme, host and port are fixed. Only methods in `retried` are sent again, and
only after a broken connection, 502, 503 or 504.

Timing: one timeout for all tries, up to the answer's last byte; up to 2 s pass between two tries.
Model: blocking, in the calling thread; safe from any number of threads.
Guarantee: nothing goes to another origin; a request that may have had an effect is not sent twice.
Failure: httpx's errors, and the last answer or error of all tries; POLICY_VIOLATION for another origin.
"""

import ssl
import time
from collections.abc import Iterator
from http import HTTPStatus

import httpcore
import httpx

from isolane.providers.certificates import client_context
from isolane.providers.pinned import PinnedBackend
from isolane.providers.proxy_status import NOT_CONNECTED, PROXY_STATUS, error_of
from isolane.results import Code, StepError

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_PASSING = frozenset({502, 503, 504})
_BROKEN = (httpx.NetworkError, httpx.ConnectTimeout, httpx.RemoteProtocolError)
_FIRST_DELAY = 0.1  # seconds, doubled by each try
_LONGEST_DELAY = 2.0
_PORTS = {"http": 80, "https": 443}
_CONNECTIONS = 10  # at once, of one client
_IDLE_SECONDS = 4.0  # of a connection that is used again; servers wait five and more


class PinnedTransport(httpx.HTTPTransport):
    """An httpx transport to one origin."""

    def __init__(
        self,
        base_url: str,
        *,
        address: str,
        timeout_s: float,
        retries: int = 0,
        retried: frozenset[str] = IDEMPOTENT,
        ca: str = "",
        http2: bool = False,
        is_clear: bool = False,
    ) -> None:
        self._origin = origin_of(httpx.URL(base_url))
        self._timeout_s = timeout_s
        self._retries = retries
        self._retried = retried
        scheme, host, port = self._origin
        self._backend = PinnedBackend(host=host, port=port, address=address, is_clear=is_clear)
        context = _context(ca, has_tls=scheme == "https" and not is_clear)
        super().__init__(verify=context, trust_env=False)
        # httpx has no parameter for the network backend; its own pool has connected to nothing yet.
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_CONNECTIONS,
            # With HTTP/2 nobody looks if the server has ended an idle one.
            keepalive_expiry=_IDLE_SECONDS,
            http2=http2 and not is_clear,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, whose body is still to be read."""
        self._refuse_elsewhere(request.url)
        deadline = time.monotonic() + self._timeout_s
        tries = self._retries if self._may_repeat(request) else 0
        with self._backend.until(deadline):
            response = self._sent(request, tries, deadline)
        response.stream = _Body(response, self._backend, deadline)
        return response

    def close(self) -> None:
        """End every connection for good."""
        self._backend.close()
        super().close()

    def _sent(self, request: httpx.Request, tries: int, deadline: float) -> httpx.Response:
        number = 0
        while True:
            try:
                response = super().handle_request(request)
                if self._backend.is_clear:  # to a gate; without one, nobody's word counts as its
                    _raise_if_no_answer(response)
            except _BROKEN:
                if number >= tries or not _waited(number, deadline):
                    raise
            else:
                passing = response.status_code in _PASSING and number < tries
                if not passing or not _waited(number, deadline):
                    return response
                response.close()
            number += 1

    def _refuse_elsewhere(self, url: httpx.URL) -> None:
        if (origin := origin_of(url)) != self._origin:
            raise StepError(
                Code.POLICY_VIOLATION,
                f"{_shown(origin)} is not {_shown(self._origin)}, the only origin that this resource reaches; "
                "another one needs a definition of its own",
            )

    def _may_repeat(self, request: httpx.Request) -> bool:
        # A body that comes from a generator is gone after the first try.
        return request.method in self._retried and isinstance(request.stream, httpx.ByteStream)


class _Body(httpx.SyncByteStream):
    """The body of an answer, read within the request's timeout."""

    def __init__(self, response: httpx.Response, backend: PinnedBackend, deadline: float) -> None:
        assert isinstance(response.stream, httpx.SyncByteStream)  # noqa: S101 - tells mypy, as httpx does
        self._inner = response.stream
        self._backend = backend
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        parts = iter(self._inner)
        while True:
            with self._backend.until(self._deadline):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def close(self) -> None:
        """Return the connection to the pool, or close it if not all was read."""
        self._inner.close()


def _raise_if_no_answer(response: httpx.Response) -> None:
    """Raise as if there were no gate where it has no answer of the remote server."""
    error, reason = error_of(response.headers.get(PROXY_STATUS, ""))
    if error and response.status_code == HTTPStatus.BAD_GATEWAY:
        response.read()
        raise (httpx.ConnectError if error in NOT_CONNECTED else httpx.RemoteProtocolError)(reason)


def origin_of(url: httpx.URL) -> tuple[str, str, int]:
    """Return scheme, host and port, with the default port if the URL has none."""
    return url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS.get(url.scheme, 0)


def _waited(number: int, deadline: float) -> bool:
    """Wait before the next try; false if there is no time for it."""
    delay = min(_FIRST_DELAY * 2**number, _LONGEST_DELAY)
    if time.monotonic() + delay >= deadline:
        return False
    time.sleep(delay)
    return True


def _context(ca: str, *, has_tls: bool) -> ssl.SSLContext:
    # Certificates are loaded only if they are used: it takes 20 ms. The bare context trusts no one.
    if has_tls:
        return client_context(ca)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _shown(origin: tuple[str, str, int]) -> str:
    scheme, host, port = origin
    return f"{scheme}://{host}:{port}" if port != _PORTS.get(scheme, 0) else f"{scheme}://{host}"
