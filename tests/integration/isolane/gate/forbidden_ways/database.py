"""Ways by a declared PostgreSQL: other logins, other databases, and what is not a session at all."""

import socket
import struct
from functools import partial

from tests.integration.isolane.gate.forbidden_ways.way import (
    Facts,
    NotReached,
    Way,
    judged,
    received,
    to_declared,
)

_VERSION = 196608  # 3.0
_CANCEL, _TLS, _GSS = 80877102, 80877103, 80877104
_AUTHENTICATION, _ERROR, _READY, _ROW = b"R", b"E", b"Z", b"D"
_MOST_MESSAGES = 100


def _sent_startup(sock: socket.socket, parameters: dict[str, str]) -> None:
    pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items())
    sock.sendall(struct.pack("!II", 9 + len(pairs), _VERSION) + pairs + b"\0")


def _message(sock: socket.socket) -> tuple[bytes, bytes]:
    kind = _exactly(sock, 1)
    (length,) = struct.unpack("!I", _exactly(sock, 4))
    return kind, _exactly(sock, length - 4)


def _exactly(sock: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = sock.recv(length - len(data))
        if not more:
            raise NotReached(f"the server left after {data!r}")
        data += more
    return data


def _until_ready(sock: socket.socket) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    for _ in range(_MOST_MESSAGES):
        kind, body = _message(sock)
        if kind == _ERROR:
            raise NotReached(f"refused: {body[:200]!r}")
        if kind == _AUTHENTICATION and body[:4] != bytes(4):
            raise NotReached("the server asks for a password")
        if kind == _READY:
            return found
        found.append((kind, body))
    raise NotReached("the server does not come to an end")


def _value(sock: socket.socket, query: str) -> str:
    """Return the first column of the first row."""
    packed = query.encode() + b"\0"
    sock.sendall(b"Q" + struct.pack("!I", 4 + len(packed)) + packed)
    for kind, body in _until_ready(sock):
        if kind == _ROW:
            (length,) = struct.unpack_from("!i", body, 2)
            return body[6 : 6 + max(length, 0)].decode()
    raise NotReached("no row")


def _session(facts: Facts, changes: dict[str, str], query: str, *, declared: str) -> str:
    """Begin a session with other parameters than the declared ones; its state must still be the declared one."""
    own = {"user": facts["database"]["user"], "database": facts["database"]["dbname"]}
    with to_declared(facts, "database") as sock:
        _sent_startup(sock, own | changes)
        _until_ready(sock)
        if (found := _value(sock, query)) != declared:
            return f"{query}: {found}"
    raise NotReached(f"it is {declared} all the same")


def _another_database(facts: Facts) -> str:
    declared = facts["database"]["dbname"]
    return _session(facts, {"database": "postgres"}, "SELECT current_database()", declared=declared)


def _no_database(facts: Facts) -> str:
    declared = facts["database"]["dbname"]
    return _session(facts, {"database": ""}, "SELECT current_database()", declared=declared)


def _another_user(name: str, facts: Facts) -> str:
    """`login` is the user of the remote server that the run has, if it is told."""
    declared = facts["database"].get("login", facts["database"]["user"])
    return _session(facts, {"user": name}, "SELECT session_user", declared=declared)


def _options(facts: Facts) -> str:
    """Become another role by the options of the session."""
    declared = facts["database"].get("login", facts["database"]["user"])
    changes = {"options": "-c role=postgres -c session_authorization=postgres"}
    return _session(facts, changes, "SELECT current_user", declared=declared)


def _replication(value: str, facts: Facts) -> str:
    """Begin a session that copies the whole server."""
    own = {"user": facts["database"]["user"], "database": facts["database"]["dbname"]}
    with to_declared(facts, "database") as sock:
        _sent_startup(sock, own | {"replication": value})
        _until_ready(sock)
        return _value(sock, "IDENTIFY_SYSTEM")


def _cancel(facts: Facts) -> str:
    """Ask to cancel statements of other sessions by guessed keys: the server never answers."""
    with to_declared(facts, "database") as sock:
        sock.sendall(struct.pack("!IIII", 16, _CANCEL, 1, 1))
        return judged(received(sock))


def _request(code: int, facts: Facts) -> str:
    """Ask for encryption, of which nothing is known inside."""
    with to_declared(facts, "database") as sock:
        sock.sendall(struct.pack("!II", 8, code))
        if (answer := sock.recv(1)) in (b"N", b""):
            raise NotReached(f"answered {answer!r}")
        if answer == _ERROR:
            raise NotReached("refused")
        return f"answered {answer!r}"


def _raw(sent: bytes, facts: Facts) -> str:
    with to_declared(facts, "database") as sock:
        sock.sendall(sent)
        return judged(received(sock))


def _from_the_server(query: str, facts: Facts) -> str:
    """Have the remote server itself reach something; what it may do is the matter of its login."""
    own = {"user": facts["database"]["user"], "database": facts["database"]["dbname"]}
    with to_declared(facts, "database") as sock:
        _sent_startup(sock, own)
        _until_ready(sock)
        return _value(sock, query)


_LONG = struct.pack("!II", 1 << 30, _VERSION)
_SHORT = struct.pack("!II", 4, _VERSION)
_FUTURE = struct.pack("!II", 9, 4 << 16) + b"\0"

DATABASE: dict[str, Way] = {
    "database_another": _another_database,
    "database_none": _no_database,
    "database_superuser": partial(_another_user, "postgres"),
    "database_no_user": partial(_another_user, ""),
    "database_options": _options,
    "database_replication": partial(_replication, "true"),
    "database_replication_of_one": partial(_replication, "database"),
    "database_cancel": _cancel,
    "database_tls": partial(_request, _TLS),
    "database_gss": partial(_request, _GSS),
    "database_http": partial(_raw, b"GET http://169.254.169.254/ HTTP/1.1\r\n\r\n"),
    "database_long_startup": partial(_raw, _LONG),
    "database_short_startup": partial(_raw, _SHORT),
    "database_future_version": partial(_raw, _FUTURE),
    "database_program": partial(_from_the_server, "COPY (SELECT 1) TO PROGRAM 'true'"),
    "database_file": partial(_from_the_server, "SELECT pg_read_file('/etc/hostname')"),
    "database_hashes": partial(_from_the_server, "SELECT passwd FROM pg_shadow LIMIT 1"),
}
