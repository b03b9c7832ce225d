"""Where secrets that are not stored come from: the interface, and what a value must be like."""

from abc import ABC, abstractmethod
from typing import ClassVar

from foundation.errors import IsolaneError

MIN_CHARACTERS = 6  # what is shorter cannot be masked
MAX_BYTES = 8 * 1024


class SecretUnavailable(IsolaneError):
    """A secret that a definition refers to cannot be had; the reference is named, a value never."""

    code = "secret_unavailable"
    http_status = 409
    title = "A secret is not available"


class SecretResolver(ABC):
    """Fetches the secrets of one scheme, in the worker; made once per process, keeps no value."""

    scheme: ClassVar[str]

    @abstractmethod
    def read(self, tenant: str, path: str) -> str:
        """The value of a path in this tenant's part alone; raises SecretUnavailable through `unavailable`."""

    def resolve(self, tenant: str, path: str) -> str:
        """The value, checked."""
        try:
            value = self.read(tenant, path)
        except SecretUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - its text and its chain may hold a value
            raise self.unavailable(path, f"its resolver raised {type(error).__name__}") from None
        if reason := refusal_of(value):
            raise self.unavailable(path, reason)
        return value

    def unavailable(self, path: str, reason: str) -> SecretUnavailable:
        """The error to raise."""
        return SecretUnavailable(f"secret '{self.scheme}:{path}' is not available: {reason}.")


def refusal_of(value: object) -> str:
    """Why a value cannot be a secret, without telling it; empty if it can. Pure."""
    if not isinstance(value, str):
        return f"it is {type(value).__name__}, and must be text"
    if len(value) < MIN_CHARACTERS:
        return f"it has fewer than {MIN_CHARACTERS} characters, too few to be masked"
    if "\0" in value:
        return "it holds a NUL character"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "it is not text that UTF-8 can write"
    return f"it has {size} bytes; use at most {MAX_BYTES}" if size > MAX_BYTES else ""
