"""The base URL that a definition names. Pure."""

import re
from urllib.parse import urlsplit

# So plain that no two readers of URLs take it for different places: the worker allows what the runtime connects to.
_PLACE = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?")


def fault_in(base_url: str) -> str:
    """Say what is wrong with a base URL, without showing it if it may hold a password; nothing if all is well."""
    try:
        parts = urlsplit(base_url)
        _ = parts.port  # raises if it is none
    except ValueError:
        return "is no URL"
    if "@" in parts.netloc:
        return "holds a user or a password; put it into a secret, and say so with auth"
    if parts.scheme not in ("http", "https") or not _PLACE.fullmatch(parts.netloc):
        return f"{base_url[:200]!r} is no URL such as https://api.example.com/v1"
    if "?" in base_url or "#" in base_url:
        return f"{base_url[:200]!r} has a query or a fragment; a request says these itself"
    if not base_url.isascii() or any(one <= " " or one == "\\" for one in base_url):
        return f"{base_url[:200]!r} has a blank, a backslash, a control or a non-ASCII character"
    return ""
