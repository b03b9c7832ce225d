"""The rules for the base URL of a definition. Pure."""

import re
from urllib.parse import urlsplit

# So simple that no two URL parsers read it differently: the worker allows the host that the runtime connects to.
_PLACE = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?")


def fault_in(base_url: str) -> str:
    """Return what is wrong with a base URL, without repeating a password; empty if nothing is."""
    try:
        parts = urlsplit(base_url)
        _ = parts.port  # raises if it is invalid
    except ValueError:
        return "is not a URL"
    if "@" in parts.netloc:
        return "contains a user or a password; put it into a secret, and set auth"
    if parts.scheme not in ("http", "https") or not _PLACE.fullmatch(parts.netloc):
        return f"{base_url[:200]!r} is not a URL such as https://api.example.com/v1"
    if "?" in base_url or "#" in base_url:
        return f"{base_url[:200]!r} has a query or a fragment; set these in the request"
    if not base_url.isascii() or any(one <= " " or one == "\\" for one in base_url):
        return f"{base_url[:200]!r} has a space, a backslash, a control or a non-ASCII character"
    return ""
