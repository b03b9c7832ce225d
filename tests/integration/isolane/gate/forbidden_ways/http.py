"""Ways by a declared HTTP resource: requests that mean another server than the one that is declared."""

from functools import partial

from tests.forbidden_targets import REACHED
from tests.integration.isolane.gate.forbidden_ways.way import (
    Facts,
    Way,
    connected,
    greeted,
    judged,
    received,
    to_declared,
)

_TARGET = "169.254.169.254"
_END = "\r\nConnection: close\r\n\r\n"
# `{host}` is the declared name, with its port.
_REQUESTS = {
    "absolute_form": f"GET http://{_TARGET}/latest HTTP/1.1\r\nHost: {_TARGET}",
    "absolute_form_with_right_host": f"GET http://{_TARGET}/latest HTTP/1.1\r\nHost: {{host}}",
    "absolute_form_encrypted": f"GET https://{_TARGET}/latest HTTP/1.1\r\nHost: {{host}}",
    "foreign_host": f"GET / HTTP/1.1\r\nHost: {_TARGET}",
    "foreign_host_and_port": f"GET / HTTP/1.1\r\nHost: {_TARGET}:80",
    "two_hosts": f"GET / HTTP/1.1\r\nHost: {{host}}\r\nHost: {_TARGET}",
    "two_hosts_in_one": f"GET / HTTP/1.1\r\nHost: {{host}}, {_TARGET}",
    "folded_host": f"GET / HTTP/1.1\r\nHost: {{host}}\r\n {_TARGET}",
    "host_with_blank": f"GET / HTTP/1.1\r\nHost : {_TARGET}",
    "no_host": "GET / HTTP/1.1\r\nAccept: */*",
    "old_version": f"GET http://{_TARGET}/ HTTP/1.0",
    "oldest_version": "GET /",
    "userinfo": f"GET http://{{host}}@{_TARGET}/ HTTP/1.1\r\nHost: {{host}}",
    "userinfo_in_path": f"GET @{_TARGET}/ HTTP/1.1\r\nHost: {{host}}",
    "userinfo_in_host": f"GET / HTTP/1.1\r\nHost: {{host}}@{_TARGET}",
    "two_slashes": f"GET //{_TARGET}/latest HTTP/1.1\r\nHost: {{host}}",
    "backslashes": f"GET \\\\{_TARGET}\\latest HTTP/1.1\r\nHost: {{host}}",
    "fragment": f"GET http://{_TARGET}#@{{host}}/ HTTP/1.1\r\nHost: {{host}}",
    "connect": f"CONNECT {_TARGET}:80 HTTP/1.1\r\nHost: {_TARGET}:80",
    "asterisk": f"OPTIONS * HTTP/1.1\r\nHost: {_TARGET}",
    "forwarded": (
        f"GET / HTTP/1.1\r\nHost: {{host}}\r\nX-Forwarded-Host: {_TARGET}\r\nForwarded: host={_TARGET}"
    ),
    "redirect": f"GET /redirect?to=http://{_TARGET}/latest HTTP/1.1\r\nHost: {{host}}",
    "redirect_to_name": "GET /redirect?to=http://undeclared.example/ HTTP/1.1\r\nHost: {host}",
    "redirect_to_file": "GET /redirect?to=file:///etc/hostname HTTP/1.1\r\nHost: {host}",
    "upgrade": "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c",
    "smuggled": (
        "POST /upload HTTP/1.1\r\nHost: {host}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
        f"0\r\n\r\nGET http://{_TARGET}/ HTTP/1.1\r\nHost: {_TARGET}"
    ),
}
_RAW = {
    "second_request": (
        f"GET / HTTP/1.1\r\nHost: {{host}}\r\n\r\nGET http://{_TARGET}/ HTTP/1.1\r\nHost: {_TARGET}{_END}"
    ),
    "socks": "\x05\x01\x00\x05\x01\x00\x01\xa9\xfe\xa9\xfe\x00\x50",
    "socks4": "\x04\x01\x00\x50\xa9\xfe\xa9\xfe\x00",
    "proxy_protocol": f"PROXY TCP4 {_TARGET} {_TARGET} 1 80\r\nGET / HTTP/1.1\r\nHost: {{host}}{_END}",
}


def _request(text: str, facts: Facts) -> str:
    return _raw(text + _END, facts)


def _raw(text: str, facts: Facts) -> str:
    return greeted(to_declared(facts, "http"), sent=_filled(text, facts))


def _filled(text: str, facts: Facts) -> bytes:
    declared = "{host}:{port}".format(**facts["http"])
    return text.replace("{host}", declared).encode("latin-1")


def _connect_then_ask(facts: Facts) -> str:
    """Ask through the tunnel that a proxy would have made, whatever the answer was."""
    with to_declared(facts, "http") as sock:
        sock.sendall(f"CONNECT {_TARGET}:80 HTTP/1.1\r\nHost: {_TARGET}:80\r\n\r\n".encode())
        told = sock.recv(4096)
        if REACHED not in told:
            sock.sendall(f"GET / HTTP/1.1\r\nHost: {_TARGET}{_END}".encode())
            told += received(sock)
        return judged(told)


def _follow_a_redirect(facts: Facts) -> str:
    """Follow it as clients do, by a connection of their own."""
    with to_declared(facts, "http") as sock:
        sock.sendall(_filled(_REQUESTS["redirect"] + _END, facts))
        received(sock)
    return greeted(connected(_TARGET, 80))


def _tls(facts: Facts) -> str:
    """Speak TLS, and ask for another server in the handshake, which a router by name would follow."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with to_declared(facts, "http") as plain:
        with context.wrap_socket(plain, server_hostname="undeclared.example") as sock:
            return greeted(sock, sent=f"GET / HTTP/1.1\r\nHost: {_TARGET}{_END}".encode())


HTTP: dict[str, Way] = {
    **{f"http_{name}": partial(_request, text) for name, text in _REQUESTS.items()},
    **{f"http_{name}": partial(_raw, text) for name, text in _RAW.items()},
    "http_connect_then_ask": _connect_then_ask,
    "http_follow_a_redirect": _follow_a_redirect,
    "http_tls_for_another_name": _tls,
}
