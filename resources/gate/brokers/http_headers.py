"""The rules for requests and headers that pass a broker of HTTP. Pure."""

from collections.abc import Iterable

from foundation.linear_h11 import LINES_MAX
from resources.gate.brokers.http_login import HttpLogin
from resources.gate.brokers.http_refused import HttpRefused
from resources.gate.record import ConnectionReason

Headers = list[tuple[bytes, bytes]]

HEADERS_MAX = 32 * 1024  # bytes of a request's line and headers
_NAMED_MAX = 1024  # characters of a Connection header
# TRACE and TRACK would send the secret back.
_REFUSED_METHODS = frozenset({b"CONNECT", b"TRACE", b"TRACK"})
_OF_ONE_CONNECTION = frozenset(
    {
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_FRAMING = (b"content-length", b"transfer-encoding")


def check_request(method: bytes, target: bytes, headers: Headers, login: HttpLogin) -> None:
    """Refuse a request that is too large, or that is not for this origin."""
    if len(method) + len(target) + sum(len(n) + len(v) for n, v in headers) > HEADERS_MAX:
        raise _refusal(431, f"the headers are longer than {HEADERS_MAX // 1024} KiB")
    if len(headers) > LINES_MAX:
        raise _refusal(431, f"there are more than {LINES_MAX} headers")
    if not _names_few(headers):
        raise _refusal(431, f"the Connection header is longer than {_NAMED_MAX} characters")
    if method.upper() in _REFUSED_METHODS:
        raise _refusal(405, f"{method.decode('ascii')} is not allowed here")
    if not target.startswith(b"/"):
        raise _refusal(400, "the target of a request must be a path that begins with a slash")
    hosts = [value.decode("ascii", "replace").lower() for name, value in headers if name == b"host"]
    if not hosts:
        raise _refusal(400, "the Host header is missing")
    if any(host not in {login.authority.lower(), login.place.lower()} for host in hosts):
        raise _refusal(
            421, f"this connection reaches {login.place} only; set the Host header to it"
        )


def request_headers(headers: Headers, login: HttpLogin) -> Headers:
    """Return the headers for the remote server: with its own name, the secret, and one framing."""
    mine = {b"host", b"expect", login.header.lower().encode(), *_FRAMING}
    kept = [line for line in _end_to_end(headers) if line[0].lower() not in mine]
    secret = [(login.header.encode(), login.value.encode())] if login.header else []
    return [(b"Host", login.authority.encode()), *kept, *secret, *_framing(headers)]


def response_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers for the run; a length that chunks have overruled is left out, and what only a gate says."""
    received = list(headers)
    if len(received) > LINES_MAX or not _names_few(received):
        raise _refusal(502, "the headers of the remote server's answer are too many or too long")
    is_chunked = any(name.lower() == b"transfer-encoding" for name, _ in received)
    dropped = {b"proxy-status", *([b"content-length"] if is_chunked else [])}
    return [line for line in _end_to_end(received) if line[0].lower() not in dropped]


def has_body(headers: Headers) -> bool:
    """Say whether a request with these headers announces a body."""
    return bool(_framing(headers))


def _framing(headers: Headers) -> Headers:
    # Chunks overrule a length; both together are a way to smuggle a second request.
    found = {name: value for name, value in headers if name in _FRAMING}
    if b"transfer-encoding" in found:
        return [(b"Transfer-Encoding", b"chunked")]
    return [(b"Content-Length", found[b"content-length"])] if b"content-length" in found else []


def _end_to_end(headers: Headers) -> Headers:
    named = {
        part.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for part in value.split(b",")
    }
    dropped = _OF_ONE_CONNECTION | named
    return [line for line in headers if line[0].lower() not in dropped]


def _names_few(headers: Headers) -> bool:
    named = (len(value) for name, value in headers if name.lower() == b"connection")
    return sum(named) <= _NAMED_MAX


def _refusal(status: int, answer: str) -> HttpRefused:
    reason = ConnectionReason.PROTOCOL if status == 502 else ConnectionReason.NOT_ALLOWED
    return HttpRefused(reason, status, answer)
