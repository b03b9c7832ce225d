"""Resolvers of secrets that the platform does not store: the interface, and the rules for a value."""

from abc import ABC, abstractmethod
from typing import ClassVar

from foundation.errors import IsolaneError

MIN_CHARACTERS = 6  # a shorter value cannot be masked
MAX_BYTES = 8 * 1024


class SecretUnavailable(IsolaneError):
    """A secret that a definition refers to cannot be resolved; the reference is named, never a value."""

    code = "secret_unavailable"
    http_status = 409
    title = "A secret is not available"


class SecretResolver(ABC):
    """Fetches the secrets of one scheme, in the worker; created once per process, keeps no value."""

    scheme: ClassVar[str]

    @abstractmethod
    def read(self, tenant: str, path: str) -> str:
        """Return the value of a path within this tenant's part; raises SecretUnavailable through `unavailable`."""

    def resolve(self, tenant: str, path: str) -> str:
        """Return the value after checking it."""
        try:
            value = self.read(tenant, path)
        except SecretUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - its text and its chain may contain a value
            raise self.unavailable(path, f"its resolver raised {type(error).__name__}") from None
        if reason := refusal_of(value):
            raise self.unavailable(path, reason)
        return value

    def unavailable(self, path: str, reason: str) -> SecretUnavailable:
        """Return the error to raise."""
        return SecretUnavailable(f"secret '{self.scheme}:{path}' is not available: {reason}.")


def refusal_of(value: object) -> str:
    """Return why a value cannot be a secret, without repeating it; empty if it can. Pure."""
    if not isinstance(value, str):
        return f"it is {type(value).__name__}, and must be text"
    if len(value) < MIN_CHARACTERS:
        return f"it has fewer than {MIN_CHARACTERS} characters, too few to be masked"
    if "\0" in value:
        return "it contains a NUL character"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "it is not text that UTF-8 can write"
    return f"it has {size} bytes; use at most {MAX_BYTES}" if size > MAX_BYTES else ""
