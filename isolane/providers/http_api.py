"""The type `http_api`: a client of one HTTP service."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from isolane.protocol import Grant
from isolane.providers import certificates, urls
from isolane.providers import headers as header_lines
from isolane.providers.base import Provider
from isolane.shapes import build

if TYPE_CHECKING:
    import httpx

TIMEOUT_MAX = 600.0  # seconds
CONNECT_TIMEOUT_MAX = 60.0
RETRIES_MAX = 5


@dataclass(frozen=True, kw_only=True)
class HttpApiConfig:
    """The config of a definition of this type."""

    base_url: str
    auth: Literal["none", "bearer", "basic", "header"] = "none"
    user: str = ""  # with `basic`
    header: str = ""  # with `header`: its name
    headers: dict[str, str] = field(default_factory=dict)  # of every request
    timeout_s: float = 10.0  # of a request, with all its tries, to the last byte of its answer
    connect_timeout_s: float = 5.0
    retries: int = 0  # of GET, HEAD, OPTIONS, PUT and DELETE
    credentials: Literal["brokered", "inside"] = "brokered"  # where runs have a gate
    ca: str = ""  # certificates in PEM: the only authorities to trust; empty for the public ones
    http2: bool = False  # with a server that has it

    def __post_init__(self) -> None:
        if fault := urls.fault_in(self.base_url):
            raise ValueError(f"base_url: {fault}")
        if fault := header_lines.fault_in(self.headers):
            raise ValueError(f"headers: {fault}")
        check_times(self.timeout_s, self.connect_timeout_s, self.retries)
        check_ca(self.ca, self.base_url)
        if self.http2 and not has_tls(self.base_url):
            raise ValueError("http2: needs a base_url with https")
        self._check_auth()

    def _check_auth(self) -> None:
        for name, kind in (("user", "basic"), ("header", "header")):
            value = getattr(self, name)
            if self.auth == kind and not value:
                raise ValueError(f"{name}: missing, auth {kind} needs it")
            if self.auth != kind and value:
                raise ValueError(f"{name}: only auth {kind} takes one, auth is {self.auth}")
        if ":" in self.user or not self.user.isprintable():
            raise ValueError(f"user: {self.user[:64]!r} has a colon or a control character")
        if self.header and (fault := header_lines.fault_in({self.header: ""})):
            raise ValueError(f"header: {fault}")


class HttpApi(Provider["httpx.Client"]):
    """Opens `httpx.Client`s."""

    type = "http_api"
    config = HttpApiConfig
    drivers = ("isolane.providers.client",)
    secrets: ClassVar[Mapping[str, str]] = {
        "token": "the bearer token, the password of basic auth, or the header's value"
    }

    def check_definition(self, config: Any, secrets: frozenset[str]) -> None:
        """Refuse a secret that nothing uses, and auth without one."""
        if config.auth == "none" and "token" in secrets:
            raise ValueError("auth: is none, but there is a secret; use bearer, basic or header")
        if config.auth != "none" and "token" not in secrets:
            raise ValueError(f"secrets: auth {config.auth} needs the secret token")

    def create(self, grant: Grant, tag: str) -> "httpx.Client":
        """Create a client; it connects on first use."""
        from isolane.providers.client import client  # noqa: PLC0415 - the driver, see base

        config: HttpApiConfig = build(HttpApiConfig, grant.config, "config")
        return client(
            config.base_url,
            address=grant.address,
            tag=tag,
            timeout_s=config.timeout_s,
            connect_timeout_s=config.connect_timeout_s,
            retries=config.retries,
            auth=None if grant.brokered else auth_header(config, grant.secrets),
            headers=config.headers,
            ca=config.ca,
            http2=config.http2,
            is_clear=grant.brokered,
        )

    def check(self, handle: "httpx.Client") -> dict[str, Any]:
        """Request the base URL; any answer is a sign of life."""
        return {"status": status_of(handle, "HEAD", "")}

    def dispose(self, handle: "httpx.Client") -> None:
        """Close all its connections; it raises when it is used afterwards."""
        handle.close()


def check_times(timeout_s: float, connect_timeout_s: float, retries: int) -> None:
    """Refuse timeouts and retries that no step could wait for."""
    if not 0 < timeout_s <= TIMEOUT_MAX:
        raise ValueError(f"timeout_s: {timeout_s} is not above 0 and at most {TIMEOUT_MAX:g}")
    if not 0 < connect_timeout_s <= CONNECT_TIMEOUT_MAX:
        limit = f"above 0 and at most {CONNECT_TIMEOUT_MAX:g}"
        raise ValueError(f"connect_timeout_s: {connect_timeout_s} is not {limit}")
    if not 0 <= retries <= RETRIES_MAX:
        raise ValueError(f"retries: {retries} is not between 0 and {RETRIES_MAX}")


def has_tls(base_url: str) -> bool:
    """Say whether connections to this base URL begin with TLS."""
    return base_url.startswith("https:")


def check_ca(ca: str, base_url: str) -> None:
    """Refuse certificates that nothing can use."""
    if ca and not has_tls(base_url):
        raise ValueError("ca: needs a base_url with https")
    if ca and (fault := certificates.fault_in(ca)):
        raise ValueError(f"ca: {fault}")


def auth_header(config: HttpApiConfig, secrets: Mapping[str, str]) -> tuple[str, str] | None:
    """Return name and value of the header that carries the secret, if there is one."""
    match config.auth:
        case "none":
            return None
        case "basic":
            login = base64.b64encode(f"{config.user}:{secrets['token']}".encode()).decode()
            return header_lines.secret_line("Authorization", f"Basic {login}")
        case "bearer":
            return header_lines.secret_line("Authorization", f"Bearer {secrets['token']}")
        case "header":
            return header_lines.secret_line(config.header, secrets["token"])


def status_of(client: "httpx.Client", method: str, path: str) -> int:
    """Return the status of a remote server's answer, without reading a body that may have no end."""
    import httpx  # noqa: PLC0415 - the driver, see base

    from isolane.providers.failures import of_error  # noqa: PLC0415 - imports the driver

    try:
        with client.stream(method, path) as response:
            if method == "HEAD":  # read to its end, so that the connection can be reused
                response.read()
            return response.status_code
    except httpx.HTTPError as error:
        raise of_error(f"{method} {client.base_url.path}{path}", error) from error
