"""HTTP clients of both providers: pinned, tagged, and without settings of the environment."""

from collections.abc import Generator, Mapping

import httpx

from isolane.providers.transport import IDEMPOTENT, PinnedTransport


def client(
    base_url: str,
    *,
    address: str,
    tag: str,
    timeout_s: float,
    connect_timeout_s: float,
    retries: int,
    retried: frozenset[str] = IDEMPOTENT,
    auth: tuple[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    ca: str = "",
    http2: bool = False,
    is_clear: bool = False,
) -> httpx.Client:
    """Return a client of the base URL; it connects on first use, and raises when it is used after closing.

    `auth` is the header line with the secret. A clear one speaks no TLS whatever the base URL says: the gate does.
    """
    transport = PinnedTransport(
        base_url,
        address=address,
        timeout_s=timeout_s,
        retries=retries,
        retried=retried,
        ca=ca,
        http2=http2,
        is_clear=is_clear,
    )
    return httpx.Client(
        base_url=base_url,
        auth=_HeaderAuth(*auth) if auth else None,
        headers={**(headers or {}), "User-Agent": f"isolane {tag}"},
        timeout=httpx.Timeout(timeout_s, connect=connect_timeout_s),
        transport=transport,
        follow_redirects=False,
        trust_env=False,
    )


class _HeaderAuth(httpx.Auth):
    """Puts a secret into one header of every request."""

    def __init__(self, header: str, value: str) -> None:
        self._header = header
        self._value = value

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header."""
        request.headers[self._header] = self._value
        yield request
