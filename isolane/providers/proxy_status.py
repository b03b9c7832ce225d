"""The header by which a gate says that it has no answer of the remote server (RFC 9209). Pure."""

import re

PROXY_STATUS = "Proxy-Status"
GATE = "isolane"
# Errors before anything was sent to the remote server.
NOT_CONNECTED = ("destination_unavailable", "tls_certificate_error", "destination_ip_prohibited")


_QUOTED = re.compile(r'; details="((?:[^"\\]|\\.)*)"')


def proxy_status(error: str, details: str) -> str:
    """Return the header's value; details are for people, in ASCII."""
    shown = "".join(c if " " <= c <= "~" else "?" for c in details)
    quoted = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'{GATE}; error={error}; details="{quoted}"'


def error_of(value: str) -> tuple[str, str]:
    """Return the error of a gate's header and its details; empty for another one."""
    name, _, rest = value.partition("; error=")
    error, _, _ = rest.partition(";")
    if name != GATE:
        return "", ""
    found = _QUOTED.search(rest)
    return error, re.sub(r"\\(.)", r"\1", found[1]) if found else ""
