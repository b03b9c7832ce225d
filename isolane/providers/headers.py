"""The header lines that definitions and steps may set. Pure."""

import re
from collections.abc import Mapping

# Set by the platform itself, carrying a secret, or framing a message.
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
    """Return what is wrong with header lines, without their values; empty if nothing is."""
    for name, value in headers.items():
        if not is_name(name):
            return f"{name[:64]!r} is not the name of a header"
        if name.lower() in RESERVED:
            return f"{name!r} cannot be set here"
        if not is_value(value):
            return f"the value of {name!r} is not printable ASCII, or begins or ends with a space"
    return ""


def is_name(name: str) -> bool:
    """Say whether a header can have this name."""
    return _NAME.fullmatch(name) is not None


def is_value(value: str) -> bool:
    """Say whether a header can carry this value as it is."""
    return _VALUE.fullmatch(value) is not None


def secret_line(name: str, value: str) -> tuple[str, str]:
    """Return the header line with a secret, or refuse a secret without repeating it."""
    if not is_value(value):
        raise ValueError("the secret has a character that no header can carry")
    return name, value
