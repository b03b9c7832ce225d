"""The type `model`: chat sessions with one language model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from isolane.protocol import Grant
from isolane.providers import headers, urls
from isolane.providers.base import Provider
from isolane.providers.chat import ChatSession, EchoSession
from isolane.providers.http_api import check_ca, check_times
from isolane.shapes import build

_CONNECT_TIMEOUT = 5.0  # seconds


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The config of a definition of this type."""

    provider: Literal["openai", "echo"]  # echo: answers with the question, without a network
    model: str
    base_url: str = ""  # of the API, as in https://api.openai.com/v1
    timeout_s: float = 60.0  # of an answer, with all its tries
    retries: int = (
        0  # after broken connections, 502, 503 and 504; an answer may then be paid for twice
    )
    credentials: Literal["brokered", "inside"] = "brokered"  # where runs have a gate
    ca: str = ""  # certificates in PEM: the only authorities to trust; empty for the public ones

    def __post_init__(self) -> None:
        if not self.model or len(self.model) > 200 or not self.model.isprintable():
            raise ValueError(f"model: {self.model[:200]!r} is not the name of a model")
        check_times(self.timeout_s, _CONNECT_TIMEOUT, self.retries)
        if self.provider == "openai" and (fault := urls.fault_in(self.base_url)):
            raise ValueError(f"base_url: {fault}")
        if self.provider == "echo" and self.base_url:
            raise ValueError("base_url: the provider echo takes none")
        check_ca(self.ca, self.base_url)


class Model(Provider[ChatSession]):
    """Opens chat sessions."""

    type = "model"
    config = ModelConfig
    drivers = ("isolane.providers.client", "isolane.providers.openai_chat")
    secrets: ClassVar[Mapping[str, str]] = {"api_key": "the key of the API, if it needs one"}

    def check_definition(self, config: Any, secrets: frozenset[str]) -> None:
        """Refuse a key that nothing uses."""
        if config.provider == "echo" and secrets:
            raise ValueError("secrets: the provider echo takes none")

    def create(self, grant: Grant, tag: str) -> ChatSession:
        """Open a session; it connects on first use."""
        config: ModelConfig = build(ModelConfig, grant.config, "config")
        return (
            EchoSession(config.model) if config.provider == "echo" else _openai(config, grant, tag)
        )

    def check(self, handle: ChatSession) -> dict[str, Any]:
        """Ask for a sign of life."""
        return handle.check()

    def dispose(self, handle: ChatSession) -> None:
        """Close its connections; it raises when it is used afterwards."""
        handle.close()


def auth_header(secrets: Mapping[str, str]) -> tuple[str, str] | None:
    """Return name and value of the header that carries the key, if there is one."""
    key = secrets.get("api_key")
    return headers.secret_line("Authorization", f"Bearer {key}") if key else None


def _openai(config: ModelConfig, grant: Grant, tag: str) -> ChatSession:
    from isolane.providers.client import client  # noqa: PLC0415 - the driver, see base
    from isolane.providers.openai_chat import OpenAIChat  # noqa: PLC0415 - likewise
    from isolane.providers.transport import IDEMPOTENT  # noqa: PLC0415 - likewise

    http = client(
        config.base_url,
        address=grant.address,
        tag=tag,
        timeout_s=config.timeout_s,
        connect_timeout_s=min(_CONNECT_TIMEOUT, config.timeout_s),
        retries=config.retries,
        retried=IDEMPOTENT | {"POST"},
        auth=None if grant.brokered else auth_header(grant.secrets),
        ca=config.ca,
        is_clear=grant.brokered,
    )
    return OpenAIChat(http, config.model)
