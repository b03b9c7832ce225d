"""Ways by the name system: names that nobody declared, and questions that a resolver may stumble over."""

import socket
import struct
from functools import partial
from pathlib import Path

from tests.integration.isolane.gate.forbidden_ways.way import (
    SECONDS,
    Facts,
    NotReached,
    Way,
    first_reached,
    received,
)

UNDECLARED = (
    "undeclared.example",
    "metadata.google.internal",
    "169.254.169.254.nip.io",
    "localhost.localdomain",
    "kubernetes.default.svc",
    "xn--80ak6aa92e.com",
    "\u0430\u0440\u0440\u04cf\u0435.com",
)
_A, _PTR, _TXT, _AAAA, _AXFR, _ANY = 1, 12, 16, 28, 252, 255
_INSIDE, _PUBLIC, _STUB = "127.0.0.1", "8.8.8.8", "127.0.0.53"
_HEAD = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0)


def _resolved(name: str, facts: Facts) -> str:
    try:
        return f"{socket.getaddrinfo(name, 443)}"
    except (socket.gaierror, UnicodeError) as error:
        raise NotReached(f"no address: {error}") from None


def _by_the_old_call(facts: Facts) -> str:
    try:
        return socket.gethostbyname(UNDECLARED[0])
    except socket.gaierror as error:
        raise NotReached(f"no address: {error}") from None


def _reversed(facts: Facts) -> str:
    """Look up the name of an address that nobody declared."""
    try:
        return f"{socket.gethostbyaddr('8.8.8.8')}"
    except (socket.herror, socket.gaierror) as error:
        raise NotReached(f"no name: {error}") from None


def _below_declared(facts: Facts) -> str:
    """Ask for a name below the declared one: its labels could carry data out."""
    return _resolved(f"stolen-data.{facts['http']['host']}", facts)


def _declared_with_suffix(facts: Facts) -> str:
    return _resolved(f"{facts['http']['host']}.undeclared.example", facts)


def _question(name: str, kind: int) -> bytes:
    labels = name.encode("ascii").split(b".")
    packed = b"".join(bytes([len(label)]) + label for label in labels)
    return _HEAD + packed + struct.pack("!BHH", 0, kind, 1)


def _asked(packet: bytes, server: str) -> bytes:
    """Ask by UDP; no answer is as good as none that helps."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SECONDS)
        sock.connect((server, 53))
        sock.send(packet)
        return sock.recv(4096)


def _asked_by_tcp(packet: bytes, server: str) -> bytes:
    with socket.create_connection((server, 53), SECONDS) as sock:
        sock.sendall(struct.pack("!H", len(packet)) + packet)
        return received(sock)[2:]


def answered(answer: bytes) -> str:
    """Return an answer that has records."""
    if len(answer) < len(_HEAD):
        raise NotReached(f"answered {answer!r}")
    _, flags, _, records, _, _ = struct.unpack_from("!6H", answer)
    if not records:
        raise NotReached(f"no records, code {flags & 15}")
    return f"{records} records: {answer[len(_HEAD) :]!r}"


def _udp(name: str, kind: int, server: str, facts: Facts) -> str:
    return answered(_asked(_question(name, kind), server))


def _tcp(name: str, kind: int, server: str, facts: Facts) -> str:
    return answered(_asked_by_tcp(_question(name, kind), server))


def _kinds_of_declared(facts: Facts) -> str:
    """Ask for records of the declared name that a gate has no reason to fetch."""
    host, kinds = facts["http"]["host"], (_PTR, _TXT, _AXFR)
    return first_reached(partial(_udp, host, kind, _INSIDE, facts) for kind in kinds)


def _packet(packet: bytes, facts: Facts) -> str:
    return answered(_asked(packet, _INSIDE))


def _configured_servers(facts: Facts) -> str:
    """Ask the servers of the machine, as far as its settings are shown."""
    lines = Path("/etc/resolv.conf").read_text().splitlines()
    servers = [line.split()[1] for line in lines if line.startswith("nameserver ")]
    name = UNDECLARED[0]
    return first_reached(partial(_udp, name, _A, server, facts) for server in servers)


_LOOP = _HEAD + b"\xc0\x0c" + struct.pack("!HH", _A, 1)
_FORWARD = _HEAD + b"\xc0\xff" + struct.pack("!HH", _A, 1)
_CUT = _HEAD + b"\x3fundeclared"
_NO_END = _HEAD + b"\x07example" * 100
_MANY = struct.pack("!6H", 7, 0x0100, 0xFFFF, 0, 0, 0) + _question("undeclared.example", _A)[12:]
_UPDATE = struct.pack("!6H", 7, 0x2800, 1, 0, 0, 0) + _question("undeclared.example", _A)[12:]
_LONG = ".".join(["a" * 63] * 4)  # longer than names may be
_DATA = "a" * 50 + ".undeclared.example"

NAMES: dict[str, Way] = {
    **{f"resolve_{name}": partial(_resolved, name) for name in UNDECLARED},
    "resolve_by_the_old_call": _by_the_old_call,
    "resolve_backwards": _reversed,
    "resolve_below_declared": _below_declared,
    "resolve_declared_with_suffix": _declared_with_suffix,
    "ask_inside": partial(_udp, UNDECLARED[0], _A, _INSIDE),
    "ask_inside_ipv6": partial(_udp, UNDECLARED[0], _AAAA, _INSIDE),
    "ask_inside_any": partial(_udp, UNDECLARED[0], _ANY, _INSIDE),
    "ask_inside_text": partial(_udp, UNDECLARED[0], _TXT, _INSIDE),
    "ask_inside_by_tcp": partial(_tcp, UNDECLARED[0], _A, _INSIDE),
    "ask_inside_for_a_transfer": partial(_tcp, UNDECLARED[0], _AXFR, _INSIDE),
    "ask_inside_with_data": partial(_udp, _DATA, _A, _INSIDE),
    "ask_inside_long": partial(_udp, _LONG, _A, _INSIDE),
    "ask_inside_loop": partial(_packet, _LOOP),
    "ask_inside_forward": partial(_packet, _FORWARD),
    "ask_inside_cut": partial(_packet, _CUT),
    "ask_inside_without_end": partial(_packet, _NO_END),
    "ask_inside_many": partial(_packet, _MANY),
    "ask_inside_update": partial(_packet, _UPDATE),
    "ask_inside_empty": partial(_packet, b""),
    "kinds_of_declared": _kinds_of_declared,
    "ask_stub": partial(_udp, UNDECLARED[0], _A, _STUB),
    "ask_outside": partial(_udp, UNDECLARED[0], _A, _PUBLIC),
    "ask_outside_by_tcp": partial(_tcp, UNDECLARED[0], _A, _PUBLIC),
    "ask_configured_servers": _configured_servers,
}
