"""Which header lines people may choose. Pure."""

import re
from collections.abc import Mapping

# What the platform says itself, what belongs to a secret, and what frames a message.
RESERVED = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "host",
        "idempotency-key",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?|")


def fault_in(headers: Mapping[str, str]) -> str:
    """Say what is wrong with header lines, never with their values; nothing if all is well."""
    for name, value in headers.items():
        if not is_name(name):
            return f"{name[:64]!r} is no name of a header"
        if name.lower() in RESERVED:
            return f"{name!r} cannot be set here"
        if not is_value(value):
            return f"the value of {name!r} is no printable ASCII, or begins or ends with a blank"
    return ""


def is_name(name: str) -> bool:
    """Say whether a header can have this name."""
    return _NAME.fullmatch(name) is not None


def is_value(value: str) -> bool:
    """Say whether a header can carry this value as it is."""
    return _VALUE.fullmatch(value) is not None
