"""The client's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677), as PostgreSQL speaks it. Pure.

Not by a library: PostgreSQL allows fewer iterations than RFC 7677 recommends, and takes a password that SASLprep
refuses as it is.
"""

import base64
import binascii
import hashlib
import hmac
import stringprep
import unicodedata

PLAIN = "SCRAM-SHA-256"
PLUS = "SCRAM-SHA-256-PLUS"
_ITERATIONS_MAX = 100_000  # takes less than 0.1 s, and PostgreSQL asks for 4096; a server must not keep the worker busy
_PROHIBITED = (
    stringprep.in_table_a1, stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3,
    stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7,
    stringprep.in_table_c8, stringprep.in_table_c9,
)  # fmt: skip


class ScramError(ValueError):
    """The server's messages break the mechanism, or it has not proved that it knows the password."""


class ScramExchange:
    """One exchange; `binding` is the hash of the server's certificate, empty without TLS."""

    def __init__(self, password: bytes, *, nonce: str, binding: bytes, is_plus: bool) -> None:
        """`password`: as `prepared` returns it."""
        self._password = password
        self._nonce = nonce
        # "y": this side could bind to the channel, and the server has not offered it.
        flag = "p=tls-server-end-point" if is_plus else ("y" if binding else "n")
        self._header = f"{flag},,".encode()
        self._bound = self._header + (binding if is_plus else b"")
        self._signature = b""
        self.is_proved = False

    @property
    def _first_bare(self) -> str:
        return f"n=,r={self._nonce}"  # PostgreSQL takes the user from the startup packet

    @property
    def first(self) -> bytes:
        """The first message to the server."""
        return self._header + self._first_bare.encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the second message to the server, the answer to its first; takes long, as SCRAM is meant to."""
        nonce, salt, iterations = self._read_first(server_first)
        salted = hashlib.pbkdf2_hmac("sha256", self._password, salt, iterations)
        client_key = _mac(salted, b"Client Key")
        without_proof = b"c=" + base64.b64encode(self._bound) + b",r=" + nonce
        signed = b",".join((self._first_bare.encode(), server_first, without_proof))
        signature = _mac(hashlib.sha256(client_key).digest(), signed)
        self._signature = _mac(_mac(salted, b"Server Key"), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return without_proof + b",p=" + base64.b64encode(proof)

    def finish(self, server_final: bytes) -> None:
        """Check the server's last message: that it knows the password, too."""
        kind, _, value = server_final.partition(b"=")
        if kind != b"v" or not self._signature:
            raise ScramError("the server ended SCRAM with an error")
        if not hmac.compare_digest(_decoded(value), self._signature):
            raise ScramError("the server does not know the password")
        self.is_proved = True

    def _read_first(self, server_first: bytes) -> tuple[bytes, bytes, int]:
        parts = server_first.split(b",")
        values = [part[2:] for part, name in zip(parts, (b"r=", b"s=", b"i="), strict=False)
                  if part.startswith(name)]  # fmt: skip
        if len(values) != 3:
            raise ScramError("the server's first message of SCRAM lacks nonce, salt or iterations")
        nonce, salt, iterations = values
        if not nonce.startswith(self._nonce.encode()) or len(nonce) == len(self._nonce):
            raise ScramError("the server's nonce does not continue the client's")
        return nonce, _decoded(salt), _iterations(iterations)


def prepared(password: str) -> bytes:
    """Return the bytes of a password after SASLprep (RFC 4013), or as they are where that refuses it."""
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter
        for letter in password
        if not stringprep.in_table_b1(letter)
    )
    text = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    if not text or any(prohibits(letter) for letter in text for prohibits in _PROHIBITED):
        return password.encode()
    return (text if _is_one_direction(text) else password).encode()


def _is_one_direction(text: str) -> bool:
    if not any(map(stringprep.in_table_d1, text)):
        return True
    begins_and_ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return begins_and_ends and not any(map(stringprep.in_table_d2, text))


def _iterations(text: bytes) -> int:
    number = int(text) if text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= _ITERATIONS_MAX:
        raise ScramError(f"the server does not ask for 1 to {_ITERATIONS_MAX} iterations")
    return number


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError("the server sent SCRAM values that are not Base64") from None
