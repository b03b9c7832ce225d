"""HTTP clients of both providers: pinned, tagged, and without settings of the environment."""

from collections.abc import Generator, Mapping

import httpx

from isolane.providers.headers import is_value
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
    auth: httpx.Auth | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Client:
    """Return a client of the base URL; it connects on first use, and raises when it is used after closing."""
    transport = PinnedTransport(
        base_url, address=address, timeout_s=timeout_s, retries=retries, retried=retried
    )
    return httpx.Client(
        base_url=base_url,
        auth=auth,
        headers={**(headers or {}), "User-Agent": f"isolane {tag}"},
        timeout=httpx.Timeout(timeout_s, connect=connect_timeout_s),
        transport=transport,
        follow_redirects=False,
        trust_env=False,
    )


class HeaderAuth(httpx.Auth):
    """Puts a secret into one header of every request."""

    def __init__(self, header: str, value: str) -> None:
        if not is_value(value):
            raise ValueError("the secret has a character that no header can carry")
        self._header = header
        self._value = value

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header."""
        request.headers[self._header] = self._value
        yield request
