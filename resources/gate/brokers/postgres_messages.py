"""The messages of the PostgreSQL protocol 3 that a login consists of. Pure.

The reader of a run's packets trusts nothing: what is not well-formed is Malformed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FIRST_MAX = 10_000  # bytes of a first packet, as the server's own limit
_CANCEL = 80_877_102
_ENCRYPTION = frozenset({80_877_103, 80_877_104})  # TLS, GSSAPI
_MAJOR = 3
_CANCEL_MAX = 4 + 256  # bytes of a process id and a key, from protocol 3.2 on

Parameters = tuple[tuple[bytes, bytes], ...]


class Malformed(ValueError):
    """Bytes that the protocol does not allow."""


@dataclass(frozen=True, kw_only=True)
class StartupPacket:
    """The client's wish for a session."""

    minor: int  # version of the protocol, 3.x
    parameters: Parameters


@dataclass(frozen=True, kw_only=True)
class CancelPacket:
    """The client's wish to cancel the statement of another session."""

    key: bytes  # process id and secret key, as the server sent them


@dataclass(frozen=True, kw_only=True)
class EncryptionPacket:
    """The client's question whether it may encrypt."""


FirstPacket = StartupPacket | CancelPacket | EncryptionPacket


def first_length(head: bytes) -> int:
    """Return how many bytes follow the four that begin a connection."""
    length = int.from_bytes(head, "big")
    if not 8 <= length <= FIRST_MAX:
        raise Malformed("the connection does not begin with a startup packet of PostgreSQL")
    return length - 4


def first_packet(body: bytes) -> FirstPacket:
    """Return the packet that begins a connection, from what follows its length."""
    code, rest = int.from_bytes(body[:4], "big"), body[4:]
    if code in _ENCRYPTION:
        if rest:
            raise Malformed("a request for encryption has unexpected bytes")
        return EncryptionPacket()
    if code == _CANCEL:
        if not 8 <= len(rest) <= _CANCEL_MAX:
            raise Malformed("a cancel request has the wrong length")
        return CancelPacket(key=rest)
    if code >> 16 != _MAJOR:
        raise Malformed(f"the client speaks protocol {code >> 16}.{code & 0xFFFF}, not 3")
    return StartupPacket(minor=code & 0xFFFF, parameters=_parameters(rest))


def _parameters(rest: bytes) -> Parameters:
    """Return names and values: texts that a NUL ends, and one more NUL."""
    texts = rest.split(b"\0")
    if texts[-2:] != [b"", b""]:
        raise Malformed("the startup packet is not ended by a NUL")
    names, values = texts[:-2:2], texts[1:-2:2]
    if len(names) != len(values) or not all(names):
        raise Malformed("the startup packet has a name without a value")
    return tuple(zip(names, values, strict=True))


def startup_packet(minor: int, parameters: Parameters) -> bytes:
    """Return the packet that asks for a session."""
    texts = b"".join(name + b"\0" + value + b"\0" for name, value in parameters)
    return _first(_MAJOR << 16 | minor, texts + b"\0")


def cancel_packet(key: bytes) -> bytes:
    """Return the packet that cancels the statement of a session."""
    return _first(_CANCEL, key)


def tls_packet() -> bytes:
    """Return the packet that asks whether the server speaks TLS."""
    return _first(min(_ENCRYPTION), b"")


def _first(code: int, rest: bytes) -> bytes:
    return (8 + len(rest)).to_bytes(4, "big") + code.to_bytes(4, "big") + rest


def message(kind: bytes, body: bytes) -> bytes:
    """Return a message of this kind, one letter."""
    return kind + (4 + len(body)).to_bytes(4, "big") + body


def negotiation(minor: int, unknown: Sequence[bytes]) -> bytes:
    """Return the message that names the version, and the options of the protocol that are not known."""
    numbers = (_MAJOR << 16 | minor).to_bytes(4, "big") + len(unknown).to_bytes(4, "big")
    return message(b"v", numbers + b"".join(name + b"\0" for name in unknown))


def error_response(sqlstate: str, text: str, hint: str) -> bytes:
    """Return the message that ends a connection with an error."""
    fields = {"S": "FATAL", "V": "FATAL", "C": sqlstate, "M": text, "H": hint}
    return message(b"E", _fields(fields.items()))


def _fields(fields: Iterable[tuple[str, str]]) -> bytes:
    texts = (f"{kind}{text}".replace("\0", "").encode() + b"\0" for kind, text in fields if text)
    return b"".join(texts) + b"\0"


def error_text(body: bytes) -> str:
    """Return the SQLSTATE and the message of a server's error, in one line of moderate length."""
    fields = {field[:1]: field[1:] for field in body.split(b"\0") if field}
    code, text = (fields.get(kind, b"").decode(errors="replace") for kind in (b"C", b"M"))
    return " ".join(f"{code} {text}".split())[:500]
