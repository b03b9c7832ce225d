"""The origin of an HTTP resource, and the header that logs in there. Pure."""

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from isolane.protocol import Grant
from isolane.providers import http_api, model
from isolane.providers.http_api import HttpApiConfig
from isolane.providers.model import ModelConfig
from isolane.shapes import build

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class HttpLogin:
    """One origin, and the header of every request to it; for the worker alone."""

    scheme: Literal["http", "https"]
    host: str  # without the brackets of an IPv6 address
    port: int
    header: str = ""  # its name; empty if there is none
    value: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)  # authorities as PEM; empty for the public ones
    http2: bool = False  # for a server that has it

    @property
    def place(self) -> str:
        """Return host and port, for people."""
        return f"{self._host}:{self.port}"

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        return self._host if self.port == _PORTS[self.scheme] else self.place

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def http_login(grant: Grant) -> HttpLogin:
    """Return the login of a grant whose secrets have not been taken out yet."""
    if grant.type == "http_api":
        api: HttpApiConfig = build(HttpApiConfig, grant.config, "config")
        line = http_api.auth_header(api, grant.secrets)
        return _login(api.base_url, api.ca, line, http2=api.http2)
    if grant.type == "model":
        chat: ModelConfig = build(ModelConfig, grant.config, "config")
        if chat.provider == "openai":
            return _login(chat.base_url, chat.ca, model.auth_header(grant.secrets))
    raise ValueError(f"definition {grant.definition}: type {grant.type} has no HTTP server here")


def _login(
    base_url: str, ca: str, line: tuple[str, str] | None, *, http2: bool = False
) -> HttpLogin:
    parts = urlsplit(base_url)
    header, value = line or ("", "")
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return HttpLogin(
        scheme=scheme,
        host=parts.hostname or "",
        port=parts.port or _PORTS[scheme],
        header=header,
        value=value,
        ca=ca,
        http2=http2,
    )
